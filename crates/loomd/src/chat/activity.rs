//! [`Activity`]: whether a turn runs.

use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub enum Activity {
    Idle,
    /// A turn was requested. With `stop`, it is interrupted as soon as it has started.
    Starting {
        request: u64,
        since: Instant,
        stop: bool,
    },
    Running {
        turn_id: String,
        since: Instant,
        stopping: bool,
    },
}

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_TIME: u128 = 100;

impl Activity {
    /// `request` is unique in the chat.
    pub fn starting(request: u64) -> Self {
        Self::Starting { request, since: Instant::now(), stop: false }
    }

    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// A turn was started, by this client or by the server. Returns whether it is to be interrupted.
    pub fn turn_started(&mut self, turn_id: &str) -> bool {
        let (since, stop) = match self {
            Self::Starting { since, stop, .. } => (*since, *stop),
            Self::Idle | Self::Running { .. } => (Instant::now(), false),
        };
        *self = Self::Running { turn_id: turn_id.to_owned(), since, stopping: stop };
        stop
    }

    /// A turn has ended. Returns whether it was the running one.
    pub fn turn_ended(&mut self, turn_id: &str) -> bool {
        let is_over = matches!(self, Self::Running { turn_id: running, .. } if running == turn_id);
        if is_over {
            *self = Self::Idle;
        }
        is_over
    }

    /// The turn of this request will not start, or has ended without an event. Returns whether it was expected.
    pub fn request_ended(&mut self, request: u64) -> bool {
        let is_over = matches!(self, Self::Starting { request: current, .. } if *current == request);
        if is_over {
            *self = Self::Idle;
        }
        is_over
    }

    /// The status line of a turn that does `what`.
    pub fn status(&self, what: &str) -> Option<String> {
        let (since, what, hint) = match self {
            Self::Idle => return None,
            Self::Starting { since, stop: false, .. } => (since, "starting", "Ctrl-C interrupts"),
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
        let mut activity = Activity::Starting { request: 1, since: Instant::now(), stop: true };
        assert!(activity.turn_started("u"));
        assert!(activity.status("thinking").unwrap().contains("interrupting"));
        assert!(!activity.turn_ended("another") && activity.turn_ended("u") && activity.is_idle());
    }

    #[test]
    fn a_request_that_has_ended_does_not_end_a_later_one() {
        let mut activity = Activity::starting(2);
        assert!(!activity.request_ended(1) && !activity.is_idle());
        assert!(activity.request_ended(2) && activity.is_idle());
    }

    #[test]
    fn times_have_minutes() {
        assert_eq!([0, 59, 61, 3600].map(|s| shown(Duration::from_secs(s))), ["0s", "59s", "1m 01s", "60m 00s"]);
    }
}
