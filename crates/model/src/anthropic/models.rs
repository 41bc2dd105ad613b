//! What differs between the models of this wire, as data: the output limit, and how thinking is requested. A model that
//! is not in the table is treated as a new one.

/// How thinking is requested of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// The model decides; `effort` says how much.
    Adaptive,
    /// The request gives a token budget.
    Budget,
    /// The model does not support thinking.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    pub thinking: Thinking,
    /// `max_tokens` of a request. The API requires it and rejects values above the model's limit.
    pub max_tokens: u64,
}

/// Enough for long edits, and within the limit of every model of the last generations.
const MAX_TOKENS: u64 = 32_000;

const NEW: Traits = Traits { thinking: Thinking::Adaptive, max_tokens: MAX_TOKENS };
const BUDGET: Traits = Traits { thinking: Thinking::Budget, max_tokens: MAX_TOKENS };

/// Looked up by prefix of the model name; the first match counts.
const TABLE: &[(&str, Traits)] = &[
    ("claude-3-7", BUDGET),
    ("claude-3-5", Traits { thinking: Thinking::Never, max_tokens: 8_192 }),
    ("claude-3", Traits { thinking: Thinking::Never, max_tokens: 4_096 }),
    ("claude-opus-4-0", BUDGET),
    ("claude-opus-4-1", BUDGET),
    ("claude-opus-4-2025", BUDGET),
    ("claude-opus-4-5", BUDGET),
    ("claude-sonnet-4-0", BUDGET),
    ("claude-sonnet-4-2025", BUDGET),
    ("claude-sonnet-4-5", BUDGET),
    ("claude-haiku-4-5", BUDGET),
    ("claude-", NEW),
];

/// Models of other vendors behind the same API: their servers know budgets only.
const OTHER: Traits = Traits { thinking: Thinking::Budget, max_tokens: MAX_TOKENS };

/// Thinking budgets by effort. Each is below [`MAX_TOKENS`], so some of the output is left for the answer.
const BUDGETS: &[(&str, u64)] = &[("minimal", 1_024), ("low", 4_096), ("medium", 8_192), ("high", 16_384)];

impl Traits {
    pub fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        TABLE.iter().find(|(start, _)| name.starts_with(start)).map_or(OTHER, |(_, traits)| *traits)
    }
}

pub(super) fn budget(effort: &str) -> u64 {
    BUDGETS.iter().find(|(name, _)| *name == effort).map_or(24_576, |(_, tokens)| *tokens)
}

/// Maps an effort to the API's name for it.
pub(super) fn effort(effort: &str) -> &str {
    match effort {
        "minimal" => "low",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_matched_by_name_prefix() {
        for (model, thinking, max_tokens) in [
            ("claude-opus-4-5-20251101", Thinking::Budget, MAX_TOKENS),
            ("claude-opus-4-6", Thinking::Adaptive, MAX_TOKENS),
            ("anthropic/claude-sonnet-5", Thinking::Adaptive, MAX_TOKENS),
            ("claude-3-5-haiku-20241022", Thinking::Never, 8_192),
            ("claude-3-haiku-20240307", Thinking::Never, 4_096),
            ("glm-5", Thinking::Budget, MAX_TOKENS),
        ] {
            assert_eq!(Traits::of(model), Traits { thinking, max_tokens }, "{model}");
        }
    }

    #[test]
    fn every_budget_is_below_max_tokens() {
        for effort in ["minimal", "low", "medium", "high", "xhigh", "max"] {
            assert!((1_024..MAX_TOKENS).contains(&budget(effort)), "{effort}");
        }
    }
}
