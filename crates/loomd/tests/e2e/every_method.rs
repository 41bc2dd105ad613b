//! Every method of the protocol with every kind of wrong params: exactly one response each, with the expected error.

use std::collections::HashMap;

use loomd_protocol::{ClientRequest, InitializeCapabilities, JsonValue, Level, RpcError};
use loomd_testkit::Home;

use crate::common::launch;

/// `None` is a request without `params`.
const PARAMS: [Option<&str>; 6] = [None, Some("null"), Some("{}"), Some("[]"), Some("\"x\""), Some("5")];

struct Exchange {
    line: String,
    /// The result of decoding the request.
    decoded: Result<ClientRequest, RpcError>,
    answer: Result<JsonValue, RpcError>,
}

#[tokio::test]
async fn before_the_handshake_every_decodable_request_is_refused_as_not_initialized() {
    for Exchange { line, decoded, answer } in send_everything(None).await {
        let expected = decoded.err().unwrap_or_else(|| RpcError::invalid_request("Not initialized"));
        assert_eq!(answer, Err(expected), "{line}");
    }
}

#[tokio::test]
async fn without_the_capability_experimental_methods_are_refused_by_name() {
    let plain = InitializeCapabilities::default();
    for Exchange { line, decoded, answer } in send_everything(Some(plain)).await {
        let request = match decoded {
            Ok(request) => request,
            Err(error) => {
                assert_eq!(answer, Err(error), "{line}");
                continue;
            }
        };
        match request.experimental_use(Level::V0_118) {
            Some(name) => {
                let message = format!("{name} requires experimentalApi capability");
                assert_eq!(answer, Err(RpcError::invalid_request(message)), "{line}");
            }
            None => assert_usual(&line, answer),
        }
    }
}

#[tokio::test]
async fn with_the_capability_no_method_is_gated() {
    let experimental = InitializeCapabilities { experimental_api: true, ..Default::default() };
    for Exchange { line, decoded, answer } in send_everything(Some(experimental)).await {
        match decoded {
            Err(error) => assert_eq!(answer, Err(error), "{line}"),
            Ok(_) => {
                assert_usual(&line, answer.clone());
                let gated = answer.is_err_and(|error| error.message.contains("experimentalApi"));
                assert!(!gated, "{line} was refused for a missing capability");
            }
        }
    }
}

/// A result, or an error with one of the known codes.
fn assert_usual(line: &str, answer: Result<JsonValue, RpcError>) {
    if let Err(error) = answer {
        assert!([-32600, -32603].contains(&error.code), "{line} was answered with {error:?}");
    }
}

/// Sends every request in one write and closes stdin. Fails unless each is answered exactly once.
async fn send_everything(handshake: Option<InitializeCapabilities>) -> Vec<Exchange> {
    let home = Home::empty();
    let mut server = launch().stdio(&home);
    if let Some(capabilities) = handshake {
        server.initialize_with(capabilities).await;
    }
    let requests: Vec<_> = ClientRequest::METHODS
        .iter()
        .flat_map(|method| PARAMS.map(|params| (*method, params)))
        .enumerate()
        .map(|(number, (method, params))| {
            let member = params.map(|params| format!(",\"params\":{params}")).unwrap_or_default();
            let line = format!("{{\"id\":\"r{number}\",\"method\":\"{method}\"{member}}}\n");
            (format!("r{number}"), line, decode(method, params))
        })
        .collect();
    server.send_raw(requests.iter().map(|(_, line, _)| line.as_str()).collect::<String>()).await;
    server.close_stdin().await;
    server.closed().await;
    assert_eq!(server.wait_exit().await.code(), Some(0));

    let mut answers: HashMap<String, Vec<JsonValue>> = HashMap::new();
    for message in server.messages() {
        if let Some(id) = message["id"].as_str() {
            answers.entry(id.to_owned()).or_default().push(message);
        }
    }
    requests
        .into_iter()
        .map(|(id, line, decoded)| {
            let given = answers.remove(&id).unwrap_or_default();
            let [answer] = given.as_slice() else { panic!("expected one answer to {line}, got {given:?}") };
            let answer = match answer.get("error") {
                Some(error) => Err(serde_json::from_value(error.clone()).expect("an error has its form")),
                None => Ok(answer["result"].clone()),
            };
            Exchange { line, decoded, answer }
        })
        .collect()
}

fn decode(method: &str, params: Option<&str>) -> Result<ClientRequest, RpcError> {
    let params = params.filter(|params| *params != "null");
    let raw = params.map(|params| serde_json::from_str(params).expect("the params of this test are JSON"));
    ClientRequest::decode(method, raw).map_err(RpcError::from)
}
