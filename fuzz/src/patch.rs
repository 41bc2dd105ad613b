//! Any text as a patch: reading it never panics, and what was read is read the same from how it is printed.

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(patch) = loomd_patch::parse(text) {
        let again = loomd_patch::parse(&patch.to_string());
        assert_eq!(again.ok().as_ref(), Some(&patch));
    }
    let _ = loomd_patch::intercept(&["bash", "-lc", text]);
}
