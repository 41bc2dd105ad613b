//! Families of models of other makers, by the beginning of their names. Known well enough to fill the window
//! and to offer tools, too little to be listed. What is wrong here can be set right with
//! `model_context_window` and its like.

use loomd_protocol::InputModality;

use super::ModelInfo;

struct Family {
    start: &'static str,
    context_window: i64,
    images: bool,
    /// Understands being told how much to think.
    reasons: bool,
}

const fn family(start: &'static str, context_window: i64, images: bool, reasons: bool) -> Family {
    Family { start, context_window, images, reasons }
}

const FAMILIES: &[Family] = &[
    family("claude-", 200_000, true, true),
    family("codestral", 128_000, false, false),
    family("deepseek-", 128_000, false, false),
    family("devstral", 128_000, false, false),
    family("gemini-", 1_000_000, true, true),
    family("glm-", 128_000, false, false),
    family("grok-", 128_000, true, false),
    family("kimi-", 128_000, false, false),
    family("magistral", 128_000, false, false),
    family("mistral-", 128_000, false, false),
    family("qwen", 128_000, false, false),
    family("rehearsal", 200_000, true, true),
];

/// What is known about a model by its family.
pub(super) fn find(name: &str) -> Option<ModelInfo> {
    let last = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let family = FAMILIES.iter().find(|family| last.starts_with(family.start))?;
    let text = [InputModality::Text];
    let both = [InputModality::Text, InputModality::Image];
    Some(ModelInfo {
        known: true,
        context_window: family.context_window,
        supports_reasoning_summaries: family.reasons,
        parallel_tool_calls: true,
        input_modalities: if family.images { both.to_vec() } else { text.to_vec() },
        ..ModelInfo::unknown(name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Catalogue;

    #[test]
    fn a_family_is_known_and_not_listed() {
        let catalogue = Catalogue::bundled();
        for (name, window) in [
            ("claude-opus-5", 200_000),
            ("anthropic/claude-opus-5", 200_000),
            ("us/anthropic/claude-opus-5", 200_000),
            ("Qwen/Qwen3-Coder", 128_000),
            ("gpt-oss-20b", 128_000),
        ] {
            let found = catalogue.find(name);
            assert_eq!((&*found.slug, found.known, found.context_window), (name, true, window));
        }
        assert!(!catalogue.find("llama").known);
        assert!(catalogue.list(true).iter().all(|model| !model.id.starts_with("claude")));
    }
}
