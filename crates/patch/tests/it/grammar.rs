//! Valid patches, and the errors of invalid ones.

use loomd_patch::{Chunk, Hunk, Line, Patch, parse};

use crate::memory::MemoryFiles;
use crate::{patch, refusal};

fn add(path: &str, content: &str) -> Hunk {
    Hunk::Add { path: path.into(), content: content.into() }
}

#[test]
fn all_kinds_of_hunks_parse() {
    let text = patch(
        "*** Add File: a\n+x\n+\n*** Delete File: d\n*** Update File: u\n*** Move to: v\n@@ fn f\n keep\n-old\n+new\n\n\
         *** End of File\n*** Update File: w\n-first\n@@\n-second",
    );
    let chunk =
        |context: Option<&str>, lines, end_of_file| Chunk { context: context.map(str::to_owned), lines, end_of_file };
    let expected = vec![
        add("a", "x\n\n"),
        Hunk::Delete { path: "d".into() },
        Hunk::Update {
            path: "u".into(),
            move_to: Some("v".into()),
            chunks: vec![chunk(
                Some("fn f"),
                vec![
                    Line::Context("keep".into()),
                    Line::Removed("old".into()),
                    Line::Added("new".into()),
                    Line::Context(String::new()),
                ],
                true,
            )],
        },
        Hunk::Update {
            path: "w".into(),
            move_to: None,
            chunks: vec![
                chunk(None, vec![Line::Removed("first".into())], false),
                chunk(None, vec![Line::Removed("second".into())], false),
            ],
        },
    ];
    assert_eq!(parse(&text), Ok(Patch { hunks: expected }));
}

#[test]
fn white_space_line_endings_and_heredocs_around_a_patch_are_accepted() {
    let expected = Ok(Patch { hunks: vec![add("x", "1\n")] });
    for text in [
        "*** Begin Patch\n*** Add File: x\n+1\n*** End Patch",
        "  \n *** Begin Patch \n  *** Add File: x  \n+1\n  *** End Patch  \n\n",
        "*** Begin Patch\r\n*** Add File: x\r\n+1\r\n*** End Patch\r\n",
        "<<EOF\n*** Begin Patch\n*** Add File: x\n+1\n*** End Patch\nEOF",
        "<<'EOF'\n*** Begin Patch\n*** Add File: x\n+1\n*** End Patch\nxEOF\n",
        "<<\"EOF\"\n*** Begin Patch\n*** Add File: x\n+1\n*** End Patch\nEOF\n",
    ] {
        assert_eq!(parse(text), expected, "{text}");
    }
}

#[test]
fn parse_errors_name_line_and_reason() {
    const FIRST: &str = "invalid patch: The first line of the patch must be '*** Begin Patch'";
    const LAST: &str = "invalid patch: The last line of the patch must be '*** End Patch'";
    let header = |line: usize, text: &str| {
        format!(
            "invalid hunk at line {line}, '{text}' is not a valid hunk header. Valid hunk headers: '*** Add File: \
             {{path}}', '*** Delete File: {{path}}', '*** Update File: {{path}}'"
        )
    };
    let unexpected = |line: usize, text: &str| {
        format!(
            "invalid hunk at line {line}, Unexpected line found in update hunk: '{text}'. Every line should start with ' ' \
             (context line), '+' (added line), or '-' (removed line)"
        )
    };
    let no_lines = |line: usize| format!("invalid hunk at line {line}, Update hunk does not contain any lines");
    for (text, expected) in [
        ("bad".into(), FIRST.into()),
        ("".into(), LAST.into()),
        ("*** Begin Patch".into(), LAST.into()),
        ("*** Begin Patch\n*** Add File: a\n+x".into(), LAST.into()),
        ("<<EOF\n*** Begin Patch\nEOF".into(), FIRST.into()),
        ("<<EOF\n*** Begin Patch\n*** Add File: x\n+1\nEOF".into(), LAST.into()),
        ("<<PATCH\n*** Begin Patch\n*** Add File: x\n+1\n*** End Patch\nPATCH".into(), FIRST.into()),
        (patch("*** Frob File: a"), header(2, "*** Frob File: a")),
        (patch(""), header(2, "")),
        (patch("*** Add File: "), header(2, "*** Add File:")),
        (patch("*** Add File: x\n+1\n2"), header(4, "2")),
        (patch("*** Delete File: f\n zzz "), header(3, "zzz")),
        (patch("*** Update File: f\n@@\n-a\n*** Frob"), header(5, "*** Frob")),
        (patch("*** Update File: f"), "invalid hunk at line 2, Update file hunk for path 'f' is empty".into()),
        (
            patch("*** Add File: x\n*** Update File: f\n*** Move to: g\n\n"),
            "invalid hunk at line 3, Update file hunk for path 'f' is empty".into(),
        ),
        (patch("*** Update File: f\n@@"), no_lines(4)),
        (patch("*** Update File: f\n@@\n*** End of File"), no_lines(4)),
        (patch("*** Update File: f\n@@\nzzz"), unexpected(4, "zzz")),
        (patch("*** Update File: f\n@@ a\n@@ b\n-c"), unexpected(4, "@@ b")),
        (patch("*** Update File: f\n@@a\n-b"), unexpected(3, "@@a")),
        (
            patch("*** Update File: f\n-a\n+A\nzzz"),
            "invalid hunk at line 5, Expected update hunk to start with a @@ context marker, got: 'zzz'".into(),
        ),
    ] {
        let expected = format!("apply_patch verification failed: {expected}");
        assert_eq!(refusal(&MemoryFiles::new(&[("f", "a\n")]), &text), expected, "{text}");
    }
}

#[test]
fn a_patch_without_hunks_is_refused() {
    assert_eq!(refusal(&MemoryFiles::new(&[]), "*** Begin Patch\n*** End Patch"), "patch rejected: empty patch");
}
