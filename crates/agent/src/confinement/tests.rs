use std::path::{Path, PathBuf};

use loomd_config::{ConfigSources, LiveSources, LoadRequest, LoadedConfig, ManagedRequirements, Overrides, Settings};
use loomd_exec::sandbox::Grant;
use loomd_exec::{Environment, NETWORK_DISABLED};
use loomd_protocol::{AbsolutePathBuf, ActivePermissionProfile, NetworkAccess, ReadOnlyAccess, SandboxMode};

use super::*;

/// A home with a configuration and managed requirements.
struct Setting {
    home: tempfile::TempDir,
    loaded: LoadedConfig,
    config: Settings,
}

fn setting(config: &str, requirements: Option<&str>) -> Setting {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let managed = ManagedRequirements::default();
    managed.set(Ok(requirements.map(str::to_owned)));
    let sources = ConfigSources {
        home: AbsolutePathBuf::new(home.path()).unwrap(),
        system_file: None,
        user_home: None,
        flags: Overrides::default(),
        live: LiveSources { managed: managed.into(), ..LiveSources::default() },
    };
    let cwd = AbsolutePathBuf::new(home.path()).unwrap();
    let loaded = loomd_config::load(&LoadRequest { cwd: Some(&cwd), ..sources.request() }).unwrap();
    let config = loomd_config::resolve(&loaded).unwrap();
    Setting { home, loaded, config }
}

impl Setting {
    fn home(&self) -> AbsolutePathBuf {
        AbsolutePathBuf::new(self.home.path()).unwrap()
    }

    fn of_folder(&self) -> CommandPolicy {
        CommandPolicy::of_folder(&self.config, self.loaded.trust, &self.home(), self.home.path()).unwrap()
    }

    fn sandbox(&self, policy: &CommandPolicy, grants: &[Grants]) -> Option<Sandbox> {
        policy.confinement(&self.config).sandbox(Surroundings::new(self.home.path()), grants)
    }

    fn launch(&self, policy: &CommandPolicy) -> Launch {
        policy.confinement(&self.config).launch(self.sandbox(policy, &[]).as_ref()).unwrap()
    }
}

const NO_NETWORK: &str = "[experimental_network]\nenabled = false\n";

fn external(network_access: NetworkAccess) -> CommandPolicy {
    CommandPolicy::of_policy(SandboxPolicy::ExternalSandbox { network_access })
}

fn read_only() -> CommandPolicy {
    let access = ReadOnlyAccess::FullAccess;
    CommandPolicy::of_policy(SandboxPolicy::ReadOnly { access, network_access: false })
}

#[test]
fn a_folder_without_a_trust_level_is_read_only() {
    let untrusted = setting("", None);
    let profile = ActivePermissionProfile { id: ":read-only".into(), extends: None };
    assert_eq!(untrusted.of_folder(), CommandPolicy { profile: Some(profile), ..read_only() });
    let configured = setting("sandbox_mode = \"danger-full-access\"", None);
    assert_eq!(configured.of_folder(), CommandPolicy::of_policy(SandboxPolicy::DangerFullAccess));
}

#[test]
fn the_memories_are_writable_in_a_workspace() {
    let setting = setting("", None);
    let policy = CommandPolicy::of_mode(SandboxMode::WorkspaceWrite, &setting.config.config, &setting.home());
    let SandboxPolicy::WorkspaceWrite { writable_roots, .. } = policy.policy else { panic!("{policy:?}") };
    assert_eq!(writable_roots, [AbsolutePathBuf::resolve(&setting.home(), "memories")]);
}

#[test]
fn grants_widen_the_sandbox_of_a_policy() {
    let setting = setting("", None);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().canonicalize().unwrap().join("file");
    let grants = Grants { write: vec![Grant::new(folder.path())], network: true, ..Grants::default() };
    let narrow = setting.sandbox(&read_only(), &[]).unwrap();
    let wide = setting.sandbox(&read_only(), &[Grants::default(), grants]).unwrap();
    assert_eq!((narrow.can_write(&file), narrow.network_disabled()), (false, true));
    assert_eq!((wide.can_write(&file), wide.network_disabled()), (true, false));
}

#[test]
fn a_policy_that_confines_nothing_has_no_sandbox() {
    let setting = setting("", None);
    for policy in [CommandPolicy::of_policy(SandboxPolicy::DangerFullAccess), external(NetworkAccess::Enabled)] {
        assert!(setting.sandbox(&policy, &[]).is_none(), "{policy:?}");
        let launch = setting.launch(&policy);
        assert!(launch.sandbox().is_none() && !launch.network_disabled, "{policy:?}");
    }
    assert!(setting.launch(&external(NetworkAccess::Restricted)).network_disabled);
}

#[test]
fn a_required_network_also_holds_for_unconfined_commands_but_not_for_external_sandboxes() {
    let setting = setting("", Some(NO_NETWORK));
    let free = setting.launch(&CommandPolicy::of_policy(SandboxPolicy::DangerFullAccess));
    let sandbox = free.sandbox().unwrap();
    assert!(sandbox.network_disabled() && !sandbox.confines_files());
    assert!(free.network_disabled);
    let outside = setting.launch(&external(NetworkAccess::Enabled));
    assert!(outside.sandbox().is_none() && !outside.network_disabled);
}

#[test]
fn a_users_own_command_is_never_confined() {
    let setting = setting("", Some(NO_NETWORK));
    let launch = read_only();
    let launch = launch.confinement(&setting.config).launch_unconfined();
    assert!(launch.sandbox().is_none() && !launch.network_disabled);
}

#[test]
fn credentials_are_withheld_only_from_commands_that_are_kept_from_files() {
    let setting = setting(
        "model_provider = \"x\"\n[model_providers.x]\nname = \"X\"\nbase_url = \"http://127.0.0.1:1\"\nenv_key = \"X_TOKEN\"\n",
        None,
    );
    let mut inherited = Environment::default();
    inherited.set("X_TOKEN", "secret");
    let token = |policy: &CommandPolicy| {
        let launch = setting.launch(policy);
        let env = launch.environment(&inherited, &setting.config.config, VariableRequest::default());
        (env.get("X_TOKEN").map(str::to_owned), env.get(NETWORK_DISABLED).map(str::to_owned))
    };
    assert_eq!(token(&read_only()), (None, Some("1".into())));
    let free = CommandPolicy::of_policy(SandboxPolicy::DangerFullAccess);
    assert_eq!(token(&free), (Some("secret".into()), None));
}

#[test]
fn a_client_cannot_hide_from_its_command_that_the_network_is_disabled() {
    let setting = setting("", None);
    let environment = Environment::default();
    let surroundings =
        ClientSurroundings { workspace: Path::new("/"), home: setting.home.path(), environment: &environment };
    let request = ClientCommand {
        argv: vec!["true".into()],
        cwd: Some(PathBuf::from("/")),
        env: [(NETWORK_DISABLED.to_owned(), None), ("MINE".to_owned(), Some("1".to_owned()))].into(),
        sandbox_policy: None,
        permission_profile: None,
    };
    let policy = external(NetworkAccess::Restricted);
    let launch = launch_for_client(&policy, &setting.config, request, &surroundings).unwrap();
    let env = launch.command.env;
    assert_eq!((env.get(NETWORK_DISABLED), env.get("MINE")), (Some("1"), Some("1")));
    assert!(launch.sandbox.is_none() && launch.proxy.is_none());
}
