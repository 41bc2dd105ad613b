//! Any bytes as a rollout: reading its lines never panics, and a record that was read is read the same from how
//! it is written.

use loomd_store::rollout::{Line, whole_lines, write_line};

pub fn run(data: &[u8]) {
    for (_, line) in whole_lines(data) {
        let Some(record) = Line::parse(line).and_then(|line| line.decode()) else { continue };
        let mut written = Vec::new();
        if let Ok(true) = write_line(&mut written, "2026-11-15T06:42:54.420Z", &record) {
            let again = Line::parse(written.trim_ascii_end()).and_then(|line| line.decode());
            let mut twice = Vec::new();
            let read = again.expect("what was written can be read");
            write_line(&mut twice, "2026-11-15T06:42:54.420Z", &read).expect("and written again");
            assert_eq!(written, twice);
        }
    }
}
