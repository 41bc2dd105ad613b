//! Executes commands.

use anyhow::Result;
use loomd_client::protocol::ReasoningEffort;

use super::{Exit, Session};
use crate::chat::commands::{Command, help};
use crate::chat::picker::Picker;
use crate::chat::requests::{self, Outcome};
use crate::chat::settings::{mode_items, permission_items};
use crate::show::wrap_lines;

impl Session {
    pub(super) fn execute(&mut self, command: Command) -> Result<()> {
        if needs_idle(&command) && !self.activity.is_idle() {
            return self.warn("not now", "a turn is running; Ctrl-C interrupts it");
        }
        let (client, cwd) = (self.client.clone(), self.cwd.clone());
        match command {
            Command::Help => self.show_help(),
            Command::Quit => {
                self.exit = Some(Exit::Normal);
                Ok(())
            }
            Command::Model(Some(model)) => {
                self.settings.set_model(model);
                self.changed("model", &self.settings.model.clone())
            }
            Command::Model(None) => self.request("models", requests::models(client, self.settings.model.clone())),
            Command::Effort(Some(effort)) => {
                self.settings.set_effort(ReasoningEffort::from(effort.clone()));
                self.changed("effort", &effort)
            }
            Command::Effort(None) => {
                let current = self.settings.effort.as_ref().map(ToString::to_string).unwrap_or_default();
                self.request("efforts", requests::efforts(client, self.settings.model.clone(), current))
            }
            Command::Mode(Some(mode)) => match self.settings.set_mode(&mode) {
                Ok(()) => self.changed("mode", &mode),
                Err(message) => self.warn("error", &message),
            },
            Command::Mode(None) => {
                let picker =
                    Picker::new("Mode", mode_items(), self.settings.mode_name(), |mode| Command::Mode(Some(mode)));
                self.outcome(Outcome::Pick(Box::new(picker)))
            }
            Command::Permissions(Some(preset)) => match self.settings.set_permissions(&preset) {
                Ok(()) => self.changed("permissions", &self.settings.permissions()),
                Err(message) => self.warn("error", &message),
            },
            Command::Permissions(None) => {
                let title = format!("Permissions (now: {})", self.settings.permissions());
                let picker = Picker::new(&title, permission_items(), "", |preset| Command::Permissions(Some(preset)));
                self.outcome(Outcome::Pick(Box::new(picker)))
            }
            Command::Status => {
                let facts = self.facts();
                self.request("status", requests::status_lines(client, facts))
            }
            Command::Diff => self.request("diff", requests::diff(client, cwd)),
            Command::New => self.request("new thread", requests::start(client, cwd)),
            Command::Resume(None) => {
                let current = self.thread.id().to_owned();
                self.request("threads", requests::resume_picker(client, Some(cwd), current))
            }
            Command::Resume(Some(name)) if name == "all" => {
                let current = self.thread.id().to_owned();
                self.request("threads", requests::resume_picker(client, None, current))
            }
            Command::Resume(Some(name)) => self.request("resume", requests::resume(client, name, cwd)),
            Command::Fork => self.request("fork", requests::fork(self.thread.clone())),
            Command::Compact => {
                self.compact();
                Ok(())
            }
            Command::Review(target) => {
                self.start_review(target);
                Ok(())
            }
            Command::Mcp => self.request("MCP servers", requests::mcp(client)),
            Command::Skills => self.request("skills", requests::skills(client, cwd)),
            Command::Export(file) => self.request("export", requests::export(self.thread.clone(), file, cwd)),
        }
    }

    /// Makes a request that shows its result. There is one at a time.
    fn request(
        &mut self,
        name: &'static str,
        request: impl Future<Output = Result<Outcome>> + Send + 'static,
    ) -> Result<()> {
        if let Some((other, _)) = &self.request {
            let text = format!("still waiting for: {other}; Ctrl-C cancels it");
            return self.warn("not now", &text);
        }
        let task = self.spawn(async move { request.await.into() });
        self.request = Some((name, task));
        Ok(())
    }

    /// Tells that a setting has changed.
    fn changed(&mut self, name: &str, value: &str) -> Result<()> {
        let from = if self.activity.is_idle() { "" } else { ", from the next turn on" };
        self.remark(&format!("{name}: {}{from}", crate::show::lines(value).join(" ")))
    }

    fn show_help(&mut self) -> Result<()> {
        let pairs = help();
        let widest = pairs.iter().map(|(name, _)| name.len()).filter(|length| *length <= 18).max().unwrap_or(0);
        let room = self.surface.style().width().map(|width| width.saturating_sub(widest + 2));
        let mut text = String::new();
        for (name, about) in &pairs {
            let mut name = name.as_str();
            if name.len() > widest {
                // A long one has a line of its own.
                text += &format!("{name}\n");
                name = "";
            }
            for line in wrap_lines(about, room) {
                text += format!("{name:widest$}  {line}").trim_end();
                text.push('\n');
                name = "";
            }
        }
        let text = self.renderer.block(&text);
        self.print(&text)
    }

    /// The thread and its settings as names and values.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let settings = &self.settings;
        let mut facts = vec![
            ("thread", self.thread.id().to_owned()),
            ("folder", self.cwd.clone()),
            ("model", format!("{} ({})", settings.model, settings.provider)),
            ("effort", settings.effort.as_ref().map_or("default".to_owned(), ToString::to_string)),
            ("mode", settings.mode_name().to_owned()),
            ("permissions", settings.permissions()),
        ];
        if let Some(usage) = &self.usage {
            let mut tokens = format!("{} in, {} out", usage.total.input_tokens, usage.total.output_tokens);
            if let Some(used) = self.window_used() {
                tokens += &format!("; {used}% of the window");
            }
            facts.push(("tokens", tokens));
        }
        facts
    }
}

fn needs_idle(command: &Command) -> bool {
    match command {
        Command::New | Command::Resume(_) | Command::Fork | Command::Compact | Command::Review(_) => true,
        Command::Help
        | Command::Model(_)
        | Command::Effort(_)
        | Command::Mode(_)
        | Command::Permissions(_)
        | Command::Status
        | Command::Diff
        | Command::Mcp
        | Command::Skills
        | Command::Export(_)
        | Command::Quit => false,
    }
}
