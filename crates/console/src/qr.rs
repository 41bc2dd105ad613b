//! A link as a QR code for a terminal.

use qrcodegen::{QrCode, QrCodeEcc};

/// The quiet zone around a code, in modules.
const QUIET: i32 = 2;

/// Draws a text with half blocks, two modules per character; `None` if it is too long for a code.
pub fn qr_code(text: &str) -> Option<String> {
    let code = QrCode::encode_text(text, QrCodeEcc::Low).ok()?;
    let edge = code.size() + QUIET;
    let mut drawn = String::new();
    for y in (-QUIET..edge).step_by(2) {
        for x in -QUIET..edge {
            // Light modules are drawn, for terminals with a dark background.
            drawn.push(match (code.get_module(x, y), code.get_module(x, y + 1)) {
                (false, false) => '█',
                (false, true) => '▀',
                (true, false) => '▄',
                (true, true) => ' ',
            });
        }
        drawn.push('\n');
    }
    Some(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_square_with_a_quiet_zone() {
        let drawn = qr_code("http://127.0.0.1:1/#abc").unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width));
        assert_eq!(lines.len(), width.div_ceil(2));
        assert!(lines[0].chars().all(|module| module == '█'));
    }
}
