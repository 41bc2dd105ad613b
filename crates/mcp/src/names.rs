//! The names by which a model calls the tools of servers.

use std::collections::HashSet;
use std::fmt::Write as _;

use sha1::{Digest, Sha1};

/// The longest name that model providers accept.
const MAX_NAME: usize = 64;
/// What is kept of a longer name in front of its hash.
const KEPT: usize = MAX_NAME - 40;
/// The hash digits that tell names apart which are the same once sanitised.
const SUFFIX: usize = 8;

/// A tool under the name that the model gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTool<T> {
    pub name: String,
    pub tool: T,
}

/// Replaces every character that providers refuse.
pub fn sanitised(name: &str) -> String {
    name.chars().map(|char| if char.is_ascii_alphanumeric() || char == '_' { char } else { '_' }).collect()
}

/// The model's name of a tool whose raw name is `mcp__<server>__<tool>`.
pub fn model_name(raw: &str) -> String {
    let name = sanitised(raw);
    if name.len() <= MAX_NAME { name } else { format!("{}{}", &name[..KEPT], hash(raw)) }
}

/// Names all tools of a turn, sorted by name. Of several that would have the same name the first keeps it, the others
/// get a hash of their raw name; a raw name that comes again is left out.
pub fn model_names<T>(tools: impl IntoIterator<Item = (String, T)>) -> Vec<NamedTool<T>> {
    let (mut raw_names, mut taken, mut named) = (HashSet::new(), HashSet::new(), Vec::new());
    for (raw, tool) in tools {
        if !raw_names.insert(raw.clone()) {
            continue;
        }
        let mut name = model_name(&raw);
        if taken.contains(&name) {
            name.truncate(MAX_NAME - SUFFIX - 1);
            name = format!("{name}_{}", &hash(&raw)[..SUFFIX]);
            if taken.contains(&name) {
                continue;
            }
        }
        taken.insert(name.clone());
        named.push(NamedTool { name, tool });
    }
    named.sort_by(|a, b| a.name.cmp(&b.name));
    named
}

fn hash(raw: &str) -> String {
    Sha1::digest(raw.as_bytes()).iter().fold(String::with_capacity(40), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_sanitised_and_long_ones_end_in_a_hash() {
        assert_eq!(model_name("mcp__my-srv__do.it"), "mcp__my_srv__do_it");
        assert_eq!(model_name("mcp__s__naïve"), "mcp__s__na_ve");
        let long = model_name(&format!("mcp__srv__{}", "x".repeat(80)));
        assert_eq!((long.len(), &long[..24]), (64, "mcp__srv__xxxxxxxxxxxxxx"));
    }

    #[test]
    fn tools_whose_names_collide_are_all_offered() {
        let tools = ["mcp__s__do.it", "mcp__s__do_it", "mcp__s__a", "mcp__s__do.it"];
        let named = model_names(tools.map(|raw| (raw.to_owned(), raw)));
        let names: Vec<_> = named.iter().map(|named| (named.name.as_str(), named.tool)).collect();
        let suffixed = format!("mcp__s__do_it_{}", &hash("mcp__s__do_it")[..8]);
        assert_eq!(
            names,
            [("mcp__s__a", "mcp__s__a"), ("mcp__s__do_it", "mcp__s__do.it"), (&suffixed, "mcp__s__do_it")]
        );
    }

    proptest! {
        #[test]
        fn every_name_is_unique_and_one_that_providers_accept(raw in prop::collection::vec(".{0,80}", 0..20)) {
            let named = model_names(raw.into_iter().map(|raw| (raw, ())));
            let names: HashSet<_> = named.iter().map(|named| named.name.clone()).collect();
            prop_assert_eq!(names.len(), named.len());
            for name in names {
                prop_assert!(name.len() <= MAX_NAME);
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
            }
        }
    }
}
