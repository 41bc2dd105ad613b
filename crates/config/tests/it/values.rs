//! Every key with a value, and what it is decoded to.

use std::collections::BTreeMap;
use std::time::Duration;

use loomd_config::config_toml::*;
use loomd_config::{ConfigToml, Secret};
use loomd_protocol::{AbsolutePathBuf, AppToolApproval, ApprovalDefault, AskForApproval, ReasoningEffort, ServiceTier};

use crate::{bare, user};

fn config(text: &str) -> ConfigToml {
    user(text).load().unwrap().config
}

/// The error of a value that is given as a flag.
fn refused(flag: &str) -> String {
    bare().flags(&[flag]).error()
}

fn secrets(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, Secret>> {
    Some(pairs.iter().map(|(key, value)| ((*key).into(), Secret::from((*value).to_owned()))).collect())
}

#[test]
fn nothing_is_set_by_default() {
    assert_eq!(config(""), ConfigToml::default());
}

#[test]
fn every_key_accepts_its_example_value() {
    let text = include_str!("every_key.toml");
    let shown = serde_json::to_value(config(text)).unwrap();
    let unset: Vec<_> = shown
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| value.is_null() || value.as_object().is_some_and(|map| map.is_empty()))
        .map(|(key, _)| key)
        .collect();
    assert_eq!(unset, [] as [&str; 0]);
    let profile = shown["profiles"]["p"].as_object().unwrap();
    assert_eq!(profile.iter().filter(|(_, value)| value.is_null()).count(), 0, "{profile:?}");
}

#[test]
fn a_timeout_of_approvals_has_a_default_decision_of_three() {
    let approvals = |text: &str| config(text).loomd.unwrap().approvals.unwrap();
    let both = approvals("loomd.approvals = { timeout_sec = 60, default = 'accept' }");
    assert_eq!((both.timeout_sec, both.default_decision), (Some(60), Some(ApprovalDefault::Accept)));
    assert_eq!(approvals("loomd.approvals.timeout_sec = 0").default_decision, None);
    let error = refused("loomd.approvals.default='maybe'");
    assert!(error.contains("unknown variant `maybe`, expected one of `decline`, `accept`, `cancel`"), "{error}");
}

#[test]
fn approval_policies_are_decoded() {
    assert_eq!(config("approval_policy = 'on-request'").approval_policy, Some(AskForApproval::OnRequest));
    assert_eq!(
        config("approval_policy.granular = { mcp_elicitations = true, rules = false, sandbox_approval = true }")
            .approval_policy,
        Some(AskForApproval::Granular {
            mcp_elicitations: true,
            request_permissions: false,
            rules: false,
            sandbox_approval: true,
            skill_approval: false,
        })
    );
}

#[test]
fn unknown_values_of_open_enums_are_accepted() {
    let config = config("model_reasoning_effort = 'extreme'\nservice_tier = 'slow'");
    assert_eq!(config.model_reasoning_effort, Some(ReasoningEffort::Other("extreme".into())));
    assert_eq!(config.service_tier, Some(ServiceTier::Other("slow".into())));
}

#[test]
fn mcp_servers_are_decoded() {
    let text = "
        [mcp_servers.s]
        command = 'run'
        args = ['-v']
        env = { A = '1' }
        env_vars = ['B']
        cwd = 'here'
        startup_timeout_ms = 1500
        tool_timeout_sec = 2
        enabled_tools = ['x']
        name = 'ignored'
        [mcp_servers.s.tools.x]
        approval_mode = 'approve'
        [mcp_servers.h]
        url = 'http://h'
        bearer_token_env_var = 'T'
        http_headers = { X = 'y' }
        scopes = ['a']
        oauth_resource = 'r'
        enabled = false
        required = true
        startup_timeout_sec = 0.5
        startup_timeout_ms = 9
    ";
    let stdio = McpServer {
        transport: McpTransport::Stdio {
            command: "run".into(),
            args: vec!["-v".into()],
            env: secrets(&[("A", "1")]),
            env_vars: vec!["B".into()],
            cwd: Some("here".into()),
        },
        enabled: true,
        required: false,
        startup_timeout: Some(Duration::from_millis(1500)),
        tool_timeout: Some(Duration::from_secs(2)),
        enabled_tools: Some(vec!["x".into()]),
        disabled_tools: None,
        scopes: None,
        tools: BTreeMap::from([("x".into(), McpTool { approval_mode: Some(AppToolApproval::Approve) })]),
    };
    let http = McpServer {
        transport: McpTransport::StreamableHttp {
            url: "http://h".into(),
            bearer_token_env_var: Some("T".into()),
            http_headers: secrets(&[("X", "y")]),
            env_http_headers: None,
            oauth_resource: Some("r".into()),
        },
        enabled: false,
        required: true,
        startup_timeout: Some(Duration::from_millis(500)),
        tool_timeout: None,
        enabled_tools: None,
        disabled_tools: None,
        scopes: Some(vec!["a".into()]),
        tools: BTreeMap::new(),
    };
    assert_eq!(config(text).mcp_servers, BTreeMap::from([("s".into(), stdio), ("h".into(), http)]));
}

#[test]
fn contradictory_mcp_servers_are_refused() {
    for (table, problem) in [
        ("{}", "invalid transport"),
        ("{ command = 'x', url = 'y' }", "url is not supported for stdio"),
        ("{ command = 'x', bearer_token_env_var = 'V' }", "bearer_token_env_var is not supported for stdio"),
        ("{ command = 'x', bearer_token = 't' }", "bearer_token is not supported for stdio"),
        ("{ url = 'y', args = ['a'] }", "args is not supported for streamable_http"),
        ("{ url = 'y', bearer_token = 't' }", "bearer_token is not supported for streamable_http"),
    ] {
        assert_eq!(refused(&format!("mcp_servers.s={table}")), format!("{problem}\nin `mcp_servers.s`\n"));
    }
    let negative = refused("mcp_servers.s={ command = 'x', tool_timeout_sec = -1 }");
    assert!(negative.starts_with("tool_timeout_sec: "), "{negative}");
}

#[test]
fn providers_are_decoded() {
    let text = "
        [model_providers.m]
        name = 'M'
        wire_api = 'chat'
        experimental_bearer_token = 'sk'
        [model_providers.m.auth]
        command = './token'
        cwd = 'x'
    ";
    let fixture = user(text);
    let provider = &fixture.load().unwrap().config.model_providers["m"];
    let auth = ProviderAuth {
        command: "./token".into(),
        args: Vec::new(),
        timeout_ms: None,
        refresh_interval_ms: None,
        cwd: Some(AbsolutePathBuf::resolve(&fixture.home, "x")),
    };
    assert_eq!((auth.timeout(), auth.refresh_interval()), (Duration::from_secs(5), Duration::from_secs(300)));
    assert_eq!(
        *provider,
        ModelProvider {
            name: "M".into(),
            wire_api: WireApi::Chat,
            experimental_bearer_token: Some(Secret::from("sk".to_owned())),
            auth: Some(auth),
            ..ModelProvider::default()
        }
    );
    assert!(!format!("{provider:?}").contains("sk"));
    assert_eq!(
        refused("model_providers.m={ name = 'M', wire_api = 'x' }"),
        "unknown variant `x`, expected one of `responses`, `chat`, `anthropic`\nin `model_providers.m.wire_api`\n"
    );
}

#[test]
fn otel_exporters_are_decoded() {
    let exporter = |value: &str| config(&format!("otel.exporter = {value}")).otel.unwrap().exporter.unwrap();
    assert_eq!(exporter("'none'"), OtelExporter::None);
    assert_eq!(
        exporter("{ otlp-http = { endpoint = 'http://e', protocol = 'json', headers = { k = 'v' } } }"),
        OtelExporter::OtlpHttp {
            endpoint: "http://e".into(),
            protocol: OtelProtocol::Json,
            headers: secrets(&[("k", "v")]).unwrap(),
            tls: None,
        }
    );
    assert_eq!(
        exporter("{ otlp-grpc = { endpoint = 'e', tls = { client-private-key = '/k' } } }"),
        OtelExporter::OtlpGrpc {
            endpoint: "e".into(),
            headers: BTreeMap::new(),
            tls: Some(OtelTls { client_private_key: AbsolutePathBuf::new("/k"), ..OtelTls::default() }),
        }
    );
}

#[test]
fn agent_limits_and_roles_are_decoded() {
    let config = config("[agents]\nmax_threads = 3\n[agents.critic]\ndescription = 'd'");
    assert_eq!((config.max_agent_threads(), config.max_agent_depth()), (3, 1));
    assert_eq!(config.agents.unwrap().roles.keys().collect::<Vec<_>>(), ["critic"]);
    for key in ["max_threads", "max_depth", "job_max_runtime_seconds"] {
        assert!(refused(&format!("agents.{key}=0")).starts_with("invalid value: integer `0`, expected a nonzero"));
    }
}

#[test]
fn boolean_web_search_tools_are_accepted() {
    let found = |text| config(text).tools.unwrap().web_search.is_some();
    assert!(!found("tools.web_search = true"));
    assert!(!found("tools.web_search = false"));
    assert!(found("tools.web_search = { context_size = 'high' }"));
}
