//! Path values: which keys hold paths, and what relative ones are relative to. Other values that look like paths (an
//! MCP server's `cwd`, a program) are not changed.

use std::path::{Path, PathBuf};

use loomd_protocol::AbsolutePathBuf;
use toml::{Table, Value};

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

    fn resolve_all(&self, root: &mut Value) {
        for key in PATH_KEYS {
            self.resolve_key(root, key);
        }
    }

    fn resolve_key(&self, node: &mut Value, key: &str) {
        let (first, rest) = match key.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (key, None),
        };
        let each = |child: &mut Value| match rest {
            Some(rest) => self.resolve_key(child, rest),
            None => self.resolve_text(child),
        };
        match (first, node) {
            ("*", Value::Table(table)) => table.iter_mut().map(|(_, value)| value).for_each(each),
            ("*", Value::Array(items)) => items.iter_mut().for_each(each),
            (name, Value::Table(table)) => table.get_mut(name).into_iter().for_each(each),
            _ => {}
        }
    }

    fn resolve_text(&self, node: &mut Value) {
        let Some(written) = node.as_str() else { return };
        let absolute = AbsolutePathBuf::resolve(&self.folder, self.expand(written));
        if let Ok(text) = absolute.into_path_buf().into_os_string().into_string() {
            *node = Value::String(text);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, resolved: &str) {
        let folder = AbsolutePathBuf::new("/home/u/.codex").unwrap();
        let base = PathBase { folder, user_home: Some(Path::new("/home/u")) };
        let expected: Table = resolved.parse().unwrap();

        let mut table = written.parse().unwrap();
        base.resolve(&mut table);
        assert_eq!(table, expected);
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
