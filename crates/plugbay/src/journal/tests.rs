//! Changes, and the files after undoing them.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A journal, and a folder with the files that it changes.
struct World {
    root: tempfile::TempDir,
}

const OWN: &str = r#"{"mcpServers": {"plugbay": {}}}"#;

impl World {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.path("state/setup")
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.state()).unwrap()
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn text(&self, name: &str) -> Option<String> {
        file::read(&self.path(name)).unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn target(&self, name: &str, part: Part) -> Target {
        Target { command: "plugbay setup", host: Some("some-host".into()), part, path: self.path(name) }
    }

    fn write(&self, name: &str, new: &str) -> Result<bool, ChangeError> {
        let old = self.text(name);
        let expected = old.as_deref().map(str::as_bytes);
        self.journal().write(self.target(name, Part::Servers), expected, new.as_bytes())
    }

    fn undo(&self) -> Vec<Outcome> {
        let merge = |_: &Change, texts: Texts<'_>| {
            reverse(texts.before, texts.after, texts.now).map_err(|error| error.to_string())
        };
        let undone = self.journal().undo(|_| true, &merge).unwrap();
        undone.into_iter().map(|undone| undone.outcome).collect()
    }
}

#[test]
fn undo_restores_a_changed_file_and_removes_a_new_one() {
    let world = World::new();
    world.put("old", "{ }  // odd\n");
    assert!(world.write("old", OWN).unwrap());
    assert!(world.write("new/deep/file", OWN).unwrap());
    assert!(!world.write("old", OWN).unwrap(), "there is nothing to write");
    assert_eq!(world.undo(), [Outcome::Removed, Outcome::Restored]);
    assert_eq!(world.text("old").as_deref(), Some("{ }  // odd\n"));
    assert!(!world.path("new").exists(), "its folders go with it");
    assert_eq!(world.undo(), [], "undoing twice is harmless");
}

#[test]
fn undo_keeps_later_changes_of_a_file() {
    let world = World::new();
    world.put("file", r#"{"mcpServers": {"a": 1}}"#);
    world.write("file", OWN).unwrap();
    world.put("file", r#"{"mcpServers": {"plugbay": {}}, "theme": 1}"#);
    assert_eq!(world.undo(), [Outcome::Merged]);
    let now: serde_json::Value = serde_json::from_str(&world.text("file").unwrap()).unwrap();
    assert_eq!(now, serde_json::json!({ "mcpServers": { "a": 1 }, "theme": 1 }));
}

#[test]
fn two_changes_of_a_file_are_undone_one_after_the_other() {
    let world = World::new();
    world.put("file", r#"{"a": 1}"#);
    world.write("file", r#"{"a": 1, "b": 2}"#).unwrap();
    world.put("file", r#"{"a": 1, "b": 2, "mine": 0}"#);
    world.write("file", r#"{"a": 1, "b": 2, "mine": 0, "c": 3}"#).unwrap();
    assert_eq!(world.undo(), [Outcome::Restored, Outcome::Merged]);
    assert_eq!(world.text("file").as_deref(), Some(r#"{"a": 1, "mine": 0}"#));
}

#[test]
fn a_change_that_was_recorded_and_never_made_is_undone_without_a_trace() {
    let world = World::new();
    world.put("file", "{}");
    let mut journal = world.journal();
    journal.record(world.target("file", Part::Servers), Some(State::of_bytes(b"[]"))).unwrap();
    journal.record(world.target("by-program", Part::Servers), None).unwrap();
    drop(journal);
    assert_eq!(world.undo(), [Outcome::Unchanged, Outcome::Unchanged]);
    assert_eq!(world.text("file").as_deref(), Some("{}"));
}

#[test]
fn a_program_that_was_interrupted_leaves_a_change_that_can_be_undone() {
    let world = World::new();
    world.put("file", r#"{"a": 1}"#);
    world.journal().record(world.target("file", Part::Servers), None).unwrap();
    world.put("file", r#"{"a": 1, "plugbay": 2}"#);
    // Without the program's intended text, only a merge that knows plugbay's entry can decide.
    let merge = |_: &Change, texts: Texts<'_>| {
        assert_eq!(texts.after, "");
        Ok(texts.now.replace(r#", "plugbay": 2"#, ""))
    };
    let undone = world.journal().undo(|_| true, &merge).unwrap();
    assert_eq!(undone[0].outcome, Outcome::Merged);
    assert_eq!(world.text("file").as_deref(), Some(r#"{"a": 1}"#));
}

#[test]
fn a_file_that_changed_since_it_was_shown_is_left_alone() {
    let world = World::new();
    world.put("file", "shown");
    let target = world.target("file", Part::Servers);
    world.put("file", "newer");
    let result = world.journal().write(target, Some(b"shown"), b"ours");
    assert!(matches!(result, Err(ChangeError::Moved(_))), "{result:?}");
    assert_eq!((world.text("file").as_deref(), world.journal().changes().len()), (Some("newer"), 0));
}

#[test]
fn a_read_only_file_is_not_changed_and_not_recorded() {
    let world = World::new();
    world.put("file", "old");
    fs::set_permissions(world.path("file"), fs::Permissions::from_mode(0o444)).unwrap();
    let error = world.write("file", OWN).unwrap_err().to_string();
    assert!(error.ends_with("/file: the file is read-only"), "{error}");
    assert_eq!((world.text("file").as_deref(), world.journal().changes().len()), (Some("old"), 0));
}

#[test]
fn a_link_is_undone_to_whatever_stood_there() {
    let world = World::new();
    world.put("copy", "mine");
    symlink("elsewhere", world.path("other")).unwrap();
    let mut journal = world.journal();
    for name in ["copy", "other", "none/SKILL.md"] {
        assert!(journal.link(world.target(name, Part::Skill), Path::new("/ours")).unwrap());
        assert!(!journal.link(world.target(name, Part::Skill), Path::new("/ours")).unwrap());
        assert_eq!(fs::read_link(world.path(name)).unwrap(), Path::new("/ours"));
    }
    drop(journal);
    assert_eq!(world.undo(), [Outcome::Removed, Outcome::Restored, Outcome::Restored]);
    assert_eq!(world.text("copy").as_deref(), Some("mine"));
    assert_eq!(fs::read_link(world.path("other")).unwrap(), Path::new("elsewhere"));
    assert!(!world.path("none").exists());
}

#[test]
fn a_file_behind_a_link_is_changed_and_restored_in_its_place() {
    let world = World::new();
    world.put("real", "{}");
    symlink("real", world.path("alias")).unwrap();
    world.write("alias", OWN).unwrap();
    assert_eq!(world.text("real").as_deref(), Some(OWN));
    assert_eq!(world.undo(), [Outcome::Restored]);
    assert_eq!(world.text("real").as_deref(), Some("{}"));
    assert!(fs::symlink_metadata(world.path("alias")).unwrap().is_symlink());
}

#[test]
fn only_one_process_has_the_journal_and_its_files_are_private() {
    let world = World::new();
    world.put("file", "secret");
    world.write("file", OWN).unwrap();
    let journal = world.journal();
    assert!(matches!(Journal::open(&world.state()), Err(OpenError::Busy)));
    assert_eq!(read(&world.state()).unwrap(), journal.changes(), "anybody may look");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!(mode(&world.state()), 0);
    let files = fs::read_dir(world.state()).unwrap().map(|entry| entry.unwrap().path());
    assert!(files.filter(|file| !file.ends_with(LOCK)).all(|file| mode(&file) == 0));
}
