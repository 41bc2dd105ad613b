//! The texts of the rehearsal.

/// The answer to a prompt without commands.
pub(super) const INTRODUCTION: &str = "I am the rehearsal model: no real one, but I need no key and no network, and I do \
what plain words say. Try `demo` to see a whole turn, or `help` for what I understand.";

pub(super) const HELP: &str = "I follow plain words, one step per line or sentence:\n\
- run `COMMAND` (in the background, without the sandbox); type TEXT\n\
- write FILE with TEXT; replace TEXT with TEXT in FILE; delete FILE; move FILE to FILE; patch, and a fenced block\n\
- read FILE; list FOLDER; grep TEXT; look at IMAGE\n\
- say TEXT; comment TEXT; think TEXT; reason TEXT; plan A, B, C; propose PLAN\n\
- ask QUESTION with options A, B; search the web for TEXT; open page URL; draw TEXT\n\
- spawn an agent to TEXT; send agent TEXT; wait for agents; close agent\n\
- call TOOL with JSON; call custom TOOL with TEXT; item JSON; event JSON\n\
- fail with overloaded, rate limit, status 502, disconnect, context window … (once, twice, 3 times)\n\
- slowly; quickly; wait 2 s; repeat 3 times: STEP; also STEP\n\
- use 1000 tokens; limit 80%; pretend to be MODEL; play FILE\n";

/// A whole turn with every common kind of item.
pub(super) const DEMO: &str = "think I show what a turn looks like: a plan, a command, a change and an answer.\n\
plan Look around, Write a note, Tell what happened\n\
comment Let me look around.\n\
run `ls`\n\
write rehearsal.txt with \"This note was written by the rehearsal model.\\nNothing else has been changed.\"\n\
call update_plan with {\"plan\":[{\"step\":\"Look around\",\"status\":\"completed\"},{\"step\":\"Write a note\",\"status\":\"completed\"},{\"step\":\"Tell what happened\",\"status\":\"completed\"}]}\n\
say I looked around with `ls` and wrote `rehearsal.txt`. This was a rehearsal: set `model` and `model_provider` to work with a real model.";

/// The last sentence of every summary, by which a summary is recognised.
pub(super) const SUMMARY: &str = "(This is a rehearsal: everything that was asked for so far has been done.)";

/// A plan in the form that clients recognise in plan mode.
pub(super) fn proposed_plan(plan: &str) -> String {
    format!("<proposed_plan>\n{plan}\n</proposed_plan>\n")
}

/// An empty review in the format that reviews require.
pub(super) const REVIEW: &str = r#"{"findings":[],"overall_correctness":"patch is correct","overall_explanation":"This is a rehearsal: nobody has really looked.","overall_confidence_score":0.5}"#;
