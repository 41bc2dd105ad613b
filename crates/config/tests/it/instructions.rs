//! Standing instructions of the user and of projects.

use std::fs;

use loomd_config::{Instructions, LoadRequest};
use loomd_protocol::AbsolutePathBuf;

use crate::{Fixture, user};

impl Fixture {
    fn put(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn instructions(&self, cwd: &str) -> Instructions {
        let cwd = AbsolutePathBuf::resolve(&self.root, cwd);
        let request = LoadRequest { cwd: Some(&cwd), ..self.request() };
        Instructions::read(&request, &loomd_config::load(&request).unwrap())
    }
}

fn project(text: &str) -> Instructions {
    Instructions { global: None, project: Some(text.into()) }
}

#[test]
fn all_files_from_the_root_to_the_working_directory_count() {
    let fixture = user("");
    fs::create_dir_all(fixture.root.join("w/.git")).unwrap();
    for (path, text) in [
        ("AGENTS.md", "above"),
        ("w/AGENTS.md", "root"),
        ("w/a/AGENTS.md", " \n"),
        ("w/a/b/AGENTS.md", "b"),
        ("w/c/AGENTS.md", "c"),
    ] {
        fixture.put(path, text);
    }
    assert_eq!(fixture.instructions("w/a/b"), project("root\n\nb"));
    fixture.put("home/AGENTS.md", " home \n");
    let both = fixture.instructions("w");
    assert_eq!(both.text().as_deref(), Some("home\n\n--- project-doc ---\n\nroot"));
    assert_eq!(fixture.instructions("elsewhere").text().as_deref(), Some("home"));
}

#[test]
fn one_name_of_each_folder_counts() {
    let fixture = user("project_doc_fallback_filenames = ['NOTES.md']");
    fixture.put("w/NOTES.md", "notes");
    assert_eq!(fixture.instructions("w"), project("notes"));
    fixture.put("w/AGENTS.md", "plain");
    assert_eq!(fixture.instructions("w"), project("plain"));
    fixture.put("w/AGENTS.override.md", "special");
    assert_eq!(fixture.instructions("w"), project("special"));
}

#[test]
fn a_budget_cuts_what_projects_say() {
    let fixture = user("project_doc_max_bytes = 6");
    fs::create_dir_all(fixture.root.join("w/.git")).unwrap();
    fixture.put("home/AGENTS.override.md", "home");
    fixture.put("w/AGENTS.md", "1234");
    fixture.put("w/a/AGENTS.md", "5678");
    fixture.put("w/a/b/AGENTS.md", "9");
    assert_eq!(fixture.instructions("w/a/b").project.as_deref(), Some("1234\n\n56"));
    fs::write(fixture.home.join("config.toml"), "project_doc_max_bytes = 0").unwrap();
    let none = fixture.instructions("w/a/b");
    assert_eq!((none.global.as_deref(), none.project), (Some("home"), None));
}
