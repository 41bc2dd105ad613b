//! The environment context: where the agent is and when. Sent before the first user message and again
//! when it changes; whether it did is a comparison of two of these.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// Shown as the text of `<environment_context>`. Values stand as they are: the model should see the same
/// path that it has to type.
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

impl Environment {
    /// Whether the model should hear of this after it was told `before`. Shells do not change under a
    /// thread, and agents announce themselves.
    pub fn differs_from(&self, before: &Self) -> bool {
        let told = |it: &Self| (it.cwd.clone(), it.current_date.clone(), it.timezone.clone(), it.network.clone());
        told(self) != told(before)
    }
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

    #[test]
    fn a_new_folder_or_day_is_news_and_another_shell_is_not() {
        let differs = |change: fn(&mut Environment)| {
            let mut after = plain();
            change(&mut after);
            after.differs_from(&plain())
        };
        let found = [
            differs(|_| ()),
            differs(|it| it.shell = "zsh".into()),
            differs(|it| it.subagents.push(("id".into(), "Ada".into()))),
            differs(|it| it.cwd = "/x".into()),
            differs(|it| it.current_date = "2026-11-16".into()),
            differs(|it| it.timezone = "Europe/Berlin".into()),
            differs(|it| it.network = Some(ManagedNetwork::default())),
        ];
        assert_eq!(found, [false, false, false, true, true, true, true]);
    }
}
