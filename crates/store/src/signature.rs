//! A Bloom filter of a text's three-byte pieces, kept in the index, which rules out most texts that do not hold a term.
//! Only texts that may hold the term are fetched and searched.

/// One bit per two bytes of text keeps the filter mostly empty, at a quarter of the text's size.
const TEXT_PER_BYTE: usize = 4;
const SMALLEST: usize = 8;
/// Longer texts are more often fetched in vain.
const LARGEST: usize = 1024;

/// The filter of a text.
pub(crate) fn of(text: &str) -> Vec<u8> {
    let size = (text.len() / TEXT_PER_BYTE).next_power_of_two().clamp(SMALLEST, LARGEST);
    let mut filter = vec![0; size];
    add(&mut filter, text);
    filter
}

/// Adds the pieces of a text to a filter, whose size is a power of two.
pub(crate) fn add(filter: &mut [u8], text: &str) {
    let size = filter.len();
    for hash in hashes(text) {
        let (byte, bit) = place(hash, size);
        filter[byte] |= bit;
    }
}

/// The same pieces in a filter of half the size: two adjacent bits become one.
pub(crate) fn halved(filter: &[u8]) -> Vec<u8> {
    let nibble = |byte: u8| (0..4).fold(0, |bits, at| bits | u8::from((byte >> (2 * at)) & 3 != 0) << at);
    filter.chunks_exact(2).map(|pair| nibble(pair[0]) | nibble(pair[1]) << 4).collect()
}

/// The pieces of a term, as [`may_hold`] takes them.
pub(crate) fn pieces(term: &str) -> Vec<u8> {
    hashes(term).flat_map(u32::to_le_bytes).collect()
}

/// False only when the text cannot hold the term.
pub(crate) fn may_hold(filter: &[u8], pieces: &[u8]) -> bool {
    if !filter.len().is_power_of_two() {
        return true;
    }
    pieces.chunks_exact(4).all(|piece| {
        let (byte, bit) = place(u32::from_le_bytes([piece[0], piece[1], piece[2], piece[3]]), filter.len());
        filter[byte] & bit != 0
    })
}

fn hashes(text: &str) -> impl Iterator<Item = u32> {
    text.as_bytes()
        .windows(3)
        .map(|piece| u32::from_le_bytes([piece[0], piece[1], piece[2], 0]).wrapping_mul(0x9E37_79B1))
}

/// The upper bits of a product are its best mixed ones.
fn place(hash: u32, size: usize) -> (usize, u8) {
    let bit = (u64::from(hash) * (size as u64 * 8)) >> 32;
    ((bit / 8) as usize, 1 << (bit % 8))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_filter_rules_out_most_terms_that_the_text_does_not_hold() {
        let filter = of(&"please say what is wrong with it ".repeat(8));
        assert!(may_hold(&filter, &pieces("what is")) && may_hold(&filter, &pieces("")));
        let absent = ["not to be found", "parser", "Please", "xyzzy", "docs"];
        assert!(absent.iter().filter(|term| may_hold(&filter, &pieces(term))).count() <= 1);
    }

    proptest! {
        #[test]
        fn the_filter_never_rules_out_a_term_that_the_text_holds(before in ".{0,80}", term in ".{0,20}", after in ".{0,80}") {
            let text = format!("{before}{term}{after}");
            prop_assert!(may_hold(&of(&text), &pieces(&term)));
        }

        #[test]
        fn a_halved_filter_equals_one_of_that_size(text in ".{0,200}") {
            let (mut large, mut small) = (vec![0; 64], vec![0; 32]);
            add(&mut large, &text);
            add(&mut small, &text);
            prop_assert_eq!(halved(&large), small);
        }
    }
}
