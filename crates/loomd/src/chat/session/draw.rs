//! What is drawn at the end of the terminal.

use anyhow::Result;

use super::Session;
use crate::chat::frame::{FrameParts, compose};
use crate::show::{Paint, lines};

impl Session {
    pub(super) fn welcome(&mut self) -> Result<()> {
        let style = self.surface.style();
        let title = style.paint(Paint::Bold, concat!("loomd ", env!("CARGO_PKG_VERSION")));
        let mut text = format!("{title}\n");
        if !self.surface.is_live() {
            // A live terminal has this at its end.
            text += &format!("{}\n/help lists the commands\n", style.cut(&self.footer(), 0));
        }
        let text = self.renderer.block(&text);
        self.print(&text)
    }

    /// Draws the frame, or shows the prompt of a plain terminal.
    pub(super) fn draw(&mut self) -> Result<()> {
        if !self.surface.is_live() {
            let waits = self.activity.is_idle() && self.request.is_none() && self.question.is_none();
            if waits && !self.prompted {
                self.surface.prompt("> ")?;
                self.prompted = true;
            }
            return Ok(());
        }
        // The signal of a resize may come later than the resize.
        if self.surface.resize() {
            self.renderer.restyle(self.surface.style());
        }
        let style = self.surface.style();
        let footer = self.footer();
        let tail = self.surface.tail();
        let pending = if tail.is_empty() { self.renderer.pending() } else { format!("{tail}\n") };
        let request = self.request.as_ref().map(|(name, _)| format!("{name} · Ctrl-C cancels"));
        let mut parts = FrameParts {
            pending,
            status: self.activity.status(&self.renderer.status()).or(request),
            footer,
            mark: ">",
            ..FrameParts::default()
        };
        if let Some(picker) = &self.picker {
            parts.title = Some(&picker.title);
            parts.input = Some(picker.filter());
            parts.mark = "/";
            parts.menu = Some(picker.menu());
        } else if let Some((query, found)) = self.editor.search() {
            let found = found.map_or(String::new(), |found| lines(found).join(" "));
            parts.line = Some(format!("search: {query}  {}", style.paint(Paint::Dim, &style.cut(&found, 12))));
        } else {
            parts.input = Some(self.editor.text());
            parts.placeholder = if self.activity.is_idle() { "Ask, or /help" } else { "Add to this turn" };
            if let Some(open) = &self.question {
                parts.mark = "?";
                parts.placeholder = "";
                parts.secret = open.question.is_secret();
                parts.status = None;
            } else {
                parts.menu = self.completion.menu().map(|menu| &*menu);
            }
        }
        Ok(self.surface.draw(|size| compose(style, size, &parts))?)
    }

    fn footer(&self) -> String {
        if let Some(hint) = &self.hint {
            return hint.clone();
        }
        format!("{} · {}", self.summary(), self.folder())
    }

    /// The model, the permissions and the use of the context window.
    fn summary(&self) -> String {
        let settings = &self.settings;
        let mut text = lines(&settings.model).join(" ");
        if let Some(effort) = &settings.effort {
            text += &format!(" {effort}");
        }
        if settings.mode_name() != "default" {
            text += &format!(" · {} mode", settings.mode_name());
        }
        text += &format!(" · {}", settings.permissions());
        if let Some(used) = self.window_used() {
            text += &format!(" · {used}% used");
        }
        text
    }

    /// The part of the context window that is used, in percent.
    pub(super) fn window_used(&self) -> Option<i64> {
        let usage = self.usage.as_ref()?;
        let window = usage.model_context_window.filter(|window| *window > 0)?;
        Some(usage.last.total_tokens.saturating_mul(100) / window)
    }

    /// The working directory, with `~` for the user's home.
    fn folder(&self) -> String {
        let cwd = lines(&self.cwd).join(" ");
        let home = std::env::var("HOME").unwrap_or_default();
        match cwd.strip_prefix(&home) {
            Some("") if !home.is_empty() => "~".to_owned(),
            Some(below) if !home.is_empty() && below.starts_with('/') => format!("~{below}"),
            _ => cwd,
        }
    }
}
