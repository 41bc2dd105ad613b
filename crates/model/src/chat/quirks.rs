//! What differs between providers of Chat Completions, as data. A provider that is not in the table gets [`COMMON`]:
//! what almost all accept, and nothing that some reject.

/// How requests to one provider are built.
#[derive(Debug, PartialEq)]
pub(super) struct Quirks {
    /// Accepts the role `developer` anywhere in a conversation. Others get one `system` message, the first.
    pub developer: bool,
    /// Reports usage only with `stream_options.include_usage`.
    pub stream_options: bool,
    pub reasoning: ReasoningReturn,
    /// The provider's names for efforts, where they differ.
    pub efforts: &'static [(&'static str, &'static str)],
    /// Supports `json_schema` as response format. Others get `json_object` and the schema as text.
    pub schemas: bool,
    /// Accepts `prompt_cache_key`.
    pub cache_key: bool,
    /// Accepts `verbosity` and `service_tier`.
    pub openai_fields: bool,
    pub call_ids: CallIds,
}

/// How past reasoning is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningReturn {
    /// Not at all.
    Dropped,
    /// Its text in the field that it came in, until the next user message: models that reason between calls need it.
    Field,
    /// As [`ReasoningReturn::Field`], but as `reasoning_details` where those came.
    Details,
}

/// The format of call ids.
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

/// For providers that know three efforts only.
const LOW_TO_HIGH: &[(&str, &str)] = &[("minimal", "low"), ("xhigh", "high"), ("max", "high")];

/// Looked up by provider id, or by suffix of the host name.
const TABLE: &[(&str, &str, Quirks)] = &[
    ("openai-api", "api.openai.com", OPENAI),
    ("azure", ".openai.azure.com", OPENAI),
    ("openrouter", "openrouter.ai", Quirks { reasoning: ReasoningReturn::Details, ..COMMON }),
    // Supports JSON mode only; the schema is sent as text.
    ("deepseek", "api.deepseek.com", Quirks { schemas: false, efforts: LOW_TO_HIGH, ..COMMON }),
    // Reports usage without being asked, and rejects unknown fields.
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

    /// Maps an effort to the provider's name for it.
    pub fn effort<'a>(&self, effort: &'a str) -> &'a str {
        self.efforts.iter().find(|(ours, _)| *ours == effort).map_or(effort, |(_, theirs)| theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_matched_by_id_or_host() {
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
    fn efforts_map_to_the_providers_names() {
        assert_eq!(Quirks::of("groq", None).effort("xhigh"), "high");
        assert_eq!(Quirks::of("groq", None).effort("none"), "none");
        assert_eq!(Quirks::of("openai-api", None).effort("xhigh"), "xhigh");
    }
}
