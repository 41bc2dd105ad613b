//! Whether a failed command was probably denied something by its sandbox. A heuristic, because each program reports a
//! refused system call in its own way.

use crate::{FinishedCommand, Outcome};

const WORDS: &[&str] = &[
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
];

/// Whether the output or exit code of a sandboxed command looks like a denial.
pub fn looks_denied(finished: &FinishedCommand) -> bool {
    let Outcome::Ended(exit) = finished.outcome else { return false };
    if exit.code() == 0 {
        return false;
    }
    let bad_call = exit.code() == 128 + libc::SIGSYS;
    bad_call
        || [&finished.stdout, &finished.stderr].into_iter().any(|output| {
            let output = String::from_utf8_lossy(output).to_lowercase();
            WORDS.iter().any(|word| output.contains(word))
        })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Exit;

    #[test]
    fn a_sandbox_denial_is_recognised_by_output_or_sigsys() {
        let check = |outcome: Outcome, stdout: &str, stderr: &str, expected: bool| {
            let (stdout, stderr) = (stdout.into(), stderr.into());
            let finished = FinishedCommand { outcome, stdout, stderr, duration: Duration::ZERO };
            assert_eq!(looks_denied(&finished), expected, "{finished:?}");
        };
        let failed = Outcome::Ended(Exit::Code(1));
        check(failed, "", "touch: cannot touch 'f': Read-only file system", true);
        check(failed, "PERMISSION DENIED", "", true);
        check(failed, "", "no such file", false);
        check(Outcome::Ended(Exit::Code(0)), "", "permission denied", false);
        check(Outcome::TimedOut, "", "permission denied", false);
        check(Outcome::Ended(Exit::Signal(libc::SIGSYS)), "", "", true);
        check(Outcome::Ended(Exit::Code(128 + libc::SIGSYS)), "", "", true);
    }
}
