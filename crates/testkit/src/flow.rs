//! Common flows: the handshake, a thread, a turn.

use loomd_protocol::{
    ClientInfo, INITIALIZED, InitializeCapabilities, InitializeParams, InitializeResponse, ItemCompletedNotification,
    Thread, ThreadItem, ThreadStartParams, Turn, TurnCompletedNotification, call,
};
use serde_json::json;

use crate::Peer;
use crate::peer::decode;

impl Peer {
    /// The whole handshake, with the capability for experimental methods.
    pub async fn initialize(&self) -> InitializeResponse {
        self.initialize_with(InitializeCapabilities { experimental_api: true, ..Default::default() }).await
    }

    /// The whole handshake.
    pub async fn initialize_with(&self, capabilities: InitializeCapabilities) -> InitializeResponse {
        let client_info = ClientInfo { name: "testkit".into(), title: None, version: "1.0.0".into() };
        let params = InitializeParams { client_info, capabilities: Some(capabilities) };
        let response = self.call::<call::Initialize>(params).await.expect("initialize must succeed");
        self.notify(INITIALIZED, None).await;
        response
    }

    pub async fn start_thread(&self, params: ThreadStartParams) -> Thread {
        self.call::<call::ThreadStart>(params).await.expect("thread/start must succeed").thread
    }

    /// Starts a turn with a text; [`turn_completed`](Self::turn_completed) waits for its end.
    pub async fn start_turn(&self, thread_id: &str, text: &str) -> Turn {
        let params = json!({ "threadId": thread_id, "input": [{ "type": "text", "text": text }] });
        let params = decode("params of turn/start", params);
        self.call::<call::TurnStart>(params).await.expect("turn/start must succeed").turn
    }

    /// Waits for the next `turn/completed` of this thread.
    pub async fn turn_completed(&self, thread_id: &str) -> Turn {
        let params = self.notification_where("turn/completed", |params| params["threadId"] == thread_id).await;
        decode::<TurnCompletedNotification>("turn/completed", params).turn
    }

    /// Starts a turn with a text and waits for its end.
    pub async fn run_turn(&self, thread_id: &str, text: &str) -> Turn {
        self.start_turn(thread_id, text).await;
        self.turn_completed(thread_id).await
    }

    /// Every completed item of this thread so far, in order.
    pub fn completed_items(&self, thread_id: &str) -> Vec<ThreadItem> {
        self.notifications("item/completed")
            .into_iter()
            .map(|params| decode::<ItemCompletedNotification>("item/completed", params))
            .filter(|completed| completed.thread_id == thread_id)
            .map(|completed| completed.item)
            .collect()
    }
}
