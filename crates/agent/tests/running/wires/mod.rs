//! What an agent does, over each of the remote wires: one table of behaviours. A scripted server says the same
//! in the words of every wire; the client sees the same, and the model is told the same next, except where a
//! row says why not.

mod behaviours;
mod failures;

use loomd_agent::prompts;
use loomd_testkit::Gate;
use loomd_testkit::model::{ModelOutput, Wire};
use serde_json::Value;

use self::Ask::*;
use crate::world::World;

/// One behaviour.
struct Row {
    config: &'static str,
    /// What the client asks for, one after the other.
    asks: &'static [Ask],
    /// What the model answers, call by call.
    answers: &'static [&'static [ModelOutput]],
    /// What the client sees, in a word or two each.
    seen: &'static [&'static str],
    /// What the model is told in its last call.
    told: &'static [&'static str],
    /// Wires that are told something else, and why.
    except: &'static [(Wire, &'static str, &'static [&'static str])],
}

const ROW: Row = Row { config: "", asks: &[User("hi")], answers: &[], seen: &[], told: &["user: hi"], except: &[] };

#[derive(Clone, Copy)]
enum Ask {
    User(&'static str),
    /// The second text is said while the first is being answered.
    Steered(&'static str, &'static str),
    /// The turn is stopped when the model has said something.
    Interrupted(&'static str),
    Compact,
    /// The second of two commands ends when the first has.
    Racing(&'static str),
}

async fn check(row: Row) {
    for wire in Wire::ALL {
        let world = world(wire, row.config).await;
        let id = world.start(false).await;
        // Only the first answer is ever held up.
        let gate = Gate::new();
        for (number, says) in row.answers.iter().enumerate() {
            let reply = wire.reply(says);
            world.model.reply(match row.asks[0] {
                Steered(..) if number == 0 => reply.after(&gate),
                Interrupted(_) if number == 0 => reply.wait(&gate),
                _ => reply,
            });
        }
        for ask in row.asks {
            let turn = match *ask {
                User(text) | Steered(text, _) | Interrupted(text) | Racing(text) => world.say(id, text).await,
                Compact => Ok(world.compact(id).await),
            };
            let turn = turn.expect("a turn");
            match ask {
                Steered(_, more) => {
                    world.model.call(0).await;
                    world.steer(id, &turn, more).await.expect("it runs");
                    gate.open();
                }
                Interrupted(_) => {
                    world.heard.find("item/agentMessage/delta", |_| true).await;
                    world.interrupt(id, &turn).await.expect("it runs");
                }
                Racing(_) => {
                    world.heard.find("item/completed", |told| told["item"]["type"] == "commandExecution").await;
                    std::fs::write(world.home.work().join("go"), "").expect("a file");
                }
                _ => {}
            }
            world.ended(&turn).await;
        }
        world.saw(wire, row.seen);
        let except = row.except.iter().find(|(other, ..)| *other == wire);
        let expected = except.map_or(row.told, |(_, _, told)| told);
        let told = world.model.calls().last().expect("a call").conversation();
        assert_eq!(told.iter().map(|line| plain(line)).collect::<Vec<_>>(), expected, "{wire:?}");
        assert_eq!(world.model.unused(), 0, "{wire:?}: every answer was asked for");
    }
}

async fn world(wire: Wire, config: &str) -> World {
    World::with(&format!("model_providers.scripted.wire_api = \"{}\"\n{config}", wire.name())).await
}

impl World {
    /// The client saw this. Tools run beside the answer that calls them, so what the answer took is told
    /// somewhere among what they do.
    fn saw(&self, wire: Wire, expected: &[&str]) {
        let seen: Vec<String> = self.heard.all().iter().filter_map(|(method, params)| seen(method, params)).collect();
        let apart = |lines: &[&str]| -> (Vec<String>, Vec<String>) {
            lines.iter().map(|line| (*line).to_owned()).partition(|line| line.starts_with("usage "))
        };
        assert_eq!(apart(&seen.iter().map(String::as_str).collect::<Vec<_>>()), apart(expected), "{wire:?}");
    }
}

/// A notification in a word or two; `None` for what is of no interest here. Whether thoughts are a summary or
/// the thing itself differs between wires.
fn seen(method: &str, params: &Value) -> Option<String> {
    let item = &params["item"];
    let kind = item["type"].as_str().unwrap_or_default();
    Some(match method {
        "item/started" if kind == "userMessage" => return None,
        "item/started" => format!("+{kind}"),
        "item/agentMessage/delta" => format!("text {}", word(&params["delta"])),
        "item/reasoning/textDelta" | "item/reasoning/summaryTextDelta" => format!("think {}", word(&params["delta"])),
        "item/completed" => format!("={kind} {}", whole(item)).trim_end().to_owned(),
        "turn/plan/updated" => format!("plan {}", word(&params["plan"][0]["step"])),
        "thread/tokenUsage/updated" => {
            let (last, total) = (&params["tokenUsage"]["last"], &params["tokenUsage"]["total"]["totalTokens"]);
            format!(
                "usage {}/{} {}/{} of {total}",
                last["inputTokens"], last["cachedInputTokens"], last["outputTokens"], last["reasoningOutputTokens"]
            )
        }
        "error" if params["willRetry"] == true => format!("retry {}", word(&params["error"]["message"])),
        "error" => format!("error {}", params["error"]["codexErrorInfo"]),
        "turn/completed" => format!("turn {}", word(&params["turn"]["status"])),
        _ => return None,
    })
}

/// What an item says, without ids, paths and times.
fn whole(item: &Value) -> String {
    let texts = |list: &Value| list.as_array().into_iter().flatten().map(word).collect::<String>();
    match word(&item["type"]).as_str() {
        "userMessage" => {
            let parts = item["content"].as_array().into_iter().flatten();
            parts.map(|part| part["text"].as_str().map_or_else(|| word(&part["type"]), str::to_owned)).collect()
        }
        "agentMessage" => word(&item["text"]),
        "reasoning" => texts(&item["summary"]) + &texts(&item["content"]),
        "commandExecution" => {
            format!("{} {}", word(&item["status"]), word(&item["aggregatedOutput"]).trim_end())
        }
        "fileChange" => format!("{} {}", word(&item["status"]), word(&item["changes"][0]["diff"]).trim_end()),
        _ => String::new(),
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Without times, and with names for the texts that only we know.
fn plain(line: &str) -> String {
    let line = line
        .replace(&prompts::summary_message("It was short."), "(summary)")
        .replace(prompts::COMPACTION_PROMPT.trim(), "(summarise)")
        .replace(prompts::TURN_ABORTED.trim(), "(aborted)");
    // A terminal says more of itself.
    if let Some((before, _)) = line.split_once("Command: ")
        && let Some((_, output)) = line.split_once("Output:\n")
    {
        return format!("{before}(report)\nOutput:\n{output}");
    }
    match line.split_once("Wall time: ").and_then(|(before, rest)| Some((before, rest.split_once(" seconds")?.1))) {
        Some((before, after)) => format!("{before}Wall time: _{after}"),
        None => line,
    }
}
