//! The codec: what lines look like, what readers put up with, and that nothing is lost between the two.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use std::time::Duration;

use loomd_protocol::{AskForApproval, ContentItem, ResponseItem, SessionSource, SubAgentSource};
use loomd_store::rollout::*;
use proptest::prelude::*;

#[path = "fuzz/rollout.rs"]
mod fuzz;

const TIME: &str = "2026-11-15T06:42:54.421Z";

fn event(event: impl Into<Event>) -> Record {
    Record::EventMsg(event.into())
}

/// The record is written as the line, and read from it.
#[track_caller]
fn check(record: Record, line: &str) {
    let mut written = Vec::new();
    assert!(write_line(&mut written, TIME, &record).unwrap());
    assert_eq!(String::from_utf8(written).unwrap(), format!("{line}\n"));
    assert_eq!(Line::parse(line.as_bytes()).unwrap().decode(), Some(record));
}

#[track_caller]
fn decode(payload: &str) -> Option<Record> {
    let line = format!(r#"{{"timestamp":"x","type":"event_msg","payload":{payload}}}"#);
    Line::parse(line.as_bytes()).unwrap().decode()
}

#[test]
fn lines_are_written_as_other_servers_write_them() {
    check(
        event(TaskStarted {
            turn_id: "01a1ddf4-b9aa-7763-82e6-22e5fc9e3d7e".into(),
            model_context_window: Some(258400),
            collaboration_mode_kind: "default".into(),
            started_at: None,
        }),
        r#"{"timestamp":"2026-11-15T06:42:54.421Z","type":"event_msg","payload":{"type":"task_started","turn_id":"01a1ddf4-b9aa-7763-82e6-22e5fc9e3d7e","model_context_window":258400,"collaboration_mode_kind":"default"}}"#,
    );
    check(
        event(UserMessage { message: "first message".into(), images: Some(vec![]), ..Default::default() }),
        r#"{"timestamp":"2026-11-15T06:42:54.421Z","type":"event_msg","payload":{"type":"user_message","message":"first message","images":[],"local_images":[],"text_elements":[]}}"#,
    );
    check(
        event(TurnAborted {
            turn_id: Some("turn-b".into()),
            reason: AbortReason::Interrupted,
            times: Default::default(),
        }),
        r#"{"timestamp":"2026-11-15T06:42:54.421Z","type":"event_msg","payload":{"type":"turn_aborted","turn_id":"turn-b","reason":"interrupted"}}"#,
    );
    check(
        event(ContextCompacted::default()),
        r#"{"timestamp":"2026-11-15T06:42:54.421Z","type":"event_msg","payload":{"type":"context_compacted"}}"#,
    );
    check(
        event(PatchApplyEnd {
            call_id: "p1".into(),
            turn_id: "t".into(),
            stdout: "Success.\n".into(),
            stderr: String::new(),
            success: true,
            changes: [("/w/a.txt".into(), FileChange::Add { content: "hello\n".into() })].into(),
            status: EndStatus::Completed,
        }),
        r#"{"timestamp":"2026-11-15T06:42:54.421Z","type":"event_msg","payload":{"type":"patch_apply_end","call_id":"p1","turn_id":"t","stdout":"Success.\n","stderr":"","success":true,"changes":{"/w/a.txt":{"type":"add","content":"hello\n"}},"status":"completed"}}"#,
    );
    check(
        Record::TurnContext(Box::new(TurnContext {
            turn_id: Some("t".into()),
            trace_id: None,
            cwd: "/w".into(),
            current_date: Some("2026-11-15".into()),
            timezone: Some("Etc/UTC".into()),
            approval_policy: AskForApproval::Never,
            sandbox_policy: SandboxPolicy::ReadOnly { access: ReadAccess::FullAccess, network_access: false },
            active_permission_profile: None,
            network: None,
            model: "mock-model".into(),
            personality: Some("pragmatic".into()),
            collaboration_mode: None,
            realtime_active: Some(false),
            effort: None,
            summary: "auto".into(),
            user_instructions: None,
            developer_instructions: None,
            final_output_json_schema: None,
            truncation_policy: Some(TruncationPolicy::Bytes(10000)),
        })),
        r#"{"timestamp":"2026-11-15T06:42:54.421Z","type":"turn_context","payload":{"turn_id":"t","cwd":"/w","current_date":"2026-11-15","timezone":"Etc/UTC","approval_policy":"never","sandbox_policy":{"type":"read-only"},"model":"mock-model","personality":"pragmatic","realtime_active":false,"summary":"auto","truncation_policy":{"mode":"bytes","limit":10000}}}"#,
    );
    check(
        Record::SessionMeta(Box::new(meta(Source::Vscode))),
        r#"{"timestamp":"2026-11-15T06:42:54.421Z","type":"session_meta","payload":{"id":"01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2","timestamp":"2026-11-15T06:42:53.000Z","cwd":"/w","originator":"o","cli_version":"0.118.0","source":"vscode","model_provider":"mock","base_instructions":null}}"#,
    );
}

fn meta(source: Source) -> SessionMeta {
    SessionMeta {
        id: "01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2".parse().unwrap(),
        forked_from_id: None,
        attached_to: None,
        session_id: None,
        thread_source: None,
        timestamp: "2026-11-15T06:42:53.000Z".into(),
        cwd: "/w".into(),
        originator: "o".into(),
        cli_version: "0.118.0".into(),
        source,
        agent_nickname: None,
        agent_role: None,
        agent_path: None,
        model_provider: Some("mock".into()),
        base_instructions: None,
        dynamic_tools: None,
        memory_mode: None,
        preview: None,
        git: None,
        budget: None,
        placement: Vec::new(),
    }
}

#[test]
fn the_time_of_a_line_has_milliseconds() {
    let now = now();
    assert_eq!((now.len(), &now[19..20], &now[23..]), (24, ".", "Z"), "{now}");
}

#[test]
fn ids_of_model_items_and_unknown_items_are_not_written() {
    let message = ResponseItem::Message {
        role: "user".into(),
        content: vec![ContentItem::InputText { text: "hi".into() }],
        end_turn: None,
        phase: None,
        id: Some("msg_1".into()),
    };
    let mut out = Vec::new();
    assert!(write_line(&mut out, TIME, &Record::ResponseItem(message.clone())).unwrap());
    assert!(!write_line(&mut out, TIME, &Record::ResponseItem(ResponseItem::Other)).unwrap());
    let history = Some(vec![message, ResponseItem::Other]);
    let compacted = Record::Compacted(Compacted { message: "sum".into(), replacement_history: history });
    assert!(write_line(&mut out, TIME, &compacted).unwrap());
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(!text.contains("msg_1") && !text.contains("other"), "{text}");
}

#[test]
fn a_copy_keeps_what_it_does_not_know() {
    let source = r#"{"timestamp":"old","type":"future","payload":{"b":1,"a":[1.50,"\u00e9"]},"extra":1}"#;
    let mut copy = Vec::new();
    copy_line(&mut copy, TIME, &Line::parse(source.as_bytes()).unwrap());
    assert_eq!(
        String::from_utf8(copy).unwrap(),
        format!("{{\"timestamp\":\"{TIME}\",\"type\":\"future\",\"payload\":{{\"b\":1,\"a\":[1.50,\"\\u00e9\"]}}}}\n")
    );
}

#[test]
fn an_unreadable_line_parses_as_none() {
    let good = br#"{"type":"event_msg","payload":{"type":"context_compacted"}}"#;
    let lines: [&[u8]; 8] = [b"", b"  ", b"not json", b"[]", b"{\"timestamp\":\"2025", b"\xff\xfe", b"{}", b"null"];
    for line in lines {
        assert!(Line::parse(line).is_none(), "{}", String::from_utf8_lossy(line));
    }
    let file = [good.as_slice(), b"\n{\"type\":\"event_msg\",\"payload\":{\"text\":\"\xff\"}}\n", good].concat();
    assert_eq!(whole_lines(&file).filter(|(_, line)| Line::parse(line).is_some()).count(), 2);
}

#[test]
fn old_names_and_missing_optional_fields_are_understood() {
    let started = |turn_id: &str| {
        event(TaskStarted {
            turn_id: turn_id.into(),
            model_context_window: None,
            collaboration_mode_kind: "default".into(),
            started_at: None,
        })
    };
    assert_eq!(decode(r#"{"type":"turn_started","turn_id":"t"}"#), Some(started("t")));
    assert_eq!(decode(r#"{"turn_id":"t","type":"task_\u0073tarted"}"#), Some(started("t")));
    assert_eq!(
        decode(r#"{"type":"turn_complete","turn_id":"t"}"#),
        Some(event(TaskComplete { turn_id: "t".into(), last_agent_message: None, times: Default::default() }))
    );
    let message = AgentMessage { message: "m".into(), ..Default::default() };
    for payload in [
        r#"{"type":"agent_message","message":"m"}"#,
        r#"{"type":"agent_message","message":"m","phase":"unheard_of","memory_citation":7,"item_id":null}"#,
    ] {
        assert_eq!(decode(payload), Some(event(message.clone())));
    }
    assert_eq!(decode(r#"{"type":"session_configured"}"#), None);
    assert_eq!(decode(r#"{"type":"task_started"}"#), None);
    assert_eq!(decode("[]"), None);
}

#[test]
fn sources_are_read_and_spelled_for_the_wire() {
    let check = |disk: &str, want: SessionSource| {
        let line = format!(
            r#"{{"type":"session_meta","payload":{{"id":"01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2","timestamp":"t","cwd":"/","originator":"o","cli_version":"1"{disk}}}}}"#
        );
        let Some(Record::SessionMeta(meta)) = Line::parse(line.as_bytes()).unwrap().decode() else { panic!("{line}") };
        assert_eq!(meta.wire_source(), want, "{disk}");
    };
    check("", SessionSource::Vscode);
    check(r#","source":"mcp""#, SessionSource::AppServer);
    check(r#","source":"exec""#, SessionSource::Exec);
    check(r#","source":"brand_new""#, SessionSource::Unknown);
    check(r#","source":{"brand":"new"}"#, SessionSource::Unknown);
    check(r#","source":{"custom":"atlas"}"#, SessionSource::Custom("atlas".into()));
    check(r#","source":{"subagent":"review"},"agent_nickname":"N""#, SessionSource::SubAgent(SubAgentSource::Review));
    let spawn = |nickname: Option<&str>, role: &str| {
        SessionSource::SubAgent(SubAgentSource::ThreadSpawn {
            agent_nickname: nickname.map(str::to_owned),
            agent_path: None,
            agent_role: Some(role.into()),
            depth: 2,
            parent_thread_id: loomd_protocol::ThreadId("p".into()),
        })
    };
    let inner = r#"{"subagent":{"thread_spawn":{"parent_thread_id":"p","depth":2,"agent_type":"inner"}}}"#;
    check(&format!(r#","source":{inner}"#), spawn(None, "inner"));
    check(&format!(r#","source":{inner},"agent_nickname":"Nick","agent_type":"outer""#), spawn(Some("Nick"), "outer"));
}

#[test]
fn every_event_survives_in_the_seeds() {
    let seeds = [include_bytes!("fuzz/seeds/turn").as_slice(), include_bytes!("fuzz/seeds/extended")];
    let decoded = |seed| whole_lines(seed).filter_map(|(_, line)| Line::parse(line)?.decode()).count();
    assert_eq!(seeds.map(decoded), [11, 15]);
    for seed in seeds {
        fuzz::run(seed);
        // The same with every byte in turn spoilt, removed or the end of the file.
        for at in 0..seed.len() {
            let mut spoilt = seed.to_vec();
            spoilt[at] ^= 0x80;
            fuzz::run(line_around(&spoilt, at));
            fuzz::run(line_around(&seed[..at], at));
        }
    }
}

/// Only the changed line needs another look.
fn line_around(bytes: &[u8], at: usize) -> &[u8] {
    let start = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end);
    &bytes[start..end]
}

fn record() -> impl Strategy<Value = Record> {
    let text = || any::<String>();
    let some = || any::<Option<String>>();
    prop_oneof![
        (text(), any::<Option<i64>>()).prop_map(|(turn_id, model_context_window)| event(TaskStarted {
            turn_id,
            model_context_window,
            collaboration_mode_kind: "plan".into(),
            started_at: Some(1),
        })),
        (text(), some()).prop_map(|(turn_id, last_agent_message)| event(TaskComplete {
            turn_id,
            last_agent_message,
            times: Default::default()
        })),
        (text(), any::<Option<Vec<String>>>(), any::<Vec<String>>(), some()).prop_map(
            |(message, images, local_images, item_id)| event(UserMessage {
                message,
                images,
                local_images,
                text_elements: vec![TextElement { byte_range: ByteRange { start: 0, end: 1 }, placeholder: None }],
                item_id,
                client_id: None,
            })
        ),
        (text(), some()).prop_map(|(text, item_id)| event(AgentReasoning { text, item_id })),
        any::<(i64, i64)>().prop_map(|(input_tokens, total_tokens)| event(TokenCount {
            info: Some(TokenUsageInfo {
                total_token_usage: TokenUsage { input_tokens, total_tokens, ..Default::default() },
                ..Default::default()
            }),
            rate_limits: None
        })),
        (text(), any::<Vec<String>>(), any::<(u64, i32)>()).prop_map(|(output, command, (secs, exit_code))| event(
            ExecCommandEnd {
                call_id: "c".into(),
                process_id: None,
                turn_id: "t".into(),
                command,
                cwd: "/".into(),
                parsed_cmd: vec![ParsedCommand::Unknown { cmd: output.clone() }],
                source: ExecCommandSource::UserShell,
                interaction_input: None,
                stdout: String::new(),
                stderr: String::new(),
                aggregated_output: output,
                exit_code,
                duration: Duration::from_secs(secs),
                formatted_output: String::new(),
                status: EndStatus::Failed,
            }
        )),
        (text(), text()).prop_map(|(role, text)| Record::ResponseItem(ResponseItem::Message {
            role,
            content: vec![ContentItem::OutputText { text }],
            end_turn: None,
            phase: None,
            id: None
        })),
        text().prop_map(|message| Record::Compacted(Compacted { message, replacement_history: None })),
        (text(), some(), some()).prop_map(|(cwd, model_provider, agent_nickname)| {
            let source = Source::Custom(cwd.clone());
            Record::SessionMeta(Box::new(SessionMeta { cwd, model_provider, agent_nickname, ..meta(source) }))
        }),
    ]
}

proptest! {
    #[test]
    fn written_records_are_read_back(records in prop::collection::vec(record(), 1..8)) {
        let mut file = Vec::new();
        for record in &records {
            prop_assert!(write_line(&mut file, TIME, record).unwrap());
        }
        let read: Vec<_> = whole_lines(&file).filter_map(|(_, line)| Line::parse(line)?.decode()).collect();
        prop_assert_eq!(read, records);
    }

    #[test]
    fn parsing_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::run(&bytes);
    }

    #[test]
    fn decoding_any_json_does_not_panic(kind in "[a-z_]{0,16}", tag in "[a-z_]{0,16}", rest in "(,\"[a-z_]{1,12}\":(null|1|\"x\"|\\[\\]|\\{\\})){0,4}") {
        fuzz::run(format!(r#"{{"type":"{kind}","payload":{{"type":"{tag}"{rest}}}}}"#).as_bytes());
        fuzz::run(format!(r#"{{"type":"event_msg","payload":{{"type":"{tag}"{rest}}}}}"#).as_bytes());
    }
}
