use serde_json::json;

use super::*;

fn cloud(text: &str) -> Requirements {
    parse(text, RequirementSource::Cloud).unwrap()
}

fn refused(text: &str) -> String {
    parse(text, RequirementSource::Cloud).unwrap_err().to_string()
}

fn wire(requirements: &Requirements) -> serde_json::Value {
    serde_json::to_value(requirements.to_wire()).unwrap()
}

#[test]
fn no_requirements_are_null_and_unlisted_ones_are_an_object_of_nulls() {
    assert_eq!(wire(&cloud("")), json!(null));
    let nulls = json!({
        "allowedApprovalPolicies": null, "allowedSandboxModes": null, "allowedWebSearchModes": null,
        "featureRequirements": null, "enforceResidency": null, "network": null,
    });
    assert_eq!(wire(&cloud("apps.a.enabled = false")), nulls);
}

#[test]
fn every_requirement_is_listed_on_the_wire() {
    let requirements = cloud(
        "allowed_approval_policies = ['on-request', 'untrusted']
        allowed_sandbox_modes = ['read-only', 'external-sandbox']
        allowed_web_search_modes = ['cached']
        enforce_residency = 'us'
        feature_requirements.tool_search = false
        [experimental_network]
        allowed_domains = ['a', 'b']
        denied_domains = ['b']
        unix_sockets = { '/s' = 'none' }",
    );
    assert_eq!(
        wire(&requirements),
        json!({
            "allowedApprovalPolicies": ["on-request", "untrusted"],
            "allowedSandboxModes": ["read-only"],
            "allowedWebSearchModes": ["cached", "disabled"],
            "featureRequirements": {"tool_search": false},
            "enforceResidency": "us",
            "network": {
                "enabled": null, "httpPort": null, "socksPort": null, "allowUpstreamProxy": null,
                "dangerouslyAllowNonLoopbackProxy": null, "dangerouslyAllowAllUnixSockets": null,
                "domains": {"a": "allow", "b": "deny"}, "managedAllowedDomainsOnly": null,
                "allowedDomains": ["a"], "deniedDomains": ["b"],
                "unixSockets": {"/s": "none"}, "allowUnixSockets": null, "allowLocalBinding": null,
            },
        })
    );
}

#[test]
fn contradictory_requirements_are_refused() {
    assert_eq!(refused("allowed_approval_policies = []"), "field `allowed_approval_policies` cannot be empty");
    assert_eq!(
        refused("allowed_sandbox_modes = ['workspace-write']"),
        "invalid value for `allowed_sandbox_modes`: `[WorkspaceWrite]` is not in the allowed set \
         must include 'read-only' to allow any SandboxPolicy (set by cloud requirements)"
    );
    assert!(refused("allowed_approval_policies = 'x'").starts_with("invalid type: string \"x\", expected a sequence"));
    assert!(refused("experimental_network = { domains = {}, allowed_domains = [] }").contains("cannot be combined"));
}

#[test]
fn an_unknown_pinned_feature_is_listed_and_fails_the_check() {
    let requirements = cloud("features.nope = true");
    assert_eq!(wire(&requirements)["featureRequirements"], json!({"nope": true}));
    let refused = requirements.check_pins().unwrap_err().to_string();
    assert_eq!(refused, "invalid `features` requirement `nope` from cloud requirements");
    assert!(cloud("features.tool_search = true").check_pins().is_ok());
}

#[test]
fn earlier_sources_win_and_any_source_may_forbid_an_app() {
    let mut all =
        cloud("allowed_approval_policies = ['never']\napps = { a = { enabled = true }, b = { enabled = false } }");
    all.add(cloud("allowed_approval_policies = ['untrusted']\nenforce_residency = 'us'\napps.a.enabled = false"));
    assert_eq!(all.approval_policies.as_ref().unwrap().value, [AskForApproval::Never]);
    assert!(all.residency.is_some());
    assert_eq!(["a", "b", "c"].map(|app| all.allows_app(app)), [false, false, true]);
}

#[test]
fn disallowed_values_fall_back_to_allowed_ones() {
    let all = cloud(
        "allowed_approval_policies = ['on-request', 'untrusted']
        allowed_sandbox_modes = ['read-only', 'workspace-write']
        allowed_web_search_modes = ['live']",
    );
    assert_eq!(all.approval_policy(AskForApproval::Never), AskForApproval::OnRequest);
    assert_eq!(all.approval_policy(AskForApproval::Untrusted), AskForApproval::Untrusted);
    assert_eq!(all.sandbox_mode(SandboxMode::DangerFullAccess), SandboxMode::ReadOnly);
    assert_eq!(all.sandbox_mode(SandboxMode::WorkspaceWrite), SandboxMode::WorkspaceWrite);
    assert_eq!(all.web_search_mode(WebSearchMode::Cached), WebSearchMode::Live);
    assert_eq!(all.web_search_mode(WebSearchMode::Disabled), WebSearchMode::Disabled);
    assert_eq!(
        all.check_approval_policy(&AskForApproval::Never).unwrap_err().to_string(),
        "invalid value for `approval_policy`: `Never` is not in the allowed set [OnRequest, UnlessTrusted] \
         (set by cloud requirements)"
    );
    assert!(all.check_sandbox_policy(&SandboxPolicy::DangerFullAccess).is_err());
    let none = Requirements::default();
    assert_eq!(none.approval_policy(AskForApproval::Never), AskForApproval::Never);
    assert_eq!(none.sandbox_mode(SandboxMode::DangerFullAccess), SandboxMode::DangerFullAccess);
}

#[test]
fn pinned_features_cannot_be_set_differently() {
    let all = cloud("[features]\ntool_search = false\npersonality = true");
    let check = |text: &str| all.check_features(&text.parse().unwrap()).map_err(|error| error.to_string());
    assert_eq!(check("features = { tool_search = false, undo = true }"), Ok(()));
    let message = "invalid value for `features`: `features.tool_search=true` is not in the allowed set \
                   [tool_search=false, personality=true] (set by cloud requirements)";
    assert_eq!(check("features.tool_search = true"), Err(message.into()));
    assert_eq!(check("profiles.p.features.tool_search = true"), Err(message.into()));
}

#[test]
fn a_legacy_managed_config_sets_requirements() {
    let source = RequirementSource::Cloud;
    let bound = |text: &str| legacy(&text.parse().unwrap(), &source);
    assert_eq!(wire(&bound("model = 'm'")), json!(null));
    let all = bound("approval_policy = 'never'\nsandbox_mode = 'workspace-write'");
    assert_eq!(all.approval_policies.unwrap().value, [AskForApproval::Never]);
    let modes = [SandboxRequirement::ReadOnly, SandboxRequirement::WorkspaceWrite];
    assert_eq!(all.sandbox_modes.unwrap().value, modes);
}

#[test]
fn only_listed_mcp_servers_are_allowed() {
    let all = cloud("mcp_servers.a.identity.command = 'run'\nmcp_servers.b.identity.url = 'http://b'");
    let server = |text: &str| -> McpServer { toml::from_str(text).unwrap() };
    assert!(all.allows_mcp_server("a", &server("command = 'run'\nargs = ['x']")));
    assert!(all.allows_mcp_server("b", &server("url = 'http://b'")));
    assert!(!all.allows_mcp_server("a", &server("command = 'other'")));
    assert!(!all.allows_mcp_server("b", &server("command = 'http://b'")));
    assert!(!all.allows_mcp_server("c", &server("command = 'run'")));
    assert!(Requirements::default().allows_mcp_server("c", &server("command = 'run'")));
}
