//! Renders a turn as text for a terminal. Does no IO: [`Renderer::show`] returns what to print for a notification,
//! and [`Renderer::status`] the current status.

mod clean;
mod fold;
mod items;
mod question;
mod render;
mod style;
#[cfg(test)]
mod tests;
mod wrap;

pub use clean::lines;
pub use question::QuestionView;
pub use render::Renderer;
pub use style::{Paint, Style};
