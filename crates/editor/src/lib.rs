//! A line editor that stays below the output of a program: output is printed above it while the user types.
//!
//! Everything except [`RawMode`] is free of IO. [`KeyParser`] turns bytes of a terminal into [`Key`]s, [`Editor`]
//! turns keys into text, [`Menu`] is a list to choose from, and [`Region`] returns the bytes that draw a [`Frame`] at
//! the end of the output and replace it later. The program owns the loop that connects them.

mod editor;
mod history;
mod key;
mod layout;
mod menu;
mod raw_mode;
mod region;
mod text;
mod width;

pub use editor::{Edit, Editor};
pub use history::History;
pub use key::{Key, KeyParser, MAX_PASTE};
pub use layout::{Layout, Row};
pub use menu::{Menu, MenuItem, MenuRow};
pub use raw_mode::RawMode;
pub use region::{Frame, Region};
pub use text::Text;
pub use width::{char_width, fit, text_width};
