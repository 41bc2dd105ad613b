//! What models of this wire do differently, as data: how much they may say at once, and how they are told to
//! think. A model that is not in the table is taken for a new one.

/// How a model is told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// It decides by itself; the effort says how much.
    Adaptive,
    /// It gets a number of tokens for it.
    Budget,
    /// It cannot.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    pub thinking: Thinking,
    /// The most tokens of an answer. It has to be provider_message, and too much is refused.
    pub max_tokens: u64,
}

/// Enough for long edits, and no model of the last generations takes less.
const MAX_TOKENS: u64 = 32_000;

const NEW: Traits = Traits { thinking: Thinking::Adaptive, max_tokens: MAX_TOKENS };
const BUDGET: Traits = Traits { thinking: Thinking::Budget, max_tokens: MAX_TOKENS };

/// By the beginning of the name, the first that fits.
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

/// Another maker's model behind the same wire: budgets are what such servers know.
const OTHER: Traits = Traits { thinking: Thinking::Budget, max_tokens: MAX_TOKENS };

/// How many tokens of thinking an effort stands for. All leave room for an answer.
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

/// What an effort is called here.
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
    fn a_model_is_known_by_the_beginning_of_its_name() {
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
    fn every_budget_leaves_room_for_an_answer() {
        for effort in ["minimal", "low", "medium", "high", "xhigh", "max"] {
            assert!((1_024..MAX_TOKENS).contains(&budget(effort)), "{effort}");
        }
    }
}
