//! Rules that show only when a whole file, or several, are loaded.

mod authorization;
mod credentials;
mod discover;
mod entries;
mod export;
mod files;
mod natural_language;
mod problems;
mod search;
mod yaml;

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use plugbay_upstream::spec::{ServerSpec, Transport};
use tempfile::TempDir;

use super::{Diagnostic, Paths, ServerSettings, Settings, approve, load};

const TOKEN: &str = "hunter2-from-the-environment";

/// The settings of a file, in an environment with these variables.
fn settings(text: &str, environment: &[(&str, &str)]) -> Settings {
    let place = Place::new();
    place.write("project/c", text);
    let value =
        |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    load(Some(Path::new("c")), &place.paths(), &value)
}

/// A folder that contains a home and a repository, with an environment of one variable.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.path("project/.git")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn paths(&self) -> Paths {
        let user_file = Some(self.path("home/config.jsonc"));
        let (state_folder, home) = (Some(self.path("state")), Some(self.path("home")));
        Paths { user_file, state_folder, home, start: self.path("project") }
    }

    fn load(&self, explicit: Option<&str>) -> Settings {
        let env = |name: &str| (name == "TOK").then(|| TOKEN.to_owned());
        load(explicit.map(Path::new), &self.paths(), &env)
    }

    /// Approves a file, as `plugbay approve` does once its user has agreed.
    fn approve(&self, file: &str) {
        let shown = self.load(Some(file));
        approve(&self.paths(), &shown.contents).unwrap();
    }

    /// The text without everything that depends on the folder's name.
    fn plain(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.path().display()), "")
    }

    /// Servers and problems, one per line.
    fn summary(&self, settings: &Settings) -> String {
        let mut summary = String::new();
        for server in &settings.servers {
            match &server.spec {
                Ok(spec) => writeln!(summary, "{}: {}", server.name, launch(spec)).unwrap(),
                Err(reason) => writeln!(summary, "{} failed: {reason}", server.name).unwrap(),
            }
        }
        for name in &settings.disabled {
            writeln!(summary, "{name} disabled").unwrap();
        }
        for problem in &settings.diagnostics {
            writeln!(summary, "{}", line(problem)).unwrap();
        }
        self.plain(summary.trim_end()).replace(TOKEN, "<token>")
    }
}

fn launch(spec: &ServerSpec) -> String {
    let stdio = match &spec.transport {
        Transport::Stdio(stdio) => stdio,
        Transport::Http(http) => {
            let headers = http.headers.iter().map(|(name, value)| format!(" {name}={value}"));
            return format!("{} {:?}{}", http.url, http.flavour, headers.collect::<String>());
        }
    };
    let mut words = vec![stdio.command.clone()];
    words.extend(stdio.args.clone());
    words.extend(stdio.env.iter().map(|(name, value)| format!("{name}={value}")));
    words.extend(stdio.cwd.iter().map(|cwd| format!("in {}", cwd.display())));
    words.join(" ")
}

fn line(problem: &Diagnostic) -> String {
    let place = problem.position.map(|at| format!(" {}:{}", at.line, at.column)).unwrap_or_default();
    let help = problem.help.as_deref().unwrap_or_default();
    format!("{}{place}: {}; {help}", problem.severity, problem.message)
}

#[track_caller]
fn check(text: impl AsRef<[u8]>, expected: &str) {
    let place = Place::new();
    place.write("project/c", text);
    assert_eq!(place.summary(&place.load(Some("c"))), expected.trim());
}

/// The same for one server `s` whose entry begins at 2:1.
#[track_caller]
fn check_entry(entry: &str, expected: &str) {
    check(format!("{{\"mcpServers\": {{\"s\":\n{entry}}}}}"), expected);
}

#[track_caller]
fn one_server(text: &str) -> ServerSettings {
    let place = Place::new();
    place.write("project/c", text);
    let settings = place.load(Some("c"));
    assert_eq!(settings.diagnostics, [], "{text}");
    settings.servers.into_iter().next().unwrap()
}
