use proptest::prelude::*;
use serde_json::json;

use super::*;

const CWD: &str = "/w";

fn resolve(text: &str) -> Result<(Permissions, Vec<String>), String> {
    let profile: PermissionProfile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let mut warnings = Vec::new();
    let permissions = Permissions::resolve("p", &profile, None, Some(Path::new("/home/u")), &mut warnings);
    let summaries = warnings.into_iter().map(|warning| warning.summary).collect();
    permissions.map(|permissions| (permissions, summaries)).map_err(|error| error.to_string())
}

fn policy(text: &str) -> Result<serde_json::Value, String> {
    let (permissions, _) = resolve(text)?;
    let policy = permissions.policy(Path::new(CWD)).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(policy).unwrap())
}

#[test]
fn a_profile_maps_to_the_closest_wire_policy() {
    let full = json!({ "type": "fullAccess" });
    let restricted = |platform: bool, roots: &[&str]| json!({ "type": "restricted", "includePlatformDefaults": platform, "readableRoots": roots });
    let read_only =
        |access: &serde_json::Value, net: bool| json!({ "type": "readOnly", "access": access, "networkAccess": net });
    let workspace = |access: &serde_json::Value, roots: &[&str], tmpdir: bool| {
        json!({
            "type": "workspaceWrite", "writableRoots": roots, "readOnlyAccess": access, "networkAccess": false,
            "excludeTmpdirEnvVar": !tmpdir, "excludeSlashTmp": true,
        })
    };
    let online = "[network]\nenabled = true\n[filesystem]\n";
    for (text, expected) in [
        ("':root' = 'read'", read_only(&full, false)),
        ("':root' = 'read'\n':project_roots' = 'none'", read_only(&full, false)),
        ("':minimal' = 'write'", read_only(&restricted(true, &[]), false)),
        (
            "':minimal' = 'read'\n'/r' = 'read'\n'~/r' = 'read'",
            read_only(&restricted(true, &["/r", "/home/u/r"]), false),
        ),
        ("", read_only(&restricted(false, &[]), false)),
        ("':root' = 'write'", json!({ "type": "externalSandbox", "networkAccess": "restricted" })),
        ("':root' = 'read'\n':project_roots' = 'write'", workspace(&full, &[], false)),
        ("':root' = 'read'\n'/w' = 'write'", workspace(&full, &[], false)),
        ("':root' = 'read'\n'/' = 'write'", workspace(&full, &["/"], false)),
        (
            "':minimal' = 'read'\n':tmpdir' = 'write'\n'/y' = 'write'\n'/z' = 'none'\n\
             ':project_roots' = { '.' = 'write', 'a/b' = 'write', docs = 'read', secret = 'none' }",
            workspace(&restricted(true, &["/w/docs"]), &["/y", "/w/a/b"], true),
        ),
    ] {
        assert_eq!(policy(&format!("[filesystem]\n{text}")), Ok(expected), "{text}");
    }
    assert_eq!(policy(&format!("{online}':root' = 'read'")), Ok(read_only(&full, true)));
    assert_eq!(policy(&format!("{online}':root' = 'write'")), Ok(json!({ "type": "dangerFullAccess" })));
}

#[test]
fn invalid_filesystem_entries_are_refused() {
    for (text, expected) in [
        ("'x/y' = 'read'", "filesystem path `x/y` must be absolute, use `~/...`, or start with `:`"),
        ("'~u/y' = 'read'", "filesystem path `~u/y` must be absolute, use `~/...`, or start with `:`"),
        ("':root' = { etc = 'none' }", "filesystem path `:root` does not support nested entries"),
        ("':tmpdir' = { x = 'write' }", "filesystem path `:tmpdir` does not support nested entries"),
        (
            "':project_roots' = { '../x' = 'write' }",
            "filesystem subpath `../x` must be a descendant path without `.` or `..` components",
        ),
        (
            "'/x' = { '/y' = 'read' }",
            "filesystem subpath `/y` must be a descendant path without `.` or `..` components",
        ),
        ("'/x' = { '' = 'read' }", "filesystem subpath `` must be a descendant path without `.` or `..` components"),
        ("':root' = 'rw'", "expected `read`, `write`, `none`, or a table of those by path"),
        ("':root' = 'read'\n':tmpdir' = 'write'", OUTSIDE),
        ("':root' = 'read'\n'/y' = 'write'", OUTSIDE),
        ("':root' = 'read'\n'/' = 'write'\n':project_roots' = 'read'", OUTSIDE),
    ] {
        assert_eq!(policy(&format!("[filesystem]\n{text}")), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn unknown_filesystem_entries_are_ignored_with_a_warning() {
    let warnings = |text: &str| resolve(&format!("[filesystem]\n{text}")).unwrap().1;
    assert_eq!(warnings("':root' = 'read'"), Vec::<String>::new());
    assert_eq!(
        warnings("':root' = 'read'\n':cwd' = 'write'\n':new' = { x = 'read' }"),
        [
            "Configured filesystem path `:cwd` is not known to this version and is ignored.",
            "Configured filesystem path `:new` with nested entry `x` is not known to this version and is ignored.",
        ]
    );
    let nothing = "Permissions profile `p` has no filesystem entry that this version knows, so commands can read and \
                   write nothing.";
    assert_eq!(warnings(""), [nothing]);
}

proptest! {
    #[test]
    fn a_subpath_never_leaves_its_folder(part in "[./a~:]{0,12}") {
        let text = toml::to_string(&json!({ "filesystem": { ":project_roots": { &part: "write" } } })).unwrap();
        if let Ok((permissions, _)) = resolve(&text) {
            let path = permissions.files[0].path.resolve(Path::new(CWD)).unwrap();
            prop_assert!(path.starts_with(CWD), "{} {}", part, path.display());
        }
    }
}
