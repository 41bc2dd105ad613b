//! Ten million bytes between valid requests and noise. The seed is fixed, so that a failure can be repeated.

use std::collections::HashMap;
use std::fmt::Write;

use loomd_protocol::ClientRequest;
use loomd_testkit::{Home, soak};

use crate::common::{initialized, ping};

const MIB: usize = 1 << 20;
const WARM_UP: usize = 1_000_000;
const ALL: usize = 10_000_000;

#[tokio::test]
async fn every_request_between_noise_is_answered_in_constant_memory() {
    let home = Home::empty();
    let mut server = initialized(&home).await;
    let mut input = Input { random: Random(0x9e37_79b9_7f4a_7c15), requests: 0 };
    let mut sent = 0;
    let mut warm = None;
    while sent < ALL {
        let lines = input.lines(100_000);
        sent += lines.len();
        server.send_raw(lines).await;
        ping(&server).await;
        if sent >= WARM_UP && warm.is_none() {
            warm = Some(soak::memory(server.pid()).rss);
        }
    }
    let memory = soak::memory(server.pid()).rss;
    server.close_stdin().await;
    server.closed().await;
    assert_eq!(server.wait_exit().await.code(), Some(0));

    let mut answers: HashMap<String, usize> = HashMap::new();
    for message in server.messages() {
        let text = message.to_string();
        assert!(!text.contains("internal error in "), "a handler panicked: {text}");
        if let Some(id) = message["id"].as_str() {
            *answers.entry(id.to_owned()).or_default() += 1;
        }
    }
    let wrong: Vec<_> = (1..=input.requests).map(request_id).filter(|id| answers.get(id) != Some(&1)).collect();
    assert!(wrong.is_empty(), "{} of {} requests were not answered once: {wrong:?}", wrong.len(), input.requests);
    let stderr = server.stderr().to_end().await;
    assert!(!stderr.contains("panicked"), "{stderr}");
    let warm = warm.expect("there was a warm-up");
    assert!(memory < warm + 8 * MIB as u64, "the memory grew from {warm} to {memory} bytes");
}

/// The id of a valid request, which no noise contains.
fn request_id(number: usize) -> String {
    format!("must-{number}")
}

struct Input {
    random: Random,
    /// Number of valid requests so far.
    requests: usize,
}

impl Input {
    /// At least this many bytes, in whole lines.
    fn lines(&mut self, bytes: usize) -> Vec<u8> {
        let mut lines = Vec::new();
        while lines.len() < bytes {
            match self.random.below(16) {
                0..5 => {
                    self.requests += 1;
                    let id = format!("\"{}\"", request_id(self.requests));
                    lines.extend(self.request(&id).into_bytes());
                }
                5..10 => {
                    let line = self.doubtful().into_bytes();
                    lines.extend(self.mutated(line));
                }
                10..12 => {
                    let line = self.doubtful().into_bytes();
                    lines.extend(&line[..self.random.below(line.len())]);
                }
                12 => lines.extend(self.random.bytes(200)),
                13 => lines.extend(self.json(6).into_bytes()),
                14 => lines.extend(self.other_message().into_bytes()),
                _ => lines.extend("x".repeat(self.random.below(2_000)).into_bytes()),
            }
            lines.push(b'\n');
        }
        lines
    }

    fn request(&mut self, id: &str) -> String {
        let method = match self.random.below(50) {
            0 => "no/such/method",
            _ => self.random.pick(ClientRequest::METHODS),
        };
        let params = match self.random.below(4) {
            0 => String::new(),
            1 => ",\"params\":{}".to_owned(),
            _ => format!(",\"params\":{}", self.json(4)),
        };
        format!("{{\"id\":{id},\"method\":\"{method}\"{params}}}")
    }

    /// A message to mutate. It may stay a valid request, but without an id of a counted one.
    fn doubtful(&mut self) -> String {
        let id = self.random.pick(&["-9000000000000", "\"may\"", "null", "7777777.5", "99999999999999999999"]);
        self.request(id)
    }

    fn other_message(&mut self) -> String {
        let value = self.json(3);
        match self.random.below(4) {
            0 => format!("{{\"method\":\"initialized\",\"params\":{value}}}"),
            1 => format!("{{\"id\":{value},\"result\":{value}}}"),
            2 => format!("{{\"id\":-1,\"error\":{{\"code\":-1,\"message\":\"m\",\"data\":{value}}}}}"),
            _ => format!("{{\"id\":-1,\"trace\":{value},\"method\":\"initialized\",\"jsonrpc\":{value}}}"),
        }
    }

    fn mutated(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.random.below(3) {
            let at = self.random.below(line.len());
            match self.random.below(4) {
                0 => line[at] ^= 1 << self.random.below(8),
                1 => line.insert(at, self.random.pick(b"\"\\{}[]:,-0e\0\xff ")),
                2 => _ = line.remove(at),
                _ => line.splice(at..at, self.random.bytes(4)).for_each(drop),
            }
            if line.is_empty() {
                break;
            }
        }
        line
    }

    fn json(&mut self, depth: usize) -> String {
        let kinds = if depth == 0 { 7 } else { 9 };
        match self.random.below(kinds) {
            0 => "null".into(),
            1 => "true".into(),
            2 => (self.random.next() as i64).to_string(),
            3 => format!("{}e{}", self.random.below(1000), self.random.below(400)),
            4 => "\"\"".into(),
            5 => format!("\"{}\"", self.random.pick(&["x", "é", "\\n", "\\ud83d\\ude00", "\\ud800", "/tmp", "0"])),
            6 => format!("\"{}\"", "long".repeat(self.random.below(100))),
            7 => self.elements('[', ']', |input| input.json(depth - 1)),
            _ => self.elements('{', '}', |input| {
                let key = input.random.pick(&["cursor", "limit", "value", "includeLayers", "threadId", "", "\\u0000"]);
                format!("\"{key}\":{}", input.json(depth - 1))
            }),
        }
    }

    fn elements(&mut self, open: char, close: char, mut element: impl FnMut(&mut Self) -> String) -> String {
        let mut text = open.to_string();
        for number in 0..self.random.below(4) {
            let comma = if number > 0 { "," } else { "" };
            let element = element(self);
            _ = write!(text, "{comma}{element}");
        }
        text.push(close);
        text
    }
}

/// xorshift64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Fewer than `bound` bytes, of any value.
    fn bytes(&mut self, bound: usize) -> Vec<u8> {
        (0..self.below(bound)).map(|_| self.next() as u8).collect()
    }
}
