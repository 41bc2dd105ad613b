//! Commands that contain a patch.

use loomd_patch::{Interception, intercept};

const PATCH: &str = "*** Begin Patch\n*** Add File: s\n+x\n*** End Patch";

fn script(script: &str) -> Option<Interception> {
    intercept(&["/bin/bash", "-lc", &script.replace("PATCH", PATCH)])
}

fn found(folder: Option<&str>) -> Option<Interception> {
    Some(Interception::Patch { text: format!("{PATCH}\n"), folder: folder.map(str::to_owned) })
}

#[test]
fn a_single_call_with_a_heredoc_is_a_patch() {
    for (text, folder) in [
        ("apply_patch <<'EOF'\nPATCH\nEOF", None),
        ("apply_patch <<EOF\nPATCH\nEOF\n", None),
        ("applypatch <<\"EOF\"\nPATCH\nEOF\n\n", None),
        ("\n  apply_patch  << 'END_IT'\nPATCH\nEND_IT\n", None),
        ("apply_patch <<-EOF\n\tPATCH\n\tEOF\n", None),
        ("cd sub && apply_patch <<'EOF'\nPATCH\nEOF\n", Some("sub")),
        ("cd 'a b' && apply_patch <<'EOF'\nPATCH\nEOF\n", Some("a b")),
        ("cd \"../sub\" && apply_patch <<'EOF'\nPATCH\nEOF\n", Some("../sub")),
    ] {
        assert_eq!(script(text), found(folder), "{text}");
    }
}

#[test]
fn other_scripts_are_left_to_the_shell() {
    for text in [
        "apply_patch <<'EOF'\nPATCH\nEOF\necho hi",
        "apply_patch <<'EOF' && echo hi\nPATCH\nEOF",
        "apply_patch <<'EOF' | cat\nPATCH\nEOF",
        "apply_patch <<'EOF' > out\nPATCH\nEOF",
        "apply_patch <<'EOF'\nPATCH\n",
        "echo hi && apply_patch <<'EOF'\nPATCH\nEOF",
        "cd a && cd b && apply_patch <<'EOF'\nPATCH\nEOF",
        "cd a b && apply_patch <<'EOF'\nPATCH\nEOF",
        "cd $HOME && apply_patch <<'EOF'\nPATCH\nEOF",
        "cd \"$HOME\" && apply_patch <<'EOF'\nPATCH\nEOF",
        "cd ~/x && apply_patch <<'EOF'\nPATCH\nEOF",
        "cdx && apply_patch <<'EOF'\nPATCH\nEOF",
        "cd sub; apply_patch <<'EOF'\nPATCH\nEOF",
        "apply_patch arg <<'EOF'\nPATCH\nEOF",
        "apply_patch <<< 'PATCH'",
        "cat <<'EOF' | apply_patch\nPATCH\nEOF",
        "(apply_patch <<'EOF'\nPATCH\nEOF\n)",
        "apply_patch 'PATCH'",
        "ls",
        "",
    ] {
        assert_eq!(script(text), None, "{text}");
    }
}

#[test]
fn a_patch_can_be_an_argument() {
    let patch = Some(Interception::Patch { text: PATCH.into(), folder: None });
    assert_eq!(intercept(&["apply_patch", PATCH]), patch);
    assert_eq!(intercept(&["applypatch", PATCH]), patch);
    assert_eq!(intercept(&["apply_patch"]), None);
    assert_eq!(intercept(&["apply_patch", PATCH, "x"]), None);
    assert_eq!(intercept(&["/bin/apply_patch", PATCH]), None);
    assert_eq!(intercept::<&str>(&[]), None);
}

#[test]
fn a_patch_without_a_call_is_recognised() {
    assert_eq!(intercept(&[PATCH]), Some(Interception::NotCalled));
    assert_eq!(intercept(&["bash", "-c", PATCH]), Some(Interception::NotCalled));
    assert_eq!(intercept(&["fish", "-c", PATCH]), None);
    assert_eq!(intercept(&["bash", "-x", PATCH]), None);
    assert_eq!(
        loomd_patch::Refusal::NotCalled.to_string(),
        "apply_patch verification failed: patch detected without explicit call to apply_patch. Rerun as [\"apply_patch\", \
         \"<patch>\"]"
    );
}
