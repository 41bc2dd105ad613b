//! Any text as a `SKILL.md`: it is understood or refused, in bounded time, and its fields are lines within their limits.

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(head) = loomd_skills::FrontMatter::parse(text) {
        for line in [Some(&head.description), head.name.as_ref(), head.short_description.as_ref()].into_iter().flatten()
        {
            assert!(!line.is_empty() && !line.contains('\n'));
        }
        assert!(head.description.chars().count() <= 1024);
    }
}
