//! Any text as a shell script: taking it apart, saying what it does and whether it is safe never panics, and
//! nothing is both known to be safe and dangerous.

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let argv = ["bash", "-lc", text].map(str::to_owned);
    let _ = loomd_exec::Script::parse(text);
    assert!(!loomd_exec::command_actions(&argv).iter().any(|action| format!("{action:?}").is_empty()));
    assert!(!(loomd_exec::is_known_safe(&argv) && loomd_exec::is_dangerous(&argv)));
    let _ = loomd_exec::join(&argv);
}
