//! Any bytes as a rollout: parsing its lines and decoding them never panics, what decodes once is written the same
//! way for ever, a copy decodes as the original does, and so does a header.

use loomd_store::rollout::{Event, Line, LineHeader, copy_line, whole_lines, write_line};

const TIME: &str = "2026-11-15T06:42:54.420Z";

pub fn run(data: &[u8]) {
    for (_, bytes) in whole_lines(data) {
        let Some(line) = Line::parse(bytes) else { continue };
        let _ = line.payload_type();
        if let Some(header) = LineHeader::parse(bytes) {
            assert_eq!(header.kind, line.kind);
            if let Some(event) = header.event() {
                assert_eq!(Event::decode(line.payload.get()), Some(event));
            }
        }

        let mut copy = Vec::new();
        copy_line(&mut copy, TIME, &line);
        let copied = whole_line(&copy);
        assert_eq!((&copied.kind, &*copied.timestamp), (&line.kind, TIME));
        assert_eq!(copied.decode(), line.decode());

        let Some(record) = line.decode() else { continue };
        let mut written = Vec::new();
        if !write_line(&mut written, TIME, &record).expect("what was read can be written") {
            assert!(written.is_empty());
            continue;
        }
        let record = whole_line(&written).decode().expect("what was written can be read");
        let mut again = Vec::new();
        write_line(&mut again, TIME, &record).expect("what was read can be written");
        assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&written));
    }
}

fn whole_line(bytes: &[u8]) -> Line<'_> {
    let line = bytes.strip_suffix(b"\n").expect("a line ends with a line break");
    assert!(!line.contains(&b'\n'), "a line is one line");
    Line::parse(line).expect("a written line can be parsed")
}
