//! A table of the agent's behaviours that holds over each of the remote wires. A scripted provider answers the same on
//! every wire; notifications and the next input of the model must be the same, except where a row gives the reason.

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
    /// The requests of the client, in order.
    asks: &'static [Ask],
    /// The model's answers, by call.
    answers: &'static [&'static [ModelOutput]],
    /// The notifications, each in a word or two.
    seen: &'static [&'static str],
    /// The input of the last model call.
    told: &'static [&'static str],
    /// Wires with another input, and why.
    except: &'static [(Wire, &'static str, &'static [&'static str])],
}

const ROW: Row = Row { config: "", asks: &[User("hi")], answers: &[], seen: &[], told: &["user: hi"], except: &[] };

#[derive(Clone, Copy)]
enum Ask {
    User(&'static str),
    /// The second text is steered into the turn of the first.
    Steered(&'static str, &'static str),
    /// The turn is interrupted after the first text of the model.
    Interrupted(&'static str),
    Compact,
    /// The second of two commands ends when the first has.
    Racing(&'static str),
}

async fn check(row: Row) {
    for wire in Wire::ALL {
        let world = world(wire, row.config).await;
        let id = world.start(false).await;
        // Only the first answer is held back.
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
                    world.received.find("item/agentMessage/delta", |_| true).await;
                    world.interrupt(id, &turn).await.expect("it runs");
                }
                Racing(_) => {
                    world.received.find("item/completed", |told| told["item"]["type"] == "commandExecution").await;
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
    /// Asserts the notifications. Tools run while the answer streams, so the position of its token usage is ignored.
    fn saw(&self, wire: Wire, expected: &[&str]) {
        let seen: Vec<String> =
            self.received.all().iter().filter_map(|(method, params)| seen(method, params)).collect();
        let apart = |lines: &[&str]| -> (Vec<String>, Vec<String>) {
            lines.iter().map(|line| (*line).to_owned()).partition(|line| line.starts_with("usage "))
        };
        assert_eq!(apart(&seen.iter().map(String::as_str).collect::<Vec<_>>()), apart(expected), "{wire:?}");
    }
}

/// A notification in a word or two; `None` for those that are not compared. Reasoning summaries and reasoning texts are
/// not distinguished, because wires differ in that.
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

/// The contents of an item, without ids, paths and times.
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

/// A line without times, and with names in place of our prompts.
fn plain(line: &str) -> String {
    let line = line
        .replace(&prompts::summary_message("It was short."), "(summary)")
        .replace(prompts::COMPACTION_PROMPT.trim(), "(summarise)")
        .replace(prompts::TURN_ABORTED.trim(), "(aborted)");
    // The output of a terminal session has a longer header.
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
