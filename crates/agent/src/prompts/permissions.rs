//! The permissions section: what commands may access, when an approval is requested, and how the model requests one. It
//! only describes; `guard` and `confinement` enforce.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use loomd_protocol::{AbsolutePathBuf, AskForApproval, NetworkAccess, ReadOnlyAccess, SandboxPolicy};

/// Displayed as the `<permissions instructions>` element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Permissions<'a> {
    pub sandbox: &'a SandboxPolicy,
    pub approval: &'a AskForApproval,
    pub cwd: &'a Path,
    /// Whether a command can request additional permissions (feature `exec_permission_approvals`).
    pub additional_permissions: bool,
    /// Whether there is a tool `request_permissions`.
    pub request_permissions: bool,
    /// The paths that a permission profile denies.
    pub closed: &'a [AbsolutePathBuf],
    /// Whether commands reach the network only through a proxy.
    pub proxied: bool,
}

impl Display for Permissions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "<permissions instructions>\n# What commands may do\n\n")?;
        self.sandbox(f)?;
        if !self.closed.is_empty() {
            write!(f, " These cannot even be read: {}.", list(self.closed))?;
        }
        if self.proxied {
            write!(
                f,
                " Whatever that says, commands reach the network only through the proxy that their environment names, and only \
                 hosts that are allowed. What it blocks, it says so of; do not look for a way around it."
            )?;
        }
        write!(f, "\n\n# When the user is asked\n\n")?;
        self.approval(f)?;
        if self.request_permissions {
            write!(
                f,
                "\n\nWith the tool `request_permissions` you can ask for network access or for folders to read or write, \
                 for all later commands at once. Ask for no more than the task needs."
            )?;
        }
        write!(f, "\n</permissions instructions>")
    }
}

impl Permissions<'_> {
    fn sandbox(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.sandbox {
            SandboxPolicy::DangerFullAccess => write!(
                f,
                "Sandbox mode is `danger-full-access`: no sandbox holds you back. Commands can read and write every file \
                 that the user can. Network access is enabled."
            ),
            SandboxPolicy::ExternalSandbox { network_access } => {
                write!(
                    f,
                    "Sandbox mode is `external-sandbox`: you run in an environment that somebody else confines. What it \
                     allows shows when you try. "
                )?;
                network(f, *network_access == NetworkAccess::Enabled)
            }
            SandboxPolicy::ReadOnly { access, network_access } => {
                write!(f, "Sandbox mode is `read-only`: commands cannot write any file. ")?;
                reading(f, access)?;
                network(f, *network_access)
            }
            SandboxPolicy::WorkspaceWrite {
                writable_roots,
                read_only_access,
                network_access,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
            } => {
                write!(
                    f,
                    "Sandbox mode is `workspace-write`: commands can write only below these folders: `{}`",
                    self.cwd.display()
                )?;
                for root in writable_roots.iter().filter(|root| ***root != *self.cwd) {
                    write!(f, ", `{}`", root.display())?;
                }
                if !exclude_slash_tmp {
                    write!(f, ", `/tmp`")?;
                }
                if !exclude_tmpdir_env_var {
                    write!(f, ", `$TMPDIR`")?;
                }
                write!(
                    f,
                    ". What is called `.git`, `.agents` or `.codex` directly in one of them cannot be written: `git commit`, \
                     for instance, needs more. "
                )?;
                reading(f, read_only_access)?;
                network(f, *network_access)
            }
        }
    }

    fn approval(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let confined = !matches!(self.sandbox, SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. });
        match self.approval {
            AskForApproval::Never => write!(
                f,
                "Approval policy is `never`: nobody is there to be asked, and a call that asks is refused. Work with what \
                 you may do. If the task cannot be done that way, do the rest and say at the end what was missing."
            ),
            AskForApproval::Untrusted => write!(
                f,
                "Approval policy is `untrusted`: the user is asked before every command that is not known to be harmless, \
                 and before every edit. That happens by itself: make the call and do not ask in words as well. {NO_ASKING}"
            ),
            AskForApproval::OnFailure if confined => write!(
                f,
                "Approval policy is `on-failure`: commands run in the sandbox without a question. When one fails there, the \
                 user is asked whether it may run again outside of it. That happens by itself. {NO_ASKING}"
            ),
            AskForApproval::OnRequest if confined => self.on_request(f),
            AskForApproval::OnFailure => unconfined(f, "on-failure"),
            AskForApproval::OnRequest => unconfined(f, "on-request"),
            AskForApproval::Granular {
                sandbox_approval,
                rules,
                skill_approval,
                request_permissions,
                mcp_elicitations,
            } => {
                write!(
                    f,
                    "Approval policy is `granular`: only some kinds of questions reach the user, all others are declined \
                     for them at once."
                )?;
                for (asked, kind) in [
                    (sandbox_approval, "leaving the sandbox after a command failed in it, or edits outside of it"),
                    (rules, "commands that a rule wants to be asked about"),
                    (skill_approval, "scripts of skills"),
                    (request_permissions, "`request_permissions`"),
                    (mcp_elicitations, "questions of MCP servers"),
                ] {
                    write!(f, "\n- {}: {kind}", if *asked { "asked" } else { "declined" })?;
                }
                write!(f, "\n\n{NO_ASKING}")
            }
        }
    }

    fn on_request(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Approval policy is `on-request`: commands run in the sandbox without a question, and you decide when to ask \
             for more. To ask, make the call with\n\
             - `sandbox_permissions`: `\"require_escalated\"`, to run it outside of the sandbox\n\
             - `justification`: one short question to the user that says what for, such as \"May I download the missing \
             packages?\"\n\
             - `prefix_rule`, if similar commands will follow: the words they start with, such as `[\"npm\", \"install\"]`. \
             The user can then allow them all. Keep it narrow: no bare shell, interpreter, `git` or `sudo`, nothing that \
             deletes, and nothing with a script or a redirection in it.\n\n\
             Ask when the task needs it:\n\
             - A command has to write outside of the folders above, or has to reach the network while that is restricted.\n\
             - An important command failed and the sandbox is the likely reason, such as a denied permission, a read-only \
             file system or an unreachable host: make the same call again, asking. Do not ask in words first.\n\
             - A program needs the desktop.\n\
             - You are about to delete or overwrite something that the user did not ask you to.\n\n\
             Each command of a pipeline or a chain is judged by itself, so keep what needs approval in a call of its own. \
             Edits outside of the writable folders are asked about by themselves. If the user declines, take another way \
             or stop; do not ask for the same thing again."
        )?;
        if self.additional_permissions {
            write!(
                f,
                "\n\nWhen a command needs only a little more, prefer `sandbox_permissions`: \
                 `\"with_additional_permissions\"` with `additional_permissions`, which names `network` access or the \
                 folders under `file_system` that it has to read or write. It then stays in the sandbox."
            )?;
        }
        Ok(())
    }
}

const NO_ASKING: &str =
    "Leave `sandbox_permissions` and `justification` out: a call that asks for more is refused under this policy.";

fn unconfined(f: &mut Formatter<'_>, policy: &str) -> fmt::Result {
    write!(
        f,
        "Approval policy is `{policy}`: as no sandbox of ours confines your commands there is nothing to ask for, and they \
         run without a question. Leave `sandbox_permissions` out."
    )
}

fn network(f: &mut Formatter<'_>, enabled: bool) -> fmt::Result {
    write!(f, "Network access is {}.", if enabled { "enabled" } else { "restricted" })
}

fn reading(f: &mut Formatter<'_>, access: &ReadOnlyAccess) -> fmt::Result {
    let ReadOnlyAccess::Restricted { include_platform_defaults, readable_roots } = access else {
        return write!(f, "They can read every file. ");
    };
    write!(f, "They can read only ")?;
    if *include_platform_defaults {
        write!(f, "the system's programs and libraries, ")?;
    }
    write!(f, "what they can write, and what is below these folders: {}. ", list(readable_roots))
}

fn list(paths: &[AbsolutePathBuf]) -> String {
    if paths.is_empty() {
        return "none".into();
    }
    let quoted: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sandbox: &SandboxPolicy, approval: &AskForApproval) -> String {
        let permissions = Permissions {
            sandbox,
            approval,
            cwd: Path::new("/w"),
            additional_permissions: false,
            request_permissions: false,
            closed: &[],
            proxied: false,
        };
        permissions.to_string()
    }

    /// Checks the text about the sandbox.
    fn check_sandbox(policy: &str, expected: &str) {
        let policy = serde_json::from_str(policy).unwrap();
        let text = text(&policy, &AskForApproval::Never);
        let section = text.split("\n\n").nth(1).unwrap();
        assert_eq!(section, expected);
    }

    #[test]
    fn each_sandbox_is_described() {
        check_sandbox(
            r#"{"type":"dangerFullAccess"}"#,
            "Sandbox mode is `danger-full-access`: no sandbox holds you back. Commands can read and write every file that \
             the user can. Network access is enabled.",
        );
        check_sandbox(
            r#"{"type":"readOnly"}"#,
            "Sandbox mode is `read-only`: commands cannot write any file. They can read every file. Network access is \
             restricted.",
        );
        check_sandbox(
            r#"{"type":"readOnly","networkAccess":true,"access":{"type":"restricted","readableRoots":["/a","/b"]}}"#,
            "Sandbox mode is `read-only`: commands cannot write any file. They can read only the system's programs and \
             libraries, what they can write, and what is below these folders: `/a`, `/b`. Network access is enabled.",
        );
        check_sandbox(
            r#"{"type":"externalSandbox","networkAccess":"enabled"}"#,
            "Sandbox mode is `external-sandbox`: you run in an environment that somebody else confines. What it allows \
             shows when you try. Network access is enabled.",
        );
    }

    #[test]
    fn writable_folders_are_named_once() {
        let folders = |policy: &str| {
            let text = text(&serde_json::from_str(policy).unwrap(), &AskForApproval::Never);
            text.split_once("these folders: ").unwrap().1.split_once(". ").unwrap().0.to_owned()
        };
        assert_eq!(folders(r#"{"type":"workspaceWrite"}"#), "`/w`, `/tmp`, `$TMPDIR`");
        assert_eq!(
            folders(
                r#"{"type":"workspaceWrite","writableRoots":["/x","/w"],"excludeSlashTmp":true,"excludeTmpdirEnvVar":true}"#
            ),
            "`/w`, `/x`"
        );
    }

    #[test]
    fn only_the_policy_on_request_with_a_sandbox_explains_escalation() {
        let granular = AskForApproval::Granular {
            sandbox_approval: true,
            rules: false,
            skill_approval: false,
            request_permissions: false,
            mcp_elicitations: false,
        };
        let confined = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
        let policies = [
            AskForApproval::Untrusted,
            AskForApproval::OnFailure,
            AskForApproval::OnRequest,
            granular,
            AskForApproval::Never,
        ];
        for sandbox in [&confined, &SandboxPolicy::DangerFullAccess] {
            let tells: Vec<_> =
                policies.iter().map(|policy| text(sandbox, policy).contains("require_escalated")).collect();
            assert_eq!(tells, [false, false, *sandbox == confined, false, false], "{sandbox:?}");
        }
        for policy in &policies {
            let text = text(&confined, policy);
            assert!(text.starts_with("<permissions instructions>\n"), "{text}");
            assert!(text.ends_with("\n</permissions instructions>"), "{text}");
        }
        assert!(text(&confined, &policies[3]).contains("\n- asked: leaving the sandbox"));
        assert!(text(&confined, &policies[3]).contains("\n- declined: questions of MCP servers"));
    }

    #[test]
    fn additional_permissions_are_explained_where_they_are_enabled() {
        let sandbox = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
        let plain = Permissions {
            sandbox: &sandbox,
            approval: &AskForApproval::OnRequest,
            cwd: Path::new("/w"),
            additional_permissions: false,
            request_permissions: false,
            closed: &[],
            proxied: false,
        };
        let tells = |permissions: Permissions<'_>| {
            let text = permissions.to_string();
            (text.contains("with_additional_permissions"), text.contains("`request_permissions`"))
        };
        assert_eq!(tells(plain), (false, false));
        assert_eq!(tells(Permissions { additional_permissions: true, ..plain }), (true, false));
        assert_eq!(tells(Permissions { request_permissions: true, ..plain }), (false, true));
    }

    #[test]
    fn denied_paths_and_the_proxy_are_described() {
        let sandbox = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: true };
        let closed = [AbsolutePathBuf::new("/w/secret").unwrap()];
        let permissions = Permissions {
            sandbox: &sandbox,
            approval: &AskForApproval::Never,
            cwd: Path::new("/w"),
            additional_permissions: false,
            request_permissions: false,
            closed: &closed,
            proxied: true,
        };
        let text = permissions.to_string();
        assert!(text.contains("Network access is enabled. These cannot even be read: `/w/secret`. Whatever"), "{text}");
    }
}
