//! The text of a turn's error for people: what happened, and what to do about it.

use loomd_protocol::TurnError;

/// How the server words the number of a retry.
const RETRY: &str = "Reconnecting... ";

/// Beginnings of messages that say nothing to people at a terminal.
const NOISE: [&str; 2] = ["stream disconnected before completion: ", "unexpected status "];

/// What providers call a model that they do not have.
const UNKNOWN_MODEL: &str = "model_not_found";

/// An error as one line: its message, with its details in brackets.
pub fn problem(error: &TurnError) -> String {
    let message = plain(&error.message);
    match &error.additional_details {
        Some(details) if details.contains(UNKNOWN_MODEL) => {
            format!("{message} (unknown model: `loomd models` lists those of each provider)")
        }
        // The body of a response, of which the message is a part.
        Some(details) if details.trim_start().starts_with('{') => message,
        Some(details) if !error.message.contains(details.as_str()) => format!("{message} ({})", plain(details)),
        _ => message,
    }
}

/// The number of a retry and of all retries, from the message of an error that is retried.
pub fn retry(message: &str) -> Option<(u64, u64)> {
    let (retry, all) = message.strip_prefix(RETRY)?.split_once('/')?;
    Some((retry.parse().ok()?, all.parse().ok()?))
}

/// A message without the beginning that all of its kind have.
pub fn plain(message: &str) -> String {
    let mut rest = message;
    while let Some(without) = NOISE.iter().find_map(|noise| rest.strip_prefix(noise)) {
        rest = without;
    }
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_what_to_do() {
        let check = |message: &str, details: Option<&str>, line: &str| {
            let error = TurnError {
                message: message.into(),
                codex_error_info: None,
                additional_details: details.map(str::to_owned),
            };
            assert_eq!(problem(&error), line);
        };
        check("unexpected status 401: no", Some("check the key"), "401: no (check the key)");
        check("stream disconnected before completion: idle", None, "idle");
        check(
            "The model `x` does not exist",
            Some(r#"{"error":{"code":"model_not_found"}}"#),
            "The model `x` does not exist (unknown model: `loomd models` lists those of each provider)",
        );
        check("bad field", Some(r#"{"error":{"message":"bad field"}}"#), "bad field");
        check("it broke", Some("broke"), "it broke");
    }

    #[test]
    fn the_number_of_a_retry_is_read_from_its_message() {
        assert_eq!(retry("Reconnecting... 2/5"), Some((2, 5)));
        for other in ["Reconnecting... ", "Reconnecting... 2", "2/5", ""] {
            assert_eq!(retry(other), None, "{other}");
        }
    }
}
