//! What is checked when a prompt is built, and how it is rendered.

use loomd_adapter::{NoParams, Prompt, PromptBuilder, PromptError, Section, Tool};
use serde::Serialize;

fn task(template: &str) -> PromptBuilder {
    Prompt::new("test", "prompt").section(Section::new("task", "Task", template))
}

fn tool(name: &str) -> Tool {
    Tool::new(name, "Does something.", |_: NoParams, _| async { Ok(()) })
}

#[test]
fn sections_are_numbered_and_nested() {
    #[derive(Serialize)]
    struct Params {
        file: &'static str,
        lines: u32,
        tags: Vec<&'static str>,
        note: Option<&'static str>,
    }
    let prompt = task("Look at ${file}.${note}")
        .section(
            Section::new("how", "How", "Carefully.")
                .child(Section::new("size", "Size", "It has ${lines} lines, tagged ${tags}."))
                .child(Section::literal("cost", "Cost", "It costs ${nothing}.")),
        )
        .params(&Params { file: "a.rs", lines: 7, tags: vec!["x"], note: None })
        .build()
        .unwrap();
    let text = "## 1. Task\n\nLook at a.rs.\n\n## 2. How\n\nCarefully.\n\n### 2.1. Size\n\nIt has 7 lines, tagged \
                [\"x\"].\n\n### 2.2. Cost\n\nIt costs ${nothing}.";
    assert_eq!(prompt.render().text, text);
    assert_eq!(prompt.name(), "test/prompt");
}

#[test]
fn hidden_sections_are_left_out_with_their_children_and_tools_until_they_are_shown() {
    let inner = Section::new("inner", "Inner", "Deep.").hidden().tool(tool("deep"));
    let secret = Section::new("secret", "Secret", "Hush.").hidden().tool(tool("hush")).child(inner);
    let mut prompt =
        task("Go.").section(secret).section(Section::new("end", "End", "Bye.")).tool(tool("go")).build().unwrap();
    let tools = |prompt: &Prompt| prompt.render().tools.iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        (prompt.hidden(), tools(&prompt)),
        (vec!["secret".to_owned(), "secret.inner".into()], vec!["go".to_owned()])
    );
    assert_eq!(prompt.render().text, "## 1. Task\n\nGo.\n\n## 2. End\n\nBye.");
    prompt.show("secret").unwrap();
    assert_eq!(tools(&prompt), ["go", "hush"]);
    prompt.show("secret.inner").unwrap();
    assert_eq!(tools(&prompt), ["go", "hush", "deep"]);
    assert!(prompt.render().text.contains("### 2.1. Inner\n\nDeep."));
    assert_eq!(prompt.show("nowhere"), Err(PromptError::UnknownSection { path: "nowhere".into() }));
}

#[test]
fn what_is_wrong_with_a_prompt_is_named_when_it_is_built() {
    let long = "x".repeat(65);
    let table = [
        (task("${name}"), "the section `task` needs the parameter `name`, which is not set"),
        (task("x").param("name", 1), "the parameter `name` is used by no section"),
        (task("${name}").param("name", 1).param("name", 2), "the parameter `name`: set twice"),
        (task("x").param("a b", 1), "the parameter `a b`: not a name: expected letters, digits and `_`"),
        (task("x").params(&5), "the parameter `params`: expected a struct"),
        (task("${name"), "the template of section `task`: a `${` has no `}`; write `$${` for the text"),
        (task("x").section(Section::new("task", "Again", "x")), "there are two sections `task`"),
        (
            task("x").section(Section::new("a.b", "Dots", "x")),
            "invalid key `a.b`: expected letters, digits, `_` and `-`",
        ),
        (task("x").section(Section::new("blank", " ", "x")), "the section `blank` has no title"),
        (Prompt::new("", "x"), "invalid key ``: expected letters, digits, `_` and `-`"),
        (task("x").tool(tool("a")).tool(tool("a")), "there are two tools `a`"),
        (task("x").tool(tool("a b")), "the tool `a b`: invalid name: expected up to 64 letters, digits, `_` and `-`"),
        (task("x").tool(tool(&long)), "invalid name: expected up to 64 letters"),
        (
            task("x").tool(tool("mcp__x__y")),
            "the tool `mcp__x__y`: invalid name: `mcp__` is the prefix of MCP servers' tools",
        ),
        (
            task("x").tool(Tool::new("list", "A list.", |_: Vec<u8>, _| async { Ok(()) })),
            "the tool `list`: its params must be a struct",
        ),
        (
            task("x").tool(Tool::new("mute", "", |_: NoParams, _| async { Ok(()) })),
            "the tool `mute`: it has no description",
        ),
    ];
    for (builder, words) in table {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let of_hidden = Section::new("h", "H", "${x}").hidden().tool(tool("a"));
    let error = task("x").section(of_hidden).tool(tool("b")).build().unwrap_err();
    assert_eq!(error, PromptError::MissingParam { name: "x".into(), section: "h".into() });
}
