//! Any bytes as a message: telling it apart and decoding it never panics, an id survives, and what
//! decodes once decodes again from what it is written as.

use loomd_protocol::{
    ClientRequest, Incoming, Level, ServerNotification, ServerRequest, encode_error, encode_response,
};

pub fn run(data: &[u8]) {
    let _ = Incoming::find_request_id(data);
    match Incoming::parse(data) {
        Ok(Incoming::Request { id, method, params, .. }) => {
            if let Err(error) = ClientRequest::decode(&method, params).map(|request| {
                let _ = Level::ALL.map(|level| request.experimental_use(level));
                assert_eq!(request.method(), method);
            }) {
                let reply = encode_error(&id, &error.into());
                assert!(matches!(Incoming::parse(&reply), Ok(Incoming::Error { id: back, .. }) if back == id));
            }
            let _ = ServerRequest::decode(&method, params);
        }
        Ok(Incoming::Notification { method, params, .. }) => {
            let Ok(notification) = ServerNotification::decode(&method, params) else { return };
            let Ok(line) = notification.encode() else { return };
            let Ok(Incoming::Notification { method, params, .. }) = Incoming::parse(&line) else {
                panic!("a notification is written as one")
            };
            let again = ServerNotification::decode(&method, params).expect("what was written can be read");
            assert_eq!(again.encode().ok(), Some(line));
        }
        Ok(Incoming::Response { id, result }) => {
            let Ok(line) = encode_response(&id, &result) else { return };
            assert!(matches!(Incoming::parse(&line), Ok(Incoming::Response { id: back, .. }) if back == id));
        }
        Ok(Incoming::Error { .. }) | Err(_) => {}
    }
}
