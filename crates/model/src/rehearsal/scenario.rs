//! Scenario files: JSON lines with the responses of a model, in order.
//!
//! A line `{"answer": {}}` begins a response; the lines behind it are its steps. Empty lines and lines that begin with
//! `#` are ignored. Responses may belong to named threads, `{"answer": {"thread": "a"}}`: the first thread that calls
//! gets those of the first name, the second those of the second, and so on. Further threads, and all threads of a file
//! without names, get the first ones, from the start.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use loomd_protocol::JsonValue;
use parking_lot::Mutex;

use super::step::Step;
use crate::ModelError;

/// Recordings of long threads have a few megabytes.
const MAX_SCENARIO: u64 = 256 * 1024 * 1024;

/// The steps of one response.
pub(crate) type ResponseSteps = Vec<Step>;

/// A scenario, and the position of each thread in it. Shared by all sessions of a provider.
pub struct Scenario {
    path: PathBuf,
    threads: OnceLock<Result<Vec<Vec<ResponseSteps>>, ModelError>>,
    cursors: Mutex<HashMap<String, Cursor>>,
    /// Fail at the end of the scenario, and do not fall back to prompts.
    strict: bool,
}

#[derive(Clone, Copy)]
struct Cursor {
    thread: usize,
    answer: usize,
}

impl Scenario {
    /// The file is read on first use.
    pub(crate) fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, threads: OnceLock::new(), cursors: Mutex::default(), strict: false })
    }

    /// Returns a strict scenario with the responses to the thread `name`, or to the first thread. The error names the
    /// line and the problem.
    pub fn of_thread(text: &str, name: &str) -> Result<Arc<Self>, String> {
        let mut threads = parse(text)?;
        let at = threads.iter().position(|(known, _)| known == name).unwrap_or(0);
        let answers = if threads.is_empty() { Vec::new() } else { threads.swap_remove(at).1 };
        let threads = OnceLock::from(Ok(vec![answers]));
        Ok(Arc::new(Self { path: PathBuf::new(), threads, cursors: Mutex::default(), strict: true }))
    }

    /// Returns the next response for a thread; `None` when there are no more.
    pub(crate) fn next(&self, thread: &str) -> Result<Option<ResponseSteps>, ModelError> {
        let threads = self.threads.get_or_init(|| load(&self.path)).as_ref().map_err(Clone::clone)?;
        let mut cursors = self.cursors.lock();
        let known = cursors.len();
        let cursor = cursors
            .entry(thread.to_owned())
            .or_insert(Cursor { thread: if known < threads.len() { known } else { 0 }, answer: 0 });
        let answer = threads.get(cursor.thread).and_then(|answers| answers.get(cursor.answer)).cloned();
        cursor.answer += 1;
        if answer.is_none() && self.strict {
            return Err(ModelError::Unsupported("the recording has no more responses".into()));
        }
        Ok(answer)
    }
}

/// Reads the responses of each thread in a file.
pub(crate) fn load(path: &Path) -> Result<Vec<Vec<ResponseSteps>>, ModelError> {
    let unusable = |problem: String| ModelError::Unsupported(format!("scenario {}: {problem}", path.display()));
    let text = loomd_regular::read_to_string(path, MAX_SCENARIO).map_err(|error| unusable(error.to_string()))?;
    let threads = parse(&text).map_err(unusable)?;
    Ok(threads.into_iter().map(|(_, answers)| answers).collect())
}

/// Parses the responses of each thread, in order of appearance.
fn parse(text: &str) -> Result<Vec<(String, Vec<ResponseSteps>)>, String> {
    let mut threads: Vec<(String, Vec<ResponseSteps>)> = Vec::new();
    let mut current = 0;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |problem: String| format!("line {}: {problem}", number + 1);
        let line: JsonValue = serde_json::from_str(line).map_err(|error| at(error.to_string()))?;
        let begins = line.get("answer");
        if begins.is_some() || threads.is_empty() {
            let name = begins.and_then(|answer| answer["thread"].as_str()).unwrap_or_default();
            current = threads.iter().position(|(known, _)| known == name).unwrap_or(threads.len());
            if current == threads.len() {
                threads.push((name.into(), Vec::new()));
            }
            threads[current].1.push(Vec::new());
        }
        if begins.is_none()
            && let Some(answer) = threads[current].1.last_mut()
        {
            answer.extend(Step::read(&line).map_err(at)?);
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn scenario(text: &str) -> (tempfile::TempDir, Arc<Scenario>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, text).unwrap();
        (folder, Scenario::new(path))
    }

    fn say(text: &str) -> Result<Option<ResponseSteps>, ModelError> {
        Ok(Some(vec![Step::say(text)]))
    }

    #[test]
    fn without_names_every_thread_gets_the_same_responses() {
        let (_folder, scenario) = scenario("# hello\n\n{\"say\":\"a\"}\n{\"answer\":{}}\n{\"say\":\"b\"}\n");
        for thread in ["x", "y"] {
            assert_eq!([scenario.next(thread), scenario.next(thread)], [say("a"), say("b")]);
            assert_eq!(scenario.next(thread), Ok(None));
        }
    }

    #[test]
    fn named_threads_are_assigned_in_the_order_of_their_first_call() {
        let (_folder, scenario) = scenario(
            "{\"answer\":{\"thread\":\"m\"}}\n{\"say\":\"a\"}\n{\"answer\":{\"thread\":\"n\"}}\n{\"say\":\"b\"}\n\
             {\"answer\":{\"thread\":\"m\"}}\n{\"say\":\"c\"}\n",
        );
        assert_eq!(["x", "y", "x", "z"].map(|thread| scenario.next(thread)), [say("a"), say("b"), say("c"), say("a")]);
    }

    #[test]
    fn a_scenario_of_one_thread_fails_at_its_end() {
        let text =
            "{\"answer\":{\"thread\":\"m\"}}\n{\"say\":\"a\"}\n{\"answer\":{\"thread\":\"n\"}}\n{\"say\":\"b\"}\n";
        for (name, said) in [("m", "a"), ("n", "b"), ("other", "a")] {
            let scenario = Scenario::of_thread(text, name).unwrap();
            assert_eq!(scenario.next("x"), say(said));
            assert!(scenario.next("x").is_err());
        }
        assert!(Scenario::of_thread("{", "m").is_err());
    }

    #[test]
    fn errors_in_a_scenario_name_the_line() {
        for (text, problem) in [
            ("{\"say\":\"a\"}\n{\"shout\":\"b\"}", "line 2: unknown step `shout`"),
            ("{\"say\":5}", "line 1: invalid value for `say`: expected a string"),
            ("{\"fail\":\"x\"}", "line 1: unknown failure `x`"),
            ("[]", "line 1: expected a JSON object"),
        ] {
            let (_folder, scenario) = scenario(text);
            let error = scenario.next("x").unwrap_err().to_string();
            assert!(error.starts_with("scenario ") && error.ends_with(problem), "{error}");
        }
        assert!(Scenario::new("/nowhere/at-all".into()).next("x").is_err());
    }
}
