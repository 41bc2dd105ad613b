//! Any bytes as a stream of events: they are the same however the bytes are cut.

use loomd_model::sse::SseParser;

/// Long enough for every seed, short enough that the bound is met.
const MAX_EVENT: usize = 4096;

pub fn run(data: &[u8]) {
    assert_eq!(events(data, data.len().max(1)), events(data, 1));
}

fn events(data: &[u8], step: usize) -> Vec<Option<Vec<u8>>> {
    let mut parser = SseParser::new(MAX_EVENT);
    let mut seen = Vec::new();
    for piece in data.chunks(step) {
        parser.push(piece);
        while let Some(event) = parser.next() {
            let Ok(event) = event else {
                seen.push(None);
                return seen;
            };
            seen.push(Some(event.to_vec()));
        }
    }
    seen.extend(parser.finish().map(|event| Some(event.to_vec())));
    seen
}
