//! Renders a turn as text for a terminal. Does no IO: [`Renderer::show`] returns what to print for a notification,
//! and [`Renderer::status`] the current status.

mod clean;
mod fold;
mod items;
mod live;
mod markdown;
mod problem;
mod question;
mod render;
mod style;
#[cfg(test)]
mod tests;
mod wrap;

pub use clean::lines;
pub use items::diff_text;
pub use problem::problem;
pub use question::QuestionView;
pub use render::Renderer;
pub use style::{Paint, Style};
pub use wrap::wrap_lines;
