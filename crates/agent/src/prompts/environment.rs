//! The environment context: where and when a turn runs.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// Displayed as the `<environment_context>` element. Values are not escaped, so that paths can be used as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    pub cwd: PathBuf,
    /// The name of the user's shell, without a path.
    pub shell: String,
    /// `YYYY-MM-DD` in the time zone below.
    pub current_date: String,
    pub timezone: String,
    /// Only where an administrator manages the network.
    pub network: Option<ManagedNetwork>,
    /// Open child agents: id and nickname.
    pub subagents: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedNetwork {
    pub enabled: bool,
    pub allowed: Vec<String>,
    pub denied: Vec<String>,
}

impl Display for Environment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "<environment_context>")?;
        writeln!(f, "  <cwd>{}</cwd>", self.cwd.display())?;
        writeln!(f, "  <shell>{}</shell>", self.shell)?;
        writeln!(f, "  <current_date>{}</current_date>", self.current_date)?;
        writeln!(f, "  <timezone>{}</timezone>", self.timezone)?;
        if let Some(network) = &self.network {
            writeln!(f, "  <network enabled=\"{}\">", network.enabled)?;
            for host in &network.allowed {
                writeln!(f, "    <allowed>{host}</allowed>")?;
            }
            for host in &network.denied {
                writeln!(f, "    <denied>{host}</denied>")?;
            }
            writeln!(f, "  </network>")?;
        }
        if !self.subagents.is_empty() {
            writeln!(f, "  <subagents>")?;
            for (id, nickname) in &self.subagents {
                writeln!(f, "    - {id}: {nickname}")?;
            }
            writeln!(f, "  </subagents>")?;
        }
        write!(f, "</environment_context>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Environment {
        Environment {
            cwd: "/w".into(),
            shell: "bash".into(),
            current_date: "2026-11-15".into(),
            timezone: "Etc/UTC".into(),
            ..Environment::default()
        }
    }

    #[test]
    fn a_plain_environment_has_four_lines() {
        assert_eq!(
            plain().to_string(),
            "<environment_context>\n  <cwd>/w</cwd>\n  <shell>bash</shell>\n  <current_date>2026-11-15</current_date>\n  \
             <timezone>Etc/UTC</timezone>\n</environment_context>"
        );
    }

    #[test]
    fn a_managed_network_and_child_agents_are_listed() {
        let network = ManagedNetwork {
            enabled: true,
            allowed: vec!["a.test".into(), "b.test".into()],
            denied: vec!["c.test".into()],
        };
        let environment =
            Environment { network: Some(network), subagents: vec![("id1".into(), "Ada".into())], ..plain() };
        let text = environment.to_string();
        assert_eq!(
            text.split_once("</timezone>\n").unwrap().1,
            "  <network enabled=\"true\">\n    <allowed>a.test</allowed>\n    <allowed>b.test</allowed>\n    \
             <denied>c.test</denied>\n  </network>\n  <subagents>\n    - id1: Ada\n  </subagents>\n</environment_context>"
        );
    }
}
