//! Any text as a rules file: it is understood or refused, in bounded time, and what it says can be asked for.

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(rules) = loomd_policy::rules::Rules::parse(text) {
        let command = ["git", "status"].map(str::to_owned);
        for found in rules.matches(&command) {
            assert!(!found.prefix().is_empty());
        }
    }
}
