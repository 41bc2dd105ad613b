//! Path values: which keys hold paths, and what relative ones are relative to. Other values that look like paths (an
//! MCP server's `cwd`, a program) are not changed.

use std::path::{Path, PathBuf};

use loomd_protocol::AbsolutePathBuf;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The keys that hold a path. `*` stands for every member of a table and every element of an array.
const PATH_KEYS: &[&str] = &[
    "experimental_compact_prompt_file",
    "experimental_instructions_file",
    "js_repl_node_module_dirs.*",
    "js_repl_node_path",
    "log_dir",
    "loomd.record",
    "loomd.scenario",
    "model_catalog_json",
    "model_instructions_file",
    "model_providers.*.auth.cwd",
    "otel.*.*.tls.*",
    "profiles.*.experimental_compact_prompt_file",
    "profiles.*.experimental_instructions_file",
    "profiles.*.js_repl_node_module_dirs.*",
    "profiles.*.js_repl_node_path",
    "profiles.*.model_catalog_json",
    "profiles.*.model_instructions_file",
    "profiles.*.zsh_path",
    "sandbox_workspace_write.writable_roots.*",
    "skills.config.*.path",
    "sqlite_home",
    "zsh_path",
];

/// The base of relative paths and `~` in one layer.
pub(crate) struct PathBase<'a> {
    /// The folder of the file.
    pub folder: AbsolutePathBuf,
    /// `$HOME`; without it `~` is an ordinary name.
    pub user_home: Option<&'a Path>,
}

impl PathBase<'_> {
    pub fn resolve(&self, table: &mut Table) {
        let mut root = Value::Table(std::mem::take(table));
        self.resolve_all(&mut root);
        if let Value::Table(resolved) = root {
            *table = resolved;
        }
    }

    pub fn resolve_spanned(&self, table: &mut DeTable<'_>) {
        let mut root = Spanned::new(0..0, DeValue::Table(std::mem::take(table)));
        self.resolve_all(&mut root);
        if let DeValue::Table(resolved) = root.into_inner() {
            *table = resolved;
        }
    }

    fn resolve_all(&self, root: &mut impl Node) {
        for key in PATH_KEYS {
            self.resolve_key(root, key);
        }
    }

    fn resolve_key(&self, node: &mut impl Node, key: &str) {
        let (first, rest) = match key.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (key, None),
        };
        let each = |child: &mut _| match rest {
            Some(rest) => self.resolve_key(child, rest),
            None => self.resolve_text(child),
        };
        match first {
            "*" => node.children().for_each(each),
            name => node.child(name).into_iter().for_each(each),
        }
    }

    fn resolve_text(&self, node: &mut impl Node) {
        let Some(written) = node.text() else { return };
        let absolute = AbsolutePathBuf::resolve(&self.folder, self.expand(written));
        if let Ok(text) = absolute.into_path_buf().into_os_string().into_string() {
            node.set_text(text);
        }
    }

    fn expand(&self, written: &str) -> PathBuf {
        match (self.user_home, written.strip_prefix('~')) {
            (Some(home), Some("")) => home.into(),
            (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => written.into(),
        }
    }
}

/// The two kinds of TOML tree: with and without spans.
trait Node {
    fn child(&mut self, key: &str) -> Option<&mut Self>;
    fn children(&mut self) -> Box<dyn Iterator<Item = &mut Self> + '_>;
    fn text(&self) -> Option<&str>;
    fn set_text(&mut self, text: String);
}

impl Node for Value {
    fn child(&mut self, key: &str) -> Option<&mut Self> {
        self.as_table_mut()?.get_mut(key)
    }

    fn children(&mut self) -> Box<dyn Iterator<Item = &mut Self> + '_> {
        match self {
            Self::Table(table) => Box::new(table.iter_mut().map(|(_, value)| value)),
            Self::Array(items) => Box::new(items.iter_mut()),
            _ => Box::new(std::iter::empty()),
        }
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn set_text(&mut self, text: String) {
        *self = Self::String(text);
    }
}

impl Node for Spanned<DeValue<'_>> {
    fn child(&mut self, key: &str) -> Option<&mut Self> {
        match self.get_mut() {
            DeValue::Table(table) => table.get_mut(key),
            _ => None,
        }
    }

    fn children(&mut self) -> Box<dyn Iterator<Item = &mut Self> + '_> {
        match self.get_mut() {
            DeValue::Table(table) => Box::new(table.iter_mut().map(|(_, value)| value)),
            DeValue::Array(items) => Box::new(items.iter_mut()),
            _ => Box::new(std::iter::empty()),
        }
    }

    fn text(&self) -> Option<&str> {
        self.get_ref().as_str()
    }

    fn set_text(&mut self, text: String) {
        *self.get_mut() = DeValue::String(text.into());
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;

    fn check(written: &str, resolved: &str) {
        let folder = AbsolutePathBuf::new("/home/u/.codex").unwrap();
        let base = PathBase { folder, user_home: Some(Path::new("/home/u")) };
        let expected: Table = resolved.parse().unwrap();

        let mut table = written.parse().unwrap();
        base.resolve(&mut table);
        assert_eq!(table, expected);

        let mut spanned = DeTable::parse(written).unwrap();
        base.resolve_spanned(spanned.get_mut());
        assert_eq!(Table::deserialize(toml::Deserializer::from(spanned)).unwrap(), expected);
    }

    #[test]
    fn relative_paths_are_resolved_against_the_folder_of_the_file() {
        check("log_dir = 'logs'", "log_dir = '/home/u/.codex/logs'");
        check("log_dir = '../a/./b/'", "log_dir = '/home/u/a/b'");
        check("log_dir = '/var/log'", "log_dir = '/var/log'");
        check("log_dir = ''", "log_dir = '/home/u/.codex'");
    }

    #[test]
    fn a_tilde_expands_to_the_users_home() {
        check("log_dir = '~'", "log_dir = '/home/u'");
        check("log_dir = '~/x'", "log_dir = '/home/u/x'");
        check("log_dir = '~//x'", "log_dir = '/home/u/x'");
        check("log_dir = '~x'", "log_dir = '/home/u/.codex/~x'");
    }

    #[test]
    fn paths_in_tables_and_arrays_are_resolved() {
        check(
            "sandbox_workspace_write.writable_roots = ['a', 5, '/b']\nprofiles.p.zsh_path = 'z'",
            "sandbox_workspace_write.writable_roots = ['/home/u/.codex/a', 5, '/b']\n\
             profiles.p.zsh_path = '/home/u/.codex/z'",
        );
        check("skills.config = [{ path = 's' }]", "skills.config = [{ path = '/home/u/.codex/s' }]");
        check(
            "otel.exporter.otlp-http = { endpoint = 'e', tls = { ca-certificate = 'c' } }",
            "otel.exporter.otlp-http = { endpoint = 'e', tls = { ca-certificate = '/home/u/.codex/c' } }",
        );
    }

    #[test]
    fn other_values_are_unchanged() {
        for text in ["log_dir = 5", "profiles = 1", "model = './m'", "mcp_servers.s.cwd = 'x'", "[log_dir]\na = 'b'"] {
            check(text, text);
        }
    }
}
