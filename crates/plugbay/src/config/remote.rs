//! Remote gateways and the local servers beside them, from the configuration and the command line.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use jsonc_parser::{ast::Value, common::Range};
use plugbay_core::{exposure::Mode, name::ServerName};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{
    Env,
    diagnostic::Kind,
    document::{self, Document},
    oauth::{CommandLine, OAuthChoice},
    raw::{ConfigFile, Entry, EntryKind, Filter, Plugbay, Server, Servers},
    read::{At, Overlay, Read, as_object, given_twice, key_range, object},
    report::Report,
    word::Word,
};

/// The variable with the addresses of remotes, and the one with a bearer token for them.
pub const REMOTE: &str = "PLUGBAY_REMOTE";
const REMOTE_TOKEN: &str = "PLUGBAY_REMOTE_TOKEN";
/// The place shown for remotes that no file names.
const COMMAND_LINE: &str = "--remote or PLUGBAY_REMOTE";
/// The value of `workingDirectory` for the folder that the host works in.
pub(super) const PROJECT_ROOT: &str = "project_root";

const NO_REMOTE: &str = "`remoteTools` names tools of a remote, but there is no remote";
const ADD_REMOTE: &str = "add it to this file as \"remotes\": { \"team\": { \"url\": \"https://HOST\" } }, or set PLUGBAY_REMOTE to its address; `plugbay serve` also takes `--remote https://HOST`";

object! {
    /// A remote gateway: another plugbay, or a server with `GET /tools` and `POST /tools/call`.
    pub(super) struct Remote {
        /// The base address of the remote, with or without `/mcp`, with `${VAR}` expanded.
        "url" => url: At<String>,
        /// Headers sent with every request to the remote, with `${VAR}` expanded.
        "headers" => headers: BTreeMap<String, At<String>>,
        /// A bearer token for the remote, with `${VAR}` expanded. Better: `bearer_token_env_var`.
        "token" => token: At<String>,
        /// The environment variable with a bearer token for the remote.
        "bearer_token_env_var" => bearer_token: At<String>,
        /// The login at the remote, by OAuth; `false` for none. Default: plugbay logs in if the remote asks for it, unless the entry has an `Authorization` header.
        "oauth" => oauth: At<OAuthChoice>,
        /// A program that prints headers for the remote as a JSON object, and its arguments. plugbay uses no shell, and runs it again when the remote rejects them.
        "headersCommand" => headers_command: At<CommandLine>,
        /// A file with headers for the remote, as a JSON object or as lines `Name: value`, relative to this file's folder or with `~/`. plugbay reads it again when it changes.
        "headersFile" => headers_file: At<String>,
        /// Only these tools, by the names that the remote shows or by their own names behind `server__`; `*` matches any characters. Default: `remoteTools`, or all.
        "tools" => tools: Filter,
        /// `true`: plugbay ignores the remote.
        "disabled" => disabled: bool,
        /// `false`: plugbay ignores the remote.
        "enabled" => enabled: bool,
        /// plugbay's own settings for this remote.
        "plugbay" => plugbay: Plugbay,
    }
    ignored: ["name", "description"]
    inner: "plugbay", Plugbay
}

/// Remotes, in the order of the file.
#[derive(Debug, Clone)]
pub(super) struct Remotes(Vec<Entry>);

impl Read for Remotes {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut entries: BTreeMap<&str, Entry> = BTreeMap::new();
        for property in &as_object(value, report)?.properties {
            let name = property.name.as_str();
            let read = |report: &mut Report<'_>| Remote::read(&property.value, report);
            let (remote, problem) = report.watch(|report| report.under(name, read));
            let key = At { value: name.to_owned(), at: key_range(property) };
            let entry = remote.unwrap_or_default().into_entry(key, problem);
            if entries.insert(name, entry).is_some() {
                given_twice(property, report);
            }
        }
        let mut entries: Vec<Entry> = entries.into_values().collect();
        entries.sort_by_key(|entry| entry.key.at.start);
        Some(Self(entries))
    }
}

impl JsonSchema for Remotes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Remotes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, Remote>::json_schema(generator)
    }
}

impl Remote {
    fn into_entry(self, key: At<String>, problem: Option<String>) -> Entry {
        let mut headers = self.headers.unwrap_or_default();
        if let Some(At { value, at }) = self.token {
            headers.insert("Authorization".to_owned(), At { value: format!("Bearer {value}"), at });
        }
        let server = Server {
            url: self.url,
            headers: Some(headers),
            bearer_token: self.bearer_token,
            oauth: self.oauth,
            headers_command: self.headers_command,
            headers_file: self.headers_file,
            tools: self.tools,
            disabled: self.disabled,
            enabled: self.enabled,
            plugbay: self.plugbay,
            ..Server::default()
        };
        Entry { key, server, problem, kind: EntryKind::Remote }
    }
}

impl ConfigFile {
    /// The same file, with its remotes and local servers among its servers. A file with `localServers` is
    /// written for a client-side proxy: hosts see its tools directly, unless it says otherwise.
    pub(super) fn gathered(mut self) -> Self {
        let mut servers = self.servers.take().map(|servers| servers.0);
        if let Some(Servers(locals)) = self.local_servers.take() {
            self.mode = self.mode.or(Some(Word(Some(Mode::All))));
            servers.get_or_insert_default().extend(locals.into_iter().map(local));
        }
        if let Some(Remotes(remotes)) = self.remotes.take() {
            servers.get_or_insert_default().extend(remotes);
        }
        self.servers = servers.map(Servers);
        self
    }
}

/// A server of `localServers`, whose tools have no prefix.
fn local(entry: Entry) -> Entry {
    let bare = Plugbay { prefix: Some(false), ..Plugbay::default() };
    let own = entry.server.plugbay.clone().unwrap_or_default();
    let server = Server { plugbay: Some(own.over(bare)), ..entry.server };
    Entry { server, kind: EntryKind::Local, ..entry }
}

/// The remotes from the command line or the environment, as a file that nobody has written.
pub(super) fn unwritten(used: &[&ConfigFile], env: Env<'_>) -> Option<Document> {
    // A caller that expands no variables gets the reference itself.
    let urls = env(REMOTE).filter(|urls| !urls.trim().is_empty() && !urls.contains("${"))?;
    let written = || used.iter().flat_map(|config| config.servers.iter()).flat_map(|servers| &servers.0);
    let mut names: Vec<String> = written().map(|entry| entry.key.value.to_lowercase()).collect();
    let mut entries = Vec::new();
    for url in urls.split_whitespace() {
        let same = |entry: &Entry| {
            entry.kind == EntryKind::Remote
                && entry.server.url.as_ref().is_some_and(|other| is_same_remote(&other.value, url))
        };
        if written().any(same) || entries.iter().any(same) {
            continue;
        }
        let name = free_name(url, &names);
        names.push(name.clone());
        entries.push(of_url(name, url, env));
    }
    let mut document: Document = document::parse(Path::new(COMMAND_LINE), b"{}").ok()?;
    document.config.servers = Some(Servers(entries));
    Some(document)
}

fn of_url(name: String, url: &str, env: Env<'_>) -> Entry {
    let token = env(REMOTE_TOKEN).filter(|token| !token.trim().is_empty());
    let server = Server {
        url: Some(At::unwritten(url.to_owned())),
        bearer_token: token.map(|_| At::unwritten(REMOTE_TOKEN.to_owned())),
        ..Server::default()
    };
    Entry { key: At::unwritten(name), server, problem: None, kind: EntryKind::Remote }
}

fn is_same_remote(one: &str, other: &str) -> bool {
    fn base(url: &str) -> &str {
        let url = url.trim_end_matches('/');
        url.strip_suffix("/mcp").unwrap_or(url)
    }
    base(one) == base(other)
}

/// A name made of the host and the port: `gateway.example` becomes `gateway-example`.
fn free_name(url: &str, taken: &[String]) -> String {
    let place = url.split_once("//").map_or(url, |(_, place)| place);
    let host = place.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().to_lowercase();
    let name = ServerName::suggest(&host).map_or_else(|| "remote".to_owned(), |name| name.to_string());
    let free = |name: &String| !taken.contains(name);
    let numbered = (2..).map(|number| format!("{}-{number}", &name[..name.len().min(28)]));
    std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or(name)
}

/// The last filter for tools of remotes, with the index of its file.
pub(super) fn remote_tools<'a>(
    configs: impl Iterator<Item = &'a ConfigFile>,
) -> Option<(usize, &'a At<Filter>)> {
    configs.enumerate().filter_map(|(index, config)| Some((index, config.remote_tools.as_ref()?))).last()
}

/// Reports that tools of a remote are wanted, but there is no remote.
pub(super) fn report_no_remote(at: Range, report: &mut Report<'_>) {
    report.error(at, NO_REMOTE, ADD_REMOTE);
    report.was(Kind::NoRemote);
}

/// The folder in which a local server starts: the project's, unless it says otherwise. `folder` is that of
/// its file.
pub(super) fn working_folder(
    entry: &Entry,
    written: Option<&str>,
    folder: &Path,
    env: Env<'_>,
    report: &mut Report<'_>,
) -> Option<PathBuf> {
    let at = entry.server.cwd.as_ref().map_or(entry.key.at, |cwd| cwd.at);
    let project = env("workspaceFolder").map(PathBuf::from);
    let Some(written) = written.filter(|written| *written != PROJECT_ROOT) else {
        let project = project?;
        if project.parent().is_none() || env("userHome").is_some_and(|home| project == Path::new(&home)) {
            let message =
                format!("the project's folder is {}, where the host started plugbay", project.display());
            report.warning(at, message, "write the folder of the project as \"workingDirectory\"");
        }
        return Some(project);
    };
    let chosen = folder.join(written);
    let leaves = Path::new(written).components().any(|part| part == Component::ParentDir);
    let outside = project.is_some_and(|project| !without_dots(&chosen).starts_with(project));
    if leaves && outside {
        let message =
            format!("{written:?} leads out of the project's folder, to {}", without_dots(&chosen).display());
        report.warning(at, message, "write the whole path if that is meant");
    }
    Some(chosen)
}

/// Whether this entry's folder is the project's.
pub(super) fn is_in_project(entry: &Entry) -> bool {
    match &entry.server.cwd {
        Some(cwd) => cwd.value == PROJECT_ROOT || entry.kind == EntryKind::Local,
        None => entry.kind == EntryKind::Local,
    }
}

/// The path without `.` and `..`, by its text alone: links are not followed.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_of_the_command_line_is_named_after_its_host() {
        let taken = ["gateway-example".to_owned()];
        let cases = [
            ("https://team.example/gw?key=x", "team-example"),
            ("http://me:secret@127.0.0.1:8080/mcp", "127-0-0-1-8080"),
            ("https://Gateway.example", "gateway-example-2"),
            ("https://日本", "remote"),
        ];
        for (url, name) in cases {
            assert_eq!(free_name(url, &taken), name);
        }
    }

    #[test]
    fn a_remote_is_the_same_with_and_without_its_mcp_endpoint() {
        assert!(is_same_remote("https://h.example/mcp/", "https://h.example"));
        assert!(!is_same_remote("https://h.example/a", "https://h.example/b"));
    }

    #[test]
    fn a_working_folder_is_compared_without_dots() {
        assert_eq!(without_dots(Path::new("/a/b/../../c/./d")), Path::new("/c/d"));
    }
}
