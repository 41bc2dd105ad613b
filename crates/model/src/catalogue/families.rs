//! Families of other vendors' models, by prefix of the model name. Enough is known to fill the context window and offer
//! tools, too little to list them in `model/list`. `model_context_window` and similar keys override it.

use loomd_protocol::InputModality;

use super::ModelInfo;

struct Family {
    start: &'static str,
    context_window: i64,
    images: bool,
    /// Accepts a reasoning effort.
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

/// Returns what the family of a model implies about it.
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
    fn family_models_are_known_but_not_listed() {
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
