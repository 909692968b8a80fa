//! The servers of a file as entries that can be written into another file.

use std::{collections::BTreeMap, path::Path};

use plugbay_hosts::{Launch, Remote, RemoteKind};
use plugbay_upstream::spec::HttpFlavour;
use serde_json::{Map, Value, json};

use super::{
    Diagnostic,
    entry::{is_disabled, tuning},
    files::{Files, Origin},
    oauth::{CommandLine, Part, Scopes},
    paths::Paths,
    raw::{Entry, Filter, Plugbay, Server},
    read::At,
    units::Limit,
    word::{Reach, Word},
};

/// The servers in a file, and in the files that it includes.
#[derive(Debug, Default)]
pub struct Listed {
    /// The entries as written; variables are not expanded.
    pub servers: Vec<plugbay_hosts::Entry>,
    /// All names, including those of broken entries.
    pub names: Vec<String>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads one file in any form that `--config` accepts.
pub fn servers_in(file: &Path, paths: &Paths) -> Listed {
    let mut files = Files::default();
    files.explicit(file, paths);
    let mut entries: BTreeMap<String, plugbay_hosts::Entry> = BTreeMap::new();
    let mut names = Vec::new();
    // Later documents have precedence.
    for (document, origin) in &files.used {
        let folder = document.source.path.parent().unwrap_or(Path::new(""));
        for entry in document.config.servers.iter().flat_map(|servers| &servers.0) {
            names.push(entry.key.value.clone());
            let described = describe(entry, folder, *origin);
            entries.extend(described.map(|described| (entry.key.value.to_lowercase(), described)));
        }
    }
    let mut servers = Vec::new();
    for name in &names {
        servers.extend(entries.remove(&name.to_lowercase()));
    }
    Listed { servers, names, diagnostics: files.diagnostics }
}

/// The entry in the common form for all hosts; `None` if it does not say how to reach its server.
fn describe(entry: &Entry, folder: &Path, origin: Origin) -> Option<plugbay_hosts::Entry> {
    let Entry { key, server, problem: None, .. } = entry else { return None };
    let Plugbay { allow, deny, start, timeout, pass_env, .. } = tuning(server);
    let mut described = plugbay_hosts::Entry::new(&key.value, launch(server, folder, origin)?);
    described.disabled = is_disabled(server);
    described.include = patterns(allow);
    described.exclude = patterns(deny);
    described.start_seconds = start.map(|Limit(time)| time.as_secs());
    let milliseconds = |Limit(time): Limit| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    described.call_milliseconds = timeout.map(milliseconds);
    described.pass_env = pass_env.unwrap_or_default().sorted();
    Some(described)
}

fn launch(server: &Server, folder: &Path, origin: Origin) -> Option<Launch> {
    let reach = server.reach.as_ref().map(|At { value: Word(reach), .. }| *reach);
    match (reach, &server.url) {
        (None | Some(Reach::Http(_)), Some(url)) => {
            Some(Launch::Remote(remote(server, &url.value, reach, folder)))
        }
        _ => process(server, folder, origin),
    }
}

fn process(server: &Server, folder: &Path, origin: Origin) -> Option<Launch> {
    let words = server.command.iter().flat_map(|argv| &argv.0).chain(server.args.iter().flatten());
    let mut words = words.map(|word| word.value.clone());
    let command = words.next()?;
    let cwd = match &server.cwd {
        // `join` leaves an absolute path unchanged.
        Some(At { value, .. }) if !value.starts_with("${") => Some(folder.join(value)),
        Some(At { value, .. }) => Some(value.into()),
        None => (origin == Origin::Project).then(|| folder.to_owned()),
    };
    let cwd = cwd.map(|cwd| cwd.to_string_lossy().into_owned());
    Some(Launch::Process { command, args: words.collect(), env: values(server.env.as_ref()), cwd })
}

fn remote(server: &Server, url: &str, reach: Option<Reach>, folder: &Path) -> Remote {
    let kind = match reach {
        Some(Reach::Http(HttpFlavour::Sse)) => RemoteKind::Sse,
        Some(Reach::Http(HttpFlavour::Streamable)) => RemoteKind::Http,
        _ => RemoteKind::Unsaid,
    };
    let mut headers = values(server.headers.as_ref());
    let variables = server.env_headers.iter().flatten();
    headers.extend(variables.map(|(name, variable)| (name.clone(), format!("${{{}}}", variable.value))));
    let token = server.bearer_token.as_ref().map(|variable| format!("Bearer ${{{}}}", variable.value));
    headers.extend(token.map(|token| ("Authorization".to_owned(), token)));
    Remote { url: url.to_owned(), kind, headers, login: login(server, folder) }
}

/// The source of further credentials. Its files stay where they are.
fn login(server: &Server, folder: &Path) -> Map<String, Value> {
    let whole = |path: &str| match path {
        path if path.starts_with("~/") || path.starts_with("${") => path.to_owned(),
        path => folder.join(path).to_string_lossy().into_owned(),
    };
    let write = |part: Part, text: &str| if part == Part::File { whole(text) } else { text.to_owned() };
    let mut oauth = server.oauth.as_ref().map_or_else(|| json!({}), |oauth| oauth.value.value(&write));
    if let (Value::Object(oauth), Some(Scopes(scopes))) = (&mut oauth, &server.scopes) {
        oauth.entry("scopes").or_insert_with(|| json!(scopes));
    }
    let mut login = Map::new();
    if oauth != json!({}) {
        login.insert("oauth".to_owned(), oauth);
    }
    if let Some(At { value: CommandLine(words), .. }) = &server.headers_command {
        let words = words.iter().enumerate().map(|(place, word)| match word.value.as_str() {
            program if place == 0 && program.contains('/') => whole(program),
            word => word.to_owned(),
        });
        login.insert("headersCommand".to_owned(), words.collect());
    }
    login.extend(
        server.headers_file.as_ref().map(|file| ("headersFile".to_owned(), whole(&file.value).into())),
    );
    login
}

fn values(values: Option<&BTreeMap<String, At<String>>>) -> BTreeMap<String, String> {
    values.into_iter().flatten().map(|(name, value)| (name.clone(), value.value.clone())).collect()
}

/// The patterns of a filter. They are valid here: a broken one makes its whole entry broken.
fn patterns(filter: Option<Filter>) -> Vec<String> {
    filter.and_then(|Filter(patterns)| patterns.ok()).unwrap_or_default()
}
