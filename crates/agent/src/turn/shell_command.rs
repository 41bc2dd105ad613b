//! A command that the user runs in the thread, without the model.

use super::{Failure, Turn};

impl Turn {
    pub(super) async fn shell_command(&mut self, _command: String) -> Result<(), Failure> {
        Ok(())
    }
}
