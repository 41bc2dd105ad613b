//! The speed of reading and writing messages.

use divan::{Bencher, black_box};
use loomd_protocol::{
    AgentMessageDeltaNotification, ClientRequest, Incoming, RequestId, ServerNotification, ThreadLoadedListResponse,
    encode_response,
};

fn main() {
    divan::main();
}

const PING: &str = r#"{"method":"thread/loaded/list","id":17,"params":{}}"#;
const TURN: &str = r#"{"method":"turn/start","id":18,"params":{"threadId":"019d0000-0000-7000-8000-000000000000","input":[{"type":"text","text":"Please look at the failing test and fix it.","text_elements":[]}],"cwd":"/home/user/project","approvalPolicy":"on-request","sandboxPolicy":{"type":"workspaceWrite","writableRoots":["/home/user/project"],"networkAccess":false},"model":"gpt-5","effort":"high"}}"#;

fn decode(line: &str) -> ClientRequest {
    match Incoming::parse(line.as_bytes()) {
        Ok(Incoming::Request { method, params, .. }) => ClientRequest::decode(&method, params).expect("valid"),
        _ => unreachable!("a request"),
    }
}

#[divan::bench]
fn read_small_request() -> ClientRequest {
    decode(black_box(PING))
}

#[divan::bench]
fn read_turn_start() -> ClientRequest {
    decode(black_box(TURN))
}

#[divan::bench]
fn read_request_of_five_megabytes(bencher: Bencher) {
    let line =
        format!(r#"{{"method":"thread/loaded/list","id":1,"params":{{"padding":"{}"}}}}"#, "x".repeat(5 * 1024 * 1024));
    bencher.bench(|| decode(black_box(&line)));
}

#[divan::bench]
fn ignore_garbage() -> bool {
    Incoming::parse(black_box(b"{\"method\":\"thread/start\",\"id\":1,")).is_err()
}

#[divan::bench]
fn write_response() -> Vec<u8> {
    let result = ThreadLoadedListResponse { data: Vec::new(), next_cursor: None };
    encode_response(&RequestId::Integer(black_box(17)), &result).expect("serializable")
}

#[divan::bench]
fn write_delta(bencher: Bencher) {
    let delta = ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
        thread_id: "019d0000-0000-7000-8000-000000000000".into(),
        turn_id: "019d0000-0000-7000-8000-000000000001".into(),
        item_id: "msg_0123456789abcdef".into(),
        delta: "a few words ".into(),
    });
    bencher.bench(|| black_box(&delta).encode().expect("serializable"));
}
