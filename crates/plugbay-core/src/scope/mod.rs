//! The scope of a server's process: shared by everybody, by one project folder, or used by one session.

mod package;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock},
};

use self::package::PackageNames;

/// How far one process of a server is shared.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One process for all sessions.
    Shared,
    /// One process for each project folder.
    Project,
    /// One process for each session.
    #[default]
    Session,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Shared, Self::Project, Self::Session];

    pub fn word(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Project => "project",
            Self::Session => "session",
        }
    }
}

/// How a server is started or reached.
#[derive(Debug, Clone, Copy)]
pub enum Launch<'a> {
    Command {
        command: &'a str,
        args: &'a [String],
        /// The configured folder, absolute.
        cwd: Option<&'a str>,
    },
    Url,
    /// Another gateway, to which each session has its own id.
    Remote,
}

/// The scope of a server, and why it has this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeChoice {
    pub scope: Scope,
    pub why: String,
    /// The environment variable that names the file in which the server keeps its data, if it is known for that.
    pub file_variable: Option<&'static str>,
}

/// Servers of the same kind.
#[derive(serde::Deserialize)]
struct Family {
    scope: Scope,
    /// The name of the kind, in a word or two.
    kind: String,
    /// Packages, images, modules and commands, in lower case and with `-` for `_`.
    names: Vec<String>,
    /// The beginnings of further names, of a publisher whose servers are all of this kind.
    #[serde(default)]
    prefixes: Vec<String>,
    #[serde(default)]
    file_variable: Option<String>,
}

static FAMILIES: LazyLock<Vec<Family>> =
    LazyLock::new(|| serde_json::from_str(include_str!("known.json")).unwrap_or_default());
static KNOWN: LazyLock<HashMap<&str, &Family>> = LazyLock::new(|| {
    let named = |family: &'static Family| family.names.iter().map(move |name| (name.as_str(), family));
    FAMILIES.iter().flat_map(named).collect()
});

/// The scope of a server: as configured, else by what is known of it. An unknown server gets one process for
/// each session, because without a gateway each host has its own, too.
pub fn choose(launch: &Launch<'_>, configured: Option<Scope>, project: &str) -> ScopeChoice {
    let (known, is_image) =
        known(launch).map_or((None, false), |(family, is_image)| (Some(family), is_image));
    // A container gets neither the variables of plugbay nor its files.
    let file_variable = known.filter(|_| !is_image).and_then(|family| family.file_variable.as_deref());
    let (scope, why) = match (configured, launch, known) {
        (Some(scope), ..) => (scope, "configured".to_owned()),
        (None, Launch::Url, _) => (Scope::Shared, "a URL".to_owned()),
        (None, Launch::Remote, _) => (Scope::Session, "a remote".to_owned()),
        (None, _, None) => (Scope::Session, "not a known server".to_owned()),
        (None, _, Some(family)) if family.scope == Scope::Shared && is_of_project(launch, project) => {
            (Scope::Project, format!("{}, with files of the project", family.kind))
        }
        (None, _, Some(family)) => (family.scope, family.kind.clone()),
    };
    ScopeChoice { scope, why, file_variable }
}

/// What is known of the server, and whether it runs in a container.
fn known(launch: &Launch<'_>) -> Option<(&'static Family, bool)> {
    let Launch::Command { command, args, .. } = launch else { return None };
    let PackageNames { names, is_image } = package::names(command, args);
    names.iter().find_map(|name| family(name)).map(|family| (family, is_image))
}

fn family(name: &str) -> Option<&'static Family> {
    let begins = |family: &&Family| family.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()));
    KNOWN.get(name).copied().or_else(|| FAMILIES.iter().find(begins))
}

/// Whether the launch names something in the project folder: it differs from project to project.
fn is_of_project(launch: &Launch<'_>, project: &str) -> bool {
    let Launch::Command { command, args, cwd } = launch else { return false };
    let project = project.trim_end_matches('/');
    let inside = |path: &str| {
        let rest = path.strip_prefix(project).filter(|_| !project.is_empty());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let names = |word: &str| {
        let value = word.split_once('=').map_or(word, |(_, value)| value);
        [word, value].iter().any(|path| {
            matches!(*path, "." | "..") || path.starts_with("./") || path.starts_with("../") || inside(path)
        })
    };
    cwd.is_some_and(inside) || names(command) || args.iter().any(|word| names(word))
}

/// Names a session: two sessions with the same key are the same one. It may be a secret, so it is never printed.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    key: Arc<str>,
    lasts: bool,
    caller: Option<Arc<str>>,
}

impl SessionKey {
    /// A session that ends with its connection.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self { key: key.into(), lasts: false, caller: None }
    }

    /// A session whose requests come one by one: it ends some time after the last of them.
    pub fn lasting(key: impl Into<Arc<str>>) -> Self {
        Self { key: key.into(), lasts: true, caller: None }
    }

    /// The same session as one of several of a caller.
    #[must_use]
    pub fn of(self, caller: impl Into<Arc<str>>) -> Self {
        Self { caller: Some(caller.into()), ..self }
    }

    /// The caller of the session. A session without one is a caller itself.
    pub fn caller(&self) -> &[u8] {
        self.caller.as_ref().unwrap_or(&self.key).as_bytes()
    }

    pub fn lasts(&self) -> bool {
        self.lasts
    }

    /// The bytes of the key, for digests; never to be shown.
    pub fn as_bytes(&self) -> &[u8] {
        self.key.as_bytes()
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey")
    }
}

#[cfg(test)]
mod tests;
