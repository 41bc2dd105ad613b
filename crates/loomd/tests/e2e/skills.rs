//! Skills in turns: what the model is sent, what the user is asked for, and what clients are notified of.

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::{Value, json};

use crate::common::launch;

struct SkillFixture {
    home: Home,
    model: ScriptedModel,
    server: Server,
}

impl SkillFixture {
    /// A client of this name.
    async fn new(client: &str, config: &str) -> Self {
        let model = ScriptedModel::start().await;
        let home = Home::new(&model).with(&format!("skills.bundled.enabled = false\n{config}"));
        let server = launch().stdio(&home);
        let info = json!({ "name": client, "version": "1" });
        let capabilities = json!({ "experimentalApi": true });
        server.request("initialize", json!({ "clientInfo": info, "capabilities": capabilities })).await.unwrap();
        server.notify("initialized", None).await;
        Self { home, model, server }
    }

    fn skill(&self, name: &str, agent_yaml: &str) {
        self.home.write(&format!("skills/{name}/SKILL.md"), "---\ndescription: d\n---\nTHE STEPS\n");
        self.home.write(&format!("skills/{name}/agents/openai.yaml"), agent_yaml);
    }

    async fn start(&self, approval: &str, sandbox: &str) -> String {
        let params = json!({ "cwd": self.home.work(), "approvalPolicy": approval, "sandbox": sandbox });
        let started = self.server.request("thread/start", params).await.unwrap();
        started["thread"]["id"].as_str().unwrap().to_owned()
    }

    async fn begin(&self, thread: &str, text: &str) {
        let input = json!([{ "type": "text", "text": text }]);
        self.server.request("turn/start", json!({ "threadId": thread, "input": input })).await.unwrap();
    }

    /// Answers the questions of a skill, and returns them.
    async fn answer(&self, id: &str, answer: &str) -> Value {
        let (request, params) = self.server.server_request("item/tool/requestUserInput").await;
        self.server.respond(&request, json!({ "answers": { id: { "answers": [answer] } } })).await;
        params
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.home.path().join("config.toml")).unwrap()
    }
}

const INSTALL: &str = "skill_mcp_dependency_install";
const NEEDS_SERVER: &str = "dependencies:\n  tools:\n    - {type: mcp, value: tracker, command: /no/such/program}\n";

#[tokio::test]
async fn a_server_that_a_skill_needs_is_installed_when_the_user_agrees_and_asked_for_once() {
    let fixture = SkillFixture::new("codex-tui", "").await;
    fixture.skill("needy", NEEDS_SERVER);
    let thread = fixture.start("on-request", "read-only").await;
    for reply in ["one", "two"] {
        fixture.model.reply(message(reply));
    }
    fixture.begin(&thread, "$needy").await;
    let asked = fixture.answer(INSTALL, "Continue anyway").await;
    let turn = fixture.server.notification("turn/completed").await["turn"]["id"].clone();
    assert_eq!(asked["itemId"], format!("mcp-deps-{}", turn.as_str().unwrap()));
    let [question] = asked["questions"].as_array().unwrap().as_slice() else { panic!("not one question: {asked}") };
    let labels: Vec<_> = question["options"].as_array().unwrap().iter().map(|option| &option["label"]).collect();
    assert_eq!(question["id"], INSTALL);
    assert_eq!(labels, ["Install", "Continue anyway"]);
    assert!(!fixture.config().contains("tracker"));
    fixture.begin(&thread, "$needy again").await;
    fixture.server.notification("turn/completed").await;

    let thread = fixture.start("on-request", "read-only").await;
    fixture.model.reply(message("three"));
    fixture.begin(&thread, "$needy").await;
    fixture.answer(INSTALL, "Install").await;
    fixture.server.notification_where("mcpServer/startupStatus/updated", |it| it["name"] == "tracker").await;
    fixture.server.notification("turn/completed").await;
    assert!(fixture.config().contains("[mcp_servers.tracker]\ncommand = \"/no/such/program\""), "{}", fixture.config());
}

#[tokio::test]
async fn clients_that_do_not_know_the_question_are_not_asked_for_servers() {
    let fixture = SkillFixture::new("another-client", "").await;
    fixture.skill("needy", NEEDS_SERVER);
    let thread = fixture.start("on-request", "read-only").await;
    fixture.model.reply(message("done"));
    fixture.begin(&thread, "$needy").await;
    fixture.server.notification("turn/completed").await;
    assert!(!fixture.server.methods().contains(&"item/tool/requestUserInput".into()));
    assert!(!fixture.config().contains("tracker"));
}

#[tokio::test]
async fn a_variable_that_a_skill_needs_is_asked_for_and_given_to_commands() {
    let fixture = SkillFixture::new("test", "features.skill_env_var_dependency_prompt = true").await;
    fixture
        .skill("needy", "dependencies:\n  tools:\n    - {type: env_var, value: SKILL_TOKEN, description: a token}\n");
    let thread = fixture.start("never", "danger-full-access").await;
    let arguments = json!({ "command": ["sh", "-c", "echo token=$SKILL_TOKEN"] });
    fixture.model.reply(function_call("shell", arguments, "c1")).reply(message("done"));
    fixture.begin(&thread, "$needy").await;
    let asked = fixture.answer("SKILL_TOKEN", "secret-1").await;
    assert_eq!((&asked["questions"][0]["isSecret"], &asked["questions"][0]["options"]), (&json!(true), &Value::Null));
    fixture.server.notification("turn/completed").await;
    let output = fixture.model.call(1).await;
    assert!(output.tool_output("c1").unwrap().to_string().contains("token=secret-1"), "{:?}", output.tool_output("c1"));
}

#[tokio::test]
async fn a_skill_is_added_once_per_turn() {
    let fixture = SkillFixture::new("test", "").await;
    fixture.skill("one", "");
    let thread = fixture.start("never", "read-only").await;
    let arguments = json!({ "command": ["true"] });
    let gate = loomd_testkit::Gate::new();
    fixture.model.reply(function_call("shell", arguments, "c1").after(&gate)).reply(message("done"));
    fixture.begin(&thread, "$one $one").await;
    fixture.model.call(0).await;
    fixture.begin(&thread, "more $one").await;
    gate.open();
    fixture.server.notification("turn/completed").await;
    let call = fixture.model.call(1).await;
    let texts = call.user_texts();
    assert_eq!(texts.iter().filter(|text| text.starts_with("<skill>")).count(), 1, "{texts:?}");
}

#[tokio::test]
async fn a_client_of_two_threads_is_notified_of_a_change_once() {
    let fixture = SkillFixture::new("test", "").await;
    fixture.skill("one", "");
    let threads = [fixture.start("never", "read-only").await, fixture.start("never", "read-only").await];
    fixture.skill("two", "");
    fixture.server.notification("skills/changed").await;
    // Whatever was sent with it has arrived when this is answered.
    let listed = fixture.server.request("skills/list", json!({ "cwds": [fixture.home.work()] })).await.unwrap();
    let names: Vec<_> = listed["data"][0]["skills"].as_array().unwrap().iter().map(|skill| &skill["name"]).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(fixture.server.notifications("skills/changed").len(), 1, "threads: {threads:?}");
}
