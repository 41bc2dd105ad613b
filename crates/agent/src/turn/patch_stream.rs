//! A patch that the model is still writing: the changes in its whole lines so far, with paths as the model wrote them.

use loomd_protocol::{FileUpdateChange, PatchChangeKind};

#[derive(Default)]
pub(super) struct PatchStream {
    /// The start of a line that has not ended.
    rest: String,
    changes: Vec<FileUpdateChange>,
}

impl PatchStream {
    /// Adds a fragment. Returns the changes so far if it changed them.
    pub fn push(&mut self, fragment: &str) -> Option<Vec<FileUpdateChange>> {
        let mut text = std::mem::take(&mut self.rest);
        text.push_str(fragment);
        let end = text.rfind('\n').map_or(0, |at| at + 1);
        self.rest = text[end..].to_owned();
        let mut changed = false;
        for line in text[..end].lines() {
            changed |= self.line(line);
        }
        changed.then(|| self.changes.clone())
    }

    /// Reads a line; whether it changed anything.
    fn line(&mut self, line: &str) -> bool {
        let header = line.trim_end();
        let kind = |prefix: &str| header.strip_prefix(prefix).map(|path| path.trim().to_owned());
        let begun = kind("*** Add File: ")
            .map(|path| (path, PatchChangeKind::Add))
            .or_else(|| kind("*** Delete File: ").map(|path| (path, PatchChangeKind::Delete)))
            .or_else(|| kind("*** Update File: ").map(|path| (path, PatchChangeKind::Update { move_path: None })));
        if let Some((path, kind)) = begun {
            self.changes.push(FileUpdateChange { path, kind, diff: String::new() });
            return true;
        }
        let Some(change) = self.changes.last_mut() else { return false };
        if let Some(target) = kind("*** Move to: ") {
            change.kind = PatchChangeKind::Update { move_path: Some(target) };
            return true;
        }
        // The end of the patch, or of a file.
        if header.starts_with("***") {
            return false;
        }
        let text = match change.kind {
            PatchChangeKind::Add => line.strip_prefix('+').unwrap_or(line),
            PatchChangeKind::Delete => return false,
            PatchChangeKind::Update { .. } => line,
        };
        change.diff.push_str(text);
        change.diff.push('\n');
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** Update File: b.txt\n*** Move to: c.txt\n@@\n-x\n\
                         +y\n*** Delete File: d.txt\n*** End Patch\n";

    fn change(path: &str, kind: PatchChangeKind, diff: &str) -> FileUpdateChange {
        FileUpdateChange { path: path.into(), kind, diff: diff.into() }
    }

    #[test]
    fn the_changes_are_the_same_however_the_patch_is_cut() {
        let expected = vec![
            change("a.txt", PatchChangeKind::Add, "one\ntwo\n"),
            change("b.txt", PatchChangeKind::Update { move_path: Some("c.txt".into()) }, "@@\n-x\n+y\n"),
            change("d.txt", PatchChangeKind::Delete, ""),
        ];
        for size in 1..PATCH.len() {
            let mut stream = PatchStream::default();
            let fragments = PATCH.as_bytes().chunks(size).map(|chunk| std::str::from_utf8(chunk).unwrap());
            let shown = fragments.filter_map(|fragment| stream.push(fragment)).last();
            assert_eq!(shown.as_ref(), Some(&expected), "{size}");
        }
    }

    #[test]
    fn a_line_that_has_not_ended_is_not_shown() {
        let mut stream = PatchStream::default();
        assert_eq!(stream.push("*** Begin Patch\n*** Add File: a"), None);
        assert_eq!(stream.push(".txt\n+on"), Some(vec![change("a.txt", PatchChangeKind::Add, "")]));
        assert_eq!(stream.push("e"), None);
    }
}
