//! A turn in a terminal: from what the server says to text that people read. Nothing here reads or writes; whoever
//! does asks [`Renderer::show`] what to print for each notification, and [`Renderer::status`] what to say meanwhile.

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
