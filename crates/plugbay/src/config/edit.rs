//! Configuration files that commands change: found, read, previewed and written.

use std::{
    io,
    path::{Path, PathBuf},
};

use plugbay_hosts::jsonc;
use serde_json::Value;

use super::{
    approve::{Approval, ApproveError, Content, approval, approve},
    diagnostic::Diagnostic,
    document::{self, Document},
    paths::{PROJECT_FILE, Paths, is_switchboard, project_file, project_folder, within_project},
    source::Syntax,
};
use crate::files;

/// The keys that hold servers; the first one is plugbay's own.
const SERVERS: [&str; 5] = ["mcpServers", "servers", "context_servers", "mcp_servers", "mcp"];
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// One of the files that are laid over each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    User,
    Project,
    /// The file that the command line names.
    Explicit,
}

/// A configuration file that was read in order to be changed.
#[derive(Debug, Clone)]
pub struct Editable {
    pub file: PathBuf,
    pub layer: Layer,
    /// Its text without a byte order mark; empty if there is no file yet.
    pub text: String,
    /// Absent if there is no file yet.
    bytes: Option<Vec<u8>>,
    approval: Approval,
}

/// The reason why a file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("there is no folder for the configuration; set HOME or XDG_CONFIG_HOME")]
    NoFolder,
    #[error("{} is written for Switchboard; plugbay reads it and does not change it", .0.display())]
    Switchboard(PathBuf),
    #[error("{} is YAML; plugbay reads it and does not change it: edit it by hand, or use a file in JSONC", .0.display())]
    Yaml(PathBuf),
    #[error(
        "{} leads to {}, which is not in the project; nothing was changed: put a file in the place of the link",
        file.display(), target.display()
    )]
    Outside { file: PathBuf, target: PathBuf },
    /// The file cannot be parsed.
    #[error("{} is broken; nothing was changed", file.display())]
    Broken { file: PathBuf, problems: Vec<Diagnostic> },
    #[error("{} has changed in the meantime; nothing was written", .0.display())]
    Changed(PathBuf),
    #[error("{} cannot be written: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error("{} was written, but cannot be approved: {source}", file.display())]
    Approve { file: PathBuf, source: ApproveError },
    #[error("{}: {source}", file.display())]
    Edit { file: PathBuf, source: jsonc::EditError },
}

impl Editable {
    pub fn user(paths: &Paths) -> Result<Self, EditError> {
        Self::read(paths.user_file.as_deref().ok_or(EditError::NoFolder)?, Layer::User, paths)
    }

    /// The effective project file, or a new one at the root of the project.
    pub fn project(paths: &Paths, root: &Path) -> Result<Self, EditError> {
        let file = project_file(&paths.start).unwrap_or_else(|| root.join(PROJECT_FILE));
        if is_switchboard(&file) {
            return Err(EditError::Switchboard(file));
        }
        let is_below = |root: &&Path| file.starts_with(root);
        let project = Some(root).filter(is_below).unwrap_or_else(|| project_folder(&paths.start));
        within_project(&file, project, paths)
            .map_err(|target| EditError::Outside { file: file.clone(), target })?;
        Self::read(&file, Layer::Project, paths)
    }

    pub fn explicit(file: &Path, paths: &Paths) -> Result<Self, EditError> {
        Self::read(file, Layer::Explicit, paths)
    }

    fn read(file: &Path, layer: Layer, paths: &Paths) -> Result<Self, EditError> {
        if Syntax::of(file) == Syntax::Yaml {
            return Err(EditError::Yaml(file.into()));
        }
        let broken = |problems| EditError::Broken { file: file.into(), problems };
        let bytes = document::bytes(file).map_err(|problem| broken(vec![*problem]))?;
        let known = bytes.as_deref().unwrap_or_default();
        let document: Document = document::parse(file, known).map_err(broken)?;
        let approval = approval(paths.approvals().as_deref(), file, known);
        Ok(Self { file: file.into(), layer, text: document.source.text, bytes, approval })
    }

    /// Whether plugbay uses the file as it is: a project's file that exists must be approved.
    pub fn is_used(&self) -> bool {
        self.layer != Layer::Project || self.bytes.is_none() || self.approval == Approval::Given
    }

    /// The key in the file that holds the servers.
    pub fn servers_key(&self) -> &'static str {
        let present = |key: &&&str| matches!(jsonc::get(&self.text, &[key]), Ok(Some(_)));
        SERVERS.iter().find(present).unwrap_or(&SERVERS[0])
    }

    /// The names of its servers, as written.
    pub fn names(&self) -> Vec<String> {
        let servers = jsonc::get(&self.text, &[self.servers_key()]);
        let Ok(Some(Value::Object(servers))) = servers else { return Vec::new() };
        servers.into_iter().map(|(name, _)| name).collect()
    }

    /// A server's name as written. Servers' names are not case-sensitive.
    pub fn written_name(&self, name: &str) -> Option<String> {
        self.names().into_iter().find(|written| written.to_lowercase() == name.to_lowercase())
    }

    pub fn entry(&self, written_name: &str) -> Option<Value> {
        jsonc::get(&self.text, &[self.servers_key(), written_name]).ok().flatten()
    }

    /// Sets a value at a path below the servers.
    pub fn set(&mut self, path: &[&str], value: jsonc::Input) -> Result<(), EditError> {
        let path = [&[self.servers_key()], path].concat();
        self.text = jsonc::set(&self.text, &path, value).map_err(|source| self.edit_error(source))?;
        Ok(())
    }

    /// Removes the value at a path below the servers, if there is one.
    pub fn remove(&mut self, path: &[&str]) -> Result<(), EditError> {
        let path = [&[self.servers_key()], path].concat();
        if let Some(text) = jsonc::remove(&self.text, &path).map_err(|source| self.edit_error(source))? {
            self.text = text;
        }
        Ok(())
    }

    fn edit_error(&self, source: jsonc::EditError) -> EditError {
        EditError::Edit { file: self.file.clone(), source }
    }

    /// The bytes of the file with its current text.
    pub(super) fn content(&self) -> Vec<u8> {
        let marked = self.bytes.as_ref().is_some_and(|bytes| bytes.starts_with(BYTE_ORDER_MARK.as_bytes()));
        let mark = if marked { BYTE_ORDER_MARK } else { "" };
        format!("{mark}{}", self.text).into_bytes()
    }

    /// Writes the file, unless it has changed since it was read. A project's file that is new, or that
    /// plugbay used before, is approved with its new content.
    pub fn write(&self, paths: &Paths) -> Result<(), EditError> {
        let content = self.content();
        let unchanged = matches!(document::bytes(&self.file), Ok(present) if present == self.bytes);
        if !unchanged {
            return Err(EditError::Changed(self.file.clone()));
        }
        let failed = |source| EditError::Write { file: self.file.clone(), source };
        files::replace(&self.file, &content).map_err(failed)?;
        if self.layer != Layer::Project || !self.is_used() {
            return Ok(());
        }
        let failed = |source| EditError::Approve { file: self.file.clone(), source };
        approve(paths, &[Content::of(&self.file, &content)]).map_err(failed)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn paths(root: &Path) -> Paths {
        let (user_file, state_folder) = (Some(root.join("c/config.jsonc")), Some(root.join("state")));
        Paths { user_file, state_folder, home: None, start: root.join("p") }
    }

    fn place() -> (tempfile::TempDir, Paths) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("p/.git")).unwrap();
        let paths = paths(root.path());
        (root, paths)
    }

    fn entry() -> jsonc::Input {
        jsonc::input(&json!({ "command": "x" }))
    }

    #[test]
    fn a_configuration_file_keeps_its_byte_order_mark_comments_and_other_key_for_servers() {
        let (_root, paths) = place();
        let file = paths.user_file.clone().unwrap();
        let text = "\u{feff}// mine\r\n{\r\n  \"servers\": { \"A\": {} } // them\r\n}\r\n";
        files::replace(&file, text.as_bytes()).unwrap();
        let mut editable = Editable::user(&paths).unwrap();
        assert_eq!((editable.servers_key(), editable.written_name("a")), ("servers", Some("A".to_owned())));
        editable.remove(&["A"]).unwrap();
        editable.set(&["b"], entry()).unwrap();
        editable.write(&paths).unwrap();
        let written = fs::read_to_string(&file).unwrap();
        assert!(
            written.starts_with("\u{feff}// mine\r\n{") && written.contains("// them\r\n"),
            "{written:?}"
        );
        assert_eq!(Editable::user(&paths).unwrap().names(), ["b"]);
    }

    #[test]
    fn a_configuration_file_that_changed_or_is_broken_is_not_written() {
        let (_root, paths) = place();
        let file = paths.user_file.clone().unwrap();
        let mut editable = Editable::user(&paths).unwrap();
        editable.set(&["a"], entry()).unwrap();
        files::replace(&file, b"{ // by someone else\n}").unwrap();
        assert!(matches!(editable.write(&paths), Err(EditError::Changed(_))));
        files::replace(&file, b"{ nonsense").unwrap();
        let Err(EditError::Broken { problems, .. }) = Editable::user(&paths) else { panic!("it is broken") };
        assert_eq!(problems[0].position.unwrap().line, 1);
        assert_eq!(fs::read(&file).unwrap(), b"{ nonsense");
    }

    #[test]
    fn a_project_file_is_approved_again_only_if_it_was_approved() {
        let (root, paths) = place();
        let project = root.path().join("p");
        let mut new = Editable::project(&paths, &project).unwrap();
        assert!(new.is_used());
        new.set(&["a"], entry()).unwrap();
        new.write(&paths).unwrap();
        assert!(Editable::project(&paths, &project).unwrap().is_used(), "its author approves it");

        fs::write(project.join(PROJECT_FILE), "{ \"mcpServers\": {} }").unwrap();
        let mut foreign = Editable::project(&paths, &project).unwrap();
        assert!(!foreign.is_used());
        foreign.set(&["b"], entry()).unwrap();
        foreign.write(&paths).unwrap();
        assert!(!Editable::project(&paths, &project).unwrap().is_used(), "nobody has read the rest of it");
    }

    #[test]
    fn a_configuration_file_with_a_doubled_key_is_not_edited() {
        let (_root, paths) = place();
        let text = "{ \"mcpServers\": { \"a\": {} },\n  \"mcpServers\": { \"a\": {} } }";
        files::replace(paths.user_file.as_deref().unwrap(), text.as_bytes()).unwrap();
        let mut editable = Editable::user(&paths).unwrap();
        for problem in [editable.set(&["b"], entry()), editable.remove(&["a"])] {
            let message = problem.unwrap_err().to_string();
            assert!(message.contains("`mcpServers` occurs twice, again in line 2"), "{message}");
        }
        assert_eq!(editable.text, text);
    }

    #[test]
    fn a_project_file_that_links_out_of_its_project_is_not_changed() {
        let (root, paths) = place();
        let project = root.path().join("p");
        let link = project.join(PROJECT_FILE);
        for target in ["../c/config.jsonc", "../elsewhere/new.jsonc", "../no/../c/config.jsonc"] {
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(
                matches!(Editable::project(&paths, &project), Err(EditError::Outside { .. })),
                "{target}"
            );
            fs::create_dir_all(root.path().join("c")).unwrap();
            fs::write(root.path().join("c/config.jsonc"), "{}").unwrap();
            assert!(
                matches!(Editable::project(&paths, &project), Err(EditError::Outside { .. })),
                "{target}"
            );
            fs::remove_dir_all(root.path().join("c")).unwrap();
            fs::remove_file(&link).unwrap();
        }
        std::os::unix::fs::symlink("shared.jsonc", &link).unwrap();
        let mut inside = Editable::project(&paths, &project).unwrap();
        inside.set(&["a"], entry()).unwrap();
        inside.write(&paths).unwrap();
        assert!(project.join("shared.jsonc").is_file(), "a link within the project stays usable");
    }

    #[test]
    fn a_switchboard_file_is_not_changed() {
        let (root, paths) = place();
        let project = root.path().join("p");
        fs::write(project.join("switchboard.config.json"), "{}").unwrap();
        assert!(matches!(Editable::project(&paths, &project), Err(EditError::Switchboard(_))));
    }
}
