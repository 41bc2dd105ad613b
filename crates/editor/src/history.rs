//! [`History`]: earlier inputs, to go back to and to search.

/// How many inputs are kept.
const MAX_ENTRIES: usize = 1000;

#[derive(Clone, Debug, Default)]
pub struct History {
    entries: Vec<String>,
}

impl History {
    /// The oldest entry is first.
    pub fn new(entries: impl IntoIterator<Item = String>) -> Self {
        let mut history = Self::default();
        entries.into_iter().for_each(|entry| history.add(entry));
        history
    }

    /// Adds an input, unless it is empty or the same as the last.
    pub fn add(&mut self, entry: String) {
        if entry.trim().is_empty() || self.entries.last() == Some(&entry) {
            return;
        }
        if self.entries.len() == MAX_ENTRIES {
            self.entries.remove(0);
        }
        self.entries.push(entry);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<&str> {
        self.entries.get(index).map(String::as_str)
    }

    /// The index of the last entry before `end` that contains `part`, in any case.
    pub fn search(&self, part: &str, end: usize) -> Option<usize> {
        let part = part.to_lowercase();
        let before = self.entries.get(..end.min(self.entries.len()))?;
        before.iter().rposition(|entry| entry.to_lowercase().contains(&part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded_and_not_repeated() {
        let mut history = History::new(["a", "a", " ", "b", "a"].map(str::to_owned));
        assert_eq!(history.entries, ["a", "b", "a"]);
        (0..2 * MAX_ENTRIES).for_each(|number| history.add(number.to_string()));
        assert_eq!((history.len(), history.get(0)), (MAX_ENTRIES, Some("1000")));
    }

    #[test]
    fn a_search_goes_backwards_and_ignores_case() {
        let history = History::new(["Make it", "test it", "make all"].map(str::to_owned));
        assert_eq!(history.search("make", usize::MAX), Some(2));
        assert_eq!(history.search("make", 2), Some(0));
        assert_eq!(history.search("make", 0), None);
    }
}
