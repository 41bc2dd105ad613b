//! The result of a replay, as text or JSON.

use std::io;

use loomd_server::replay::Difference;
use serde::Serialize;

use crate::run::Screen;
use crate::show::{Paint, lines};

#[derive(Serialize)]
pub struct ReplayReport {
    thread: String,
    /// Number of replayed turns.
    pub replayed: usize,
    /// Turns that could not be replayed.
    copied: Vec<CopiedTurn>,
    pub difference: Option<Difference>,
}

#[derive(Serialize)]
struct CopiedTurn {
    turn: usize,
    why: &'static str,
}

impl ReplayReport {
    pub fn new(thread: &str) -> Self {
        Self { thread: thread.into(), replayed: 0, copied: Vec::new(), difference: None }
    }

    pub fn copied(&mut self, turn: usize, why: &'static str) {
        self.copied.push(CopiedTurn { turn, why });
    }

    pub fn print(&self, screen: &mut Screen, json: bool) -> io::Result<()> {
        if json {
            return screen.print(&format!("{}\n", serde_json::to_string(self).unwrap_or_default()));
        }
        let style = screen.style();
        let mut text = String::new();
        for CopiedTurn { turn, why } in &self.copied {
            text += &format!("turn {turn} was not replayed: {why}\n");
        }
        let turns = |count: usize| if count == 1 { "1 turn".to_owned() } else { format!("{count} turns") };
        match &self.difference {
            None if self.replayed == 0 => text += "nothing to replay\n",
            None => text += &format!("{} replayed, no difference\n", turns(self.replayed)),
            Some(Difference { turn, place, recorded, replayed }) => {
                text += &format!("turn {turn} differs in {}\n", lines(place).join(" "));
                for (mark, paint, side) in [("-", Paint::Red, recorded), ("+", Paint::Green, replayed)] {
                    for line in lines(side) {
                        text += &format!("{}\n", style.paint(paint, &format!("{mark} {line}")));
                    }
                }
            }
        }
        screen.print(&text)
    }
}
