//! A server to add: its name and the members of its entry.

use std::{collections::BTreeMap, path::Path};

use plugbay_core::name::ServerName;
use plugbay_hosts::{Entry, Launch, Remote, RemoteKind, jsonc::Input, own};
use serde_json::{Map, Value};

use super::{
    flags::{AddArgs, ConnectionFlags, LoginFlags, Transport},
    line::is_url,
};
use crate::commands::CommandError;

/// The variable in which Claude Code expects the secret.
const CLIENT_SECRET: &str = "MCP_CLIENT_SECRET";

/// A server to add, as it will be written.
#[derive(Debug, Clone)]
pub struct Addition {
    pub name: ServerName,
    /// The members of its entry, in order. Without a launch they can only change an existing entry.
    pub members: Vec<(String, Input)>,
}

impl Addition {
    /// Reads the options of `add`. The second value holds notes for the user.
    pub fn of(args: AddArgs, folder: &Path) -> Result<(Self, Vec<String>), CommandError> {
        let name = server_name(&args.name)?;
        let mut notes = args.without_effect.notes();
        let mut words = args.launch;
        if let Some(split) = whole_line(&words, folder) {
            notes.push(format!("{:?} was one word; plugbay starts {} with arguments", words[0], split[0]));
            words = split;
        }
        let relative = relative_path(&words, folder).filter(|_| args.connection.cwd.is_none());
        let (launch, key) = launch(&args.name, words, args.connection, &mut notes)?;
        if let (Some(path), Launch::Process { .. }) = (relative, &launch) {
            notes.push(format!(
                "{path} is relative, and hosts start plugbay in other folders: \
                 write the whole path, or add --cwd \"$PWD\""
            ));
        }
        let mut entry = Entry::new(name.as_str(), launch);
        entry.include = args.tools.include_tools;
        entry.exclude = args.tools.exclude_tools;
        entry.call_milliseconds = args.tools.timeout;
        let Input::Object(mut members) = own::value(&entry) else { return Err(no_launch(&args.name)) };
        members.retain(|(member, _)| Some(member.as_str()) != key);
        members.extend(args.tools.description.map(|text| ("description".to_owned(), Input::String(text))));
        Ok((Self { name, members }, notes))
    }

    pub fn value(&self) -> Input {
        Input::Object(self.members.clone())
    }

    /// Whether it says how to reach the server.
    pub fn has_launch(&self) -> bool {
        let reaches = |key: &str| ["command", "cmd", "url", "serverUrl", "uri", "httpUrl"].contains(&key);
        self.members.iter().any(|(key, _)| reaches(key))
    }
}

/// A valid server name, or an error with a suggestion.
pub fn server_name(name: &str) -> Result<ServerName, CommandError> {
    ServerName::parse(name).map_err(|error| {
        let problem = CommandError::usage(format!("the server name {name:?} {error}"));
        match ServerName::suggest(name) {
            Some(near) => problem.hint(format!("for example: {near}")),
            None => problem,
        }
    })
}

pub fn no_launch(name: &str) -> CommandError {
    CommandError::usage(format!("how is {name} reached?"))
        .hint(format!("a program: plugbay add {name} -- COMMAND [ARGUMENT]…"))
        .hint(format!("an address: plugbay add {name} https://HOST/mcp"))
}

/// The launch of the server. Without an address or a program, it holds only the other settings, and the
/// second value names the missing member.
fn launch(
    name: &str,
    mut words: Vec<String>,
    flags: ConnectionFlags,
    notes: &mut Vec<String>,
) -> Result<(Launch, Option<&'static str>), CommandError> {
    if let Some(url) = flags.url {
        if !words.is_empty() {
            return Err(CommandError::usage("give either a URL or a command, not both"));
        }
        words.push(url);
    }
    let mut headers: BTreeMap<String, String> = flags.header.into_iter().collect();
    if let Some(variable) = flags.bearer_token_env_var {
        headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}"));
    }
    let env: BTreeMap<String, String> = flags.env.into_iter().collect();
    let is_remote = match (flags.transport, words.first()) {
        (Some(transport), Some(_)) => transport != Transport::Stdio,
        (_, Some(word)) => is_url(word),
        (_, None) => !headers.is_empty() || flags.login.client_id.is_some(),
    };
    if is_remote {
        if words.len() > 1 {
            return Err(CommandError::usage(format!("{name} has a URL, which takes no arguments")));
        }
        if !env.is_empty() {
            notes.push("--env has no effect on a server behind a URL".to_owned());
        }
        let login = login(flags.login, notes);
        return Ok(remote(words.pop(), flags.transport, headers, login));
    }
    if !headers.is_empty() {
        notes.push("headers have no effect on a server that is a program".to_owned());
    }
    let missing = words.is_empty().then_some("command");
    let mut words = words.into_iter();
    let command = words.next().unwrap_or_default();
    Ok((Launch::Process { command, args: words.collect(), env, cwd: flags.cwd }, missing))
}

fn remote(
    url: Option<String>,
    transport: Option<Transport>,
    headers: BTreeMap<String, String>,
    login: Map<String, Value>,
) -> (Launch, Option<&'static str>) {
    let kind = match transport {
        Some(Transport::Sse) => RemoteKind::Sse,
        Some(Transport::Http) => RemoteKind::Http,
        _ => RemoteKind::Unsaid,
    };
    let missing = url.is_none().then_some("url");
    (Launch::Remote(Remote { url: url.unwrap_or_default(), kind, headers, login }), missing)
}

/// The member `oauth` of the entry, if an option asks for one.
fn login(flags: LoginFlags, notes: &mut Vec<String>) -> Map<String, Value> {
    let mut secret = flags.oauth_client_secret;
    if flags.client_secret && secret.is_none() {
        notes.push(format!("plugbay reads the client's secret from the variable {CLIENT_SECRET}"));
        secret = Some(format!("${{{CLIENT_SECRET}}}"));
    }
    let members = [
        ("clientId", flags.client_id.map(Value::from)),
        ("clientSecret", secret.map(Value::from)),
        ("callbackPort", flags.callback_port.map(Value::from)),
    ];
    let members = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let oauth: Map<String, Value> = members.collect();
    if oauth.is_empty() { oauth } else { Map::from_iter([("oauth".to_owned(), oauth.into())]) }
}

/// The words of a command line that was given as one word, as in some READMEs. It stays one word if a shell
/// would do more than split it, or if a file has that name.
fn whole_line(words: &[String], folder: &Path) -> Option<Vec<String>> {
    let [line] = words else { return None };
    let is_plain =
        line.contains(' ') && !line.contains(['"', '\'', '\\', '$', '|', '&', ';', '<', '>', '`', '*']);
    let split = || line.split_whitespace().map(str::to_owned).collect();
    (is_plain && !is_url(line) && !folder.join(line).exists())
        .then(split)
        .filter(|words: &Vec<_>| !words.is_empty())
}

/// The first word that names a file relative to this folder.
fn relative_path(words: &[String], folder: &Path) -> Option<String> {
    let is_meant = |word: &&String| {
        word.contains(['/', '.']) && Path::new(word).is_relative() && folder.join(word).exists()
    };
    words.iter().find(is_meant).cloned()
}
