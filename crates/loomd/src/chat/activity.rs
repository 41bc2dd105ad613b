//! [`Activity`]: whether a turn runs.

use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub enum Activity {
    Idle,
    /// A turn was requested. With `stop`, it is interrupted as soon as it has started.
    Starting { since: Instant, stop: bool },
    Running { turn_id: String, since: Instant, stopping: bool },
}

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_TIME: u128 = 100;

impl Activity {
    pub fn starting() -> Self {
        Self::Starting { since: Instant::now(), stop: false }
    }

    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// A turn was started, by this client or by the server. Returns whether it is to be interrupted.
    pub fn turn_started(&mut self, turn_id: &str) -> bool {
        let (since, stop) = match self {
            Self::Starting { since, stop } => (*since, *stop),
            Self::Idle | Self::Running { .. } => (Instant::now(), false),
        };
        *self = Self::Running { turn_id: turn_id.to_owned(), since, stopping: stop };
        stop
    }

    /// Returns whether the running turn is over.
    pub fn turn_ended(&mut self, turn_id: &str) -> bool {
        let ended = match self {
            Self::Running { turn_id: running, .. } => running == turn_id,
            // It has ended without an event.
            Self::Starting { .. } => true,
            Self::Idle => false,
        };
        if ended {
            *self = Self::Idle;
        }
        ended
    }

    /// The status line of a turn that does `what`.
    pub fn status(&self, what: &str) -> Option<String> {
        let (since, what, hint) = match self {
            Self::Idle => return None,
            Self::Starting { since, stop: false } => (since, "starting", "Ctrl-C interrupts"),
            Self::Running { since, stopping: false, .. } => (since, what, "Ctrl-C interrupts"),
            Self::Starting { since, .. } | Self::Running { since, .. } => {
                (since, "interrupting", "Ctrl-C again leaves at once")
            }
        };
        let passed = since.elapsed();
        let frame = FRAMES[(passed.as_millis() / FRAME_TIME) as usize % FRAMES.len()];
        Some(format!("{frame} {what} · {} · {hint}", shown(passed)))
    }
}

fn shown(passed: Duration) -> String {
    match passed.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => format!("{}m {:02}s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_before_the_turn_has_started_is_not_lost() {
        let mut activity = Activity::Starting { since: Instant::now(), stop: true };
        assert!(activity.turn_started("u"));
        assert!(activity.status("thinking").unwrap().contains("interrupting"));
        assert!(!activity.turn_ended("another") && activity.turn_ended("u") && activity.is_idle());
    }

    #[test]
    fn times_have_minutes() {
        assert_eq!([0, 59, 61, 3600].map(|s| shown(Duration::from_secs(s))), ["0s", "59s", "1m 01s", "60m 00s"]);
    }
}
