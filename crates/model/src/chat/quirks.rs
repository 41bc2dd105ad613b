//! What providers of Chat Completions do differently, as data. A provider that is not in the table gets
//! [`COMMON`]: what almost all understand, and nothing that some refuse.

/// How one provider wants to be spoken to.
#[derive(Debug, PartialEq)]
pub(super) struct Quirks {
    /// Knows the role `developer`, anywhere in a conversation. Others get one `system` message, the first.
    pub developer: bool,
    /// `stream_options.include_usage` has to be set to be told what a call took.
    pub stream_options: bool,
    pub reasoning: ReasoningReturn,
    /// What efforts are called here, where that is another name.
    pub efforts: &'static [(&'static str, &'static str)],
    /// An answer can be made to follow a schema. Others can only be asked for JSON.
    pub schemas: bool,
    /// `prompt_cache_key` is understood.
    pub cache_key: bool,
    /// `verbosity` and `service_tier` are understood.
    pub openai_fields: bool,
    pub call_ids: CallIds,
}

/// What becomes of past reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningReturn {
    /// It is not sent back.
    Dropped,
    /// Its text goes back in the field that it came in, as long as the user has said nothing new: models that
    /// reason between calls need it.
    Field,
    /// As [`ReasoningReturn::Field`], or all `reasoning_details` where there are any.
    Details,
}

/// What the id of a call may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallIds {
    /// Up to 40 letters, digits, `_` and `-`.
    Common,
    /// Exactly nine letters and digits.
    Nine,
}

const COMMON: Quirks = Quirks {
    developer: false,
    stream_options: true,
    reasoning: ReasoningReturn::Field,
    efforts: &[],
    schemas: true,
    cache_key: false,
    openai_fields: false,
    call_ids: CallIds::Common,
};

const OPENAI: Quirks =
    Quirks { developer: true, reasoning: ReasoningReturn::Dropped, cache_key: true, openai_fields: true, ..COMMON };

/// Three efforts and no more.
const LOW_TO_HIGH: &[(&str, &str)] = &[("minimal", "low"), ("xhigh", "high"), ("max", "high")];

/// By id of the provider, or the end of its host's name.
const TABLE: &[(&str, &str, Quirks)] = &[
    ("openai-api", "api.openai.com", OPENAI),
    ("azure", ".openai.azure.com", OPENAI),
    ("openrouter", "openrouter.ai", Quirks { reasoning: ReasoningReturn::Details, ..COMMON }),
    // Only JSON as such; the schema is told in words.
    ("deepseek", "api.deepseek.com", Quirks { schemas: false, efforts: LOW_TO_HIGH, ..COMMON }),
    // Usage comes unasked, and fields that it does not know are refused.
    (
        "mistral",
        "api.mistral.ai",
        Quirks {
            stream_options: false,
            reasoning: ReasoningReturn::Dropped,
            cache_key: true,
            call_ids: CallIds::Nine,
            ..COMMON
        },
    ),
    ("groq", "api.groq.com", Quirks { reasoning: ReasoningReturn::Dropped, efforts: LOW_TO_HIGH, ..COMMON }),
    ("xai", "api.x.ai", Quirks { reasoning: ReasoningReturn::Dropped, efforts: LOW_TO_HIGH, ..COMMON }),
    ("gemini", "generativelanguage.googleapis.com", Quirks { reasoning: ReasoningReturn::Dropped, ..COMMON }),
];

impl Quirks {
    pub fn of(id: &str, host: Option<&str>) -> &'static Self {
        let fits = |(name, end, _): &&(&str, &str, Self)| *name == id || host.is_some_and(|host| host.ends_with(end));
        TABLE.iter().find(fits).map_or(&COMMON, |(_, _, quirks)| quirks)
    }

    /// The provider's own word for an effort.
    pub fn effort<'a>(&self, effort: &'a str) -> &'a str {
        self.efforts.iter().find(|(ours, _)| *ours == effort).map_or(effort, |(_, theirs)| theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_known_by_its_id_or_its_host() {
        for (id, host, expected) in [
            ("openrouter", None, ReasoningReturn::Details),
            ("mine", Some("openrouter.ai"), ReasoningReturn::Details),
            ("mine", Some("api.openai.com"), ReasoningReturn::Dropped),
            ("mine", Some("team.openai.azure.com"), ReasoningReturn::Dropped),
            ("mine", Some("localhost"), ReasoningReturn::Field),
            ("mine", None, ReasoningReturn::Field),
        ] {
            assert_eq!(Quirks::of(id, host).reasoning, expected, "{id} {host:?}");
        }
    }

    #[test]
    fn efforts_are_translated_where_that_is_needed() {
        assert_eq!(Quirks::of("groq", None).effort("xhigh"), "high");
        assert_eq!(Quirks::of("groq", None).effort("none"), "none");
        assert_eq!(Quirks::of("openai-api", None).effort("xhigh"), "xhigh");
    }
}
