//! `cargo xtask cycles`: checks that the modules of a crate have no cyclic dependencies.
//!
//! The modules of one folder are compared with each other: a folder counts as one module among its neighbours, and its
//! own file (`mod.rs`, or `lib.rs` at the top) as one module inside of it. Paths in code count, whether in `use` or
//! elsewhere; re-exports of what is inside a folder and code for tests do not.

mod graph;
mod references;
mod tokens;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use graph::Graph;
use references::{Module, ModulePath};

/// The crates that are checked.
const CRATES: &[&str] = &["agent", "server"];

/// Prints every cycle with the lines that make it. Fails if there is one.
pub fn check() -> Result<()> {
    let mut cycles = 0;
    for name in CRATES {
        let root = crate::root();
        let folder = root.join("crates").join(name).join("src");
        for cycle in Graph::new(&read_modules(&folder, &root)?).cycles() {
            println!("{name}: {cycle}");
            cycles += 1;
        }
    }
    if cycles > 0 {
        bail!("{cycles} cycles of modules");
    }
    println!("no cycles of modules in {}", CRATES.join(", "));
    Ok(())
}

/// The modules of a crate, without those for tests.
fn read_modules(folder: &Path, root: &Path) -> Result<Vec<Module>> {
    let mut modules = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot list {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                modules.push(Module::parse(module_path(path.strip_prefix(folder)?), shown, &text));
            }
        }
    }
    let tests: Vec<ModulePath> = modules.iter().flat_map(|module| module.tests.clone()).collect();
    modules.retain(|module| !tests.iter().any(|test| module.path.starts_with(test)));
    modules.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(modules)
}

/// The path of the module that a file is: `turn/mod.rs` and `turn.rs` are `turn`, `lib.rs` is the root.
fn module_path(file: &Path) -> ModulePath {
    let mut path: ModulePath = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod" || last == "lib") {
        path.pop();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycles of a crate with these files, as one text.
    fn cycles(files: &[(&str, &str)]) -> String {
        let modules: Vec<Module> = files
            .iter()
            .map(|(file, text)| Module::parse(module_path(Path::new(file)), (*file).into(), text))
            .collect();
        Graph::new(&modules).cycles().join("\n")
    }

    #[test]
    fn two_modules_that_use_each_other_are_a_cycle_with_both_lines() {
        let found = cycles(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use std::fmt;\nuse crate::b::B;"),
            ("b.rs", "fn f() {\n  println!(\"{}\", crate::a::A);\n}"),
        ]);
        assert_eq!(found, "a, b\n  a -> b  a.rs:2\n  b -> a  b.rs:2");
    }

    #[test]
    fn a_cycle_through_three_modules_is_found_and_its_neighbour_is_not() {
        let found = cycles(&[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::{b::{self, X}, d::D};"),
            ("b.rs", "use super::c;"),
            ("c.rs", "use crate::a;"),
            ("d.rs", ""),
        ]);
        assert_eq!(found, "a, b, c\n  a -> b  a.rs:1\n  b -> c  b.rs:1\n  c -> a  c.rs:1");
    }

    #[test]
    fn a_folder_is_one_module_among_its_neighbours() {
        let files = [
            ("lib.rs", "mod a; mod f;"),
            ("a.rs", "use crate::f::one::One;"),
            ("f/mod.rs", "mod one; mod two;"),
            ("f/one.rs", ""),
            ("f/two.rs", "use super::super::a::A;"),
        ];
        assert_eq!(cycles(&files), "a, f\n  a -> f  a.rs:1\n  f -> a  f/two.rs:1");
    }

    #[test]
    fn the_modules_of_a_folder_are_compared_with_each_other_and_with_its_own_file() {
        let files = [
            ("lib.rs", "mod f;"),
            ("f/mod.rs", "mod one; mod two;\nstruct F(one::One);"),
            ("f/one.rs", "use super::F;"),
            ("f/two.rs", "use super::F;"),
        ];
        assert_eq!(cycles(&files), "f::one, f::self\n  f::one -> f::self  f/one.rs:1\n  f::self -> f::one  f/mod.rs:2");
    }

    #[test]
    fn a_name_is_traced_through_re_exports_and_they_are_no_dependency() {
        let files = [
            ("lib.rs", "mod a; mod f;\npub use f::One as Uno;"),
            ("a.rs", ""),
            ("f/mod.rs", "mod one;\nmod two;\npub(crate) use one::One;\npub use two::*;"),
            ("f/one.rs", "use super::two::Two;"),
            ("f/two.rs", ""),
        ];
        assert_eq!(cycles(&files), "");
        let mut files = files.to_vec();
        files[4].1 = "use super::One;";
        assert_eq!(cycles(&files), "f::one, f::two\n  f::one -> f::two  f/one.rs:1\n  f::two -> f::one  f/two.rs:1");
        files[4].1 = "";
        files[3].1 = "use crate::a::A;";
        files[1].1 = "use crate::Uno;";
        assert_eq!(cycles(&files), "a, f\n  a -> f  a.rs:1\n  f -> a  f/one.rs:1");
    }

    #[test]
    fn comments_strings_and_tests_are_no_dependency() {
        let other =
            "// use crate::a;\n/* /* */ crate::a */ const S: &str = r#\"crate::a\"#; const T: &str = \"\\\"crate::a\";
            const C: (char, char) = ('\"', '\\''); fn f<'a>(x: &'a str) {}
            #[cfg(test)] use crate::a::A;
            #[cfg(test)] mod tests { use crate::a::A; fn f() {} }";
        assert_eq!(cycles(&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", other)]), "");
    }

    #[test]
    fn super_inside_an_inline_module_is_the_module_around_it() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod inner { use super::super::b::B; } use super::b::B;"),
            ("b.rs", "use crate::a;"),
        ];
        assert_eq!(cycles(&files), "a, b\n  a -> b  a.rs:1\n  b -> a  b.rs:1");
    }

    #[test]
    fn a_file_that_is_only_compiled_for_tests_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path();
        for (file, text) in [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;\n#[cfg(test)]\nmod tests;"),
            ("b.rs", ""),
            ("a/tests.rs", "use crate::a;"),
        ] {
            let path = source.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let modules = read_modules(source, source).unwrap();
        let paths: Vec<String> = modules.iter().map(|module| module.path.join("::")).collect();
        assert_eq!(paths, ["", "a", "b"]);
    }
}
