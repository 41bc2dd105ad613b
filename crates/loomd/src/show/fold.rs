//! Folds long lists of lines by leaving out the middle.

/// How many lines of the beginning and of the end are kept.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    pub first: usize,
    pub last: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Folded<'a> {
    Line(&'a str),
    /// The number of lines left out.
    Hidden(usize),
}

/// Returns the kept lines. A single line is never left out, as its place is taken by the count.
pub fn fold<'a>(lines: &'a [String], by: Fold) -> impl Iterator<Item = Folded<'a>> {
    let hidden = lines.len().saturating_sub(by.first.saturating_add(by.last));
    let (first, last) = if hidden > 1 { (by.first, by.last) } else { (lines.len(), 0) };
    let (first, last) = (&lines[..first], &lines[lines.len() - last..]);
    let shown = |lines: &'a [String]| lines.iter().map(|line| Folded::Line(line));
    shown(first).chain((hidden > 1).then_some(Folded::Hidden(hidden))).chain(shown(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_long_lists_is_left_out() {
        let lines: Vec<String> = (1..=6).map(|number| number.to_string()).collect();
        let show = |first, last| -> Vec<String> {
            fold(&lines, Fold { first, last })
                .map(|folded| match folded {
                    Folded::Line(line) => line.to_owned(),
                    Folded::Hidden(count) => format!("({count})"),
                })
                .collect()
        };
        assert_eq!(show(1, 2), ["1", "(3)", "5", "6"]);
        assert_eq!(show(2, 3), ["1", "2", "3", "4", "5", "6"]);
        assert_eq!(show(6, 6), ["1", "2", "3", "4", "5", "6"]);
        assert_eq!(show(0, 0), ["(6)"]);
    }
}
