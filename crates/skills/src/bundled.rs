//! The skills that come with this program. They are written to `skills/.system` of the home, where models can read them
//! and whatever files they refer to.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The files, relative to the folder of system skills.
const FILES: [(&str, &str); 2] = [
    ("skill-creator/SKILL.md", include_str!("../bundled/skill-creator/SKILL.md")),
    ("plugin-creator/SKILL.md", include_str!("../bundled/plugin-creator/SKILL.md")),
];

/// Holds the fingerprint of the files that were written. A folder without it was written by another program.
const MARKER: &str = ".loomd-system-skills";

/// Writes the bundled skills unless they are there already. A folder of system skills that another program has written
/// stays as it is.
pub fn install_bundled(home: &Path) -> io::Result<()> {
    let folder = system_folder(home);
    let fingerprint = fingerprint();
    match fs::read_to_string(folder.join(MARKER)) {
        Ok(written) if written == fingerprint => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_dir(&folder) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        },
        Err(error) => return Err(error),
    }
    let staging = folder.with_file_name(format!(".system-{}", std::process::id()));
    let written = write_to(&staging, &fingerprint).and_then(|()| {
        remove(&folder)?;
        fs::rename(&staging, &folder)
    });
    if written.is_err() {
        _ = remove(&staging);
    }
    written
}

/// Removes the folder of system skills.
pub fn remove_bundled(home: &Path) -> io::Result<()> {
    remove(&system_folder(home))
}

fn write_to(folder: &Path, fingerprint: &str) -> io::Result<()> {
    remove(folder)?;
    for (name, text) in FILES {
        let path = folder.join(name);
        loomd_private::create_dir_all(path.parent().unwrap_or(folder))?;
        write(&path, text)?;
    }
    write(&folder.join(MARKER), fingerprint)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = loomd_private::options().write(true).create_new(true).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn system_folder(home: &Path) -> PathBuf {
    home.join("skills/.system")
}

fn fingerprint() -> String {
    let mut hash = Sha256::new();
    for (name, text) in FILES {
        hash.update(name);
        hash.update([0]);
        hash.update(text);
        hash.update([0]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use loomd_protocol::SkillScope;

    use super::*;
    use crate::{SkillRoot, SkillRules, find};

    fn listed(home: &Path) -> Vec<String> {
        let root = SkillRoot { folder: system_folder(home), scope: SkillScope::System, plugin_id: None };
        find(&[root], &SkillRules::default()).skills.into_iter().map(|skill| skill.name).collect()
    }

    #[test]
    fn bundled_skills_are_written_once_and_valid() {
        let home = tempfile::tempdir().unwrap();
        install_bundled(home.path()).unwrap();
        assert_eq!(listed(home.path()), ["plugin-creator", "skill-creator"]);
        let marker = system_folder(home.path()).join(MARKER);
        let written = fs::metadata(&marker).unwrap().modified().unwrap();
        install_bundled(home.path()).unwrap();
        assert_eq!(fs::metadata(&marker).unwrap().modified().unwrap(), written);
        let names: Vec<_> = fs::read_dir(home.path().join("skills")).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "no staging folder is left: {names:?}");
    }

    #[test]
    fn outdated_files_are_replaced_and_those_of_other_programs_stay() {
        let home = tempfile::tempdir().unwrap();
        let folder = system_folder(home.path());
        fs::create_dir_all(folder.join("old")).unwrap();
        fs::write(folder.join("old/SKILL.md"), "---\ndescription: d\n---\n").unwrap();
        install_bundled(home.path()).unwrap();
        assert_eq!(listed(home.path()), ["old"]);
        fs::write(folder.join(MARKER), "another version").unwrap();
        install_bundled(home.path()).unwrap();
        assert_eq!(listed(home.path()), ["plugin-creator", "skill-creator"]);
    }

    #[test]
    fn removing_what_is_not_there_is_fine() {
        let home = tempfile::tempdir().unwrap();
        remove_bundled(home.path()).unwrap();
        install_bundled(home.path()).unwrap();
        remove_bundled(home.path()).unwrap();
        assert!(!system_folder(home.path()).exists());
    }
}
