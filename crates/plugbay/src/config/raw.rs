//! What a configuration file may say: every key, with the text that editors show for it.
//!
//! The doc comments here are the descriptions in the JSON Schema, so they speak to users.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use jsonc_parser::{ast::Value, common::Ranged};
use plugbay_core::{exposure::Mode, policy::Patterns, profile::Shows};
use plugbay_upstream::spec::Framing;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{
    glob,
    read::{At, Read, as_object, given_twice, key_range, mismatch, object},
    report::Report,
    units::{Count, Hits, HostLimit, Limit, MessageSize, NameLength, Wait, WaitOrNever},
    word::{Provider, Reach, Word},
};

object! {
    /// The servers behind plugbay and how they are shown. Accepts what MCP hosts write under `mcpServers`.
    #[schemars(title = "plugbay configuration")]
    pub(super) struct ConfigFile {
        /// How tools are shown: `all` shows each as `server__tool`, `search` three tools that find, describe and call the others, `activate` three tools that switch servers on and off, `suite` one tool per server, `auto` what fits the host.
        "mode" => mode: Word<Option<Mode>>,
        /// The servers by name. A name has letters, digits, `-` and single `_`, at most 32.
        "mcpServers" | "servers" | "context_servers" | "mcp_servers" | "mcp" => servers: Servers,
        /// Files to look for that describe servers: one server as Switchboard writes it, or `mcpServers`. Patterns are relative to this file's folder or begin with `~/`; `*` stands for any characters of a name, `**` for any folders, `!` in front excludes. Such a server starts in its file's folder. An entry of `mcpServers` without `command` adds settings to the server of its name that is found.
        "discoverGlobs" => discover: Vec<At<Pathname>>,
        /// What holds for every server whose own `plugbay` object does not say otherwise.
        "defaults" => defaults: Plugbay,
        /// Sizes that are refused or shortened.
        "limits" => limits: Limits,
        /// Search mode also shows `proxy_status` and `proxy_refresh`. They can be called in any case.
        "adminTools" => admin_tools: bool,
        /// `true`: tools that only read are called with `execute_read_tool`, so that a host's permission rules can tell the two apart. Default `false`.
        "splitExecute" => split_execute: bool,
        /// So many of the tools that a project has used most are listed in every mode. Default 0: nothing is remembered of what is used.
        "learn" => learn: Count,
        /// What is known of a host, by the name of its profile: overrides what `plugbay hosts` shows, or adds a host.
        "hosts" => hosts: BTreeMap<String, Host>,
        /// `false`: arguments given to `execute_tool` are checked, but never put right. Default `true`.
        "repair" => repair: bool,
        /// How tools are searched for.
        "search" => search: Search,
        /// Lets a language model call tools for whoever says in words what is wanted, with the tool `natural_language`.
        "naturalLanguage" => natural_language: NaturalLanguage,
        /// A key for Gemini, with `${VAR}` filled in: lets it rank what is searched for. Better: `search.model`, and the key in `GEMINI_API_KEY`.
        "gemini_api_key" => gemini_api_key: At<String>,
        /// How long a first listing of tools may wait for servers never seen before. Default `"5s"`.
        "listWait" => list_wait: Wait,
    }
    ignored: ["$schema", "inputs"]
}

object! {
    /// One server: an entry as MCP hosts write it, with plugbay's own settings under `plugbay`.
    pub(super) struct Server {
        /// The program to start, or a list of the program and its arguments. No shell is involved. `${VAR}` and `${VAR:-default}` are filled from the environment.
        "command" | "cmd" => command: Argv,
        /// The program's arguments, with `${VAR}` filled in.
        "args" => args: Vec<At<String>>,
        /// Environment variables for the program, with `${VAR}` filled in.
        "env" | "environment" | "envs" => env: BTreeMap<String, At<String>>,
        /// The folder to start the program in, relative to this file's.
        "cwd" | "workingDirectory" => cwd: At<String>,
        /// How the server is reached: `stdio` (also called `local`), `http` for Streamable HTTP, `sse` for the older HTTP transport. Found out if absent.
        "type" | "transport" => reach: At<Word<Reach>>,
        /// The address of a server that somebody else runs, with `${VAR}` filled in.
        "url" | "serverUrl" | "uri" | "httpUrl" => url: At<String>,
        /// Headers sent with every request to `url`, with `${VAR}` filled in.
        "headers" | "http_headers" => headers: BTreeMap<String, At<String>>,
        /// A header → the environment variable that holds its value.
        "env_http_headers" => env_headers: BTreeMap<String, At<String>>,
        /// The environment variable that holds a bearer token for `url`.
        "bearer_token_env_var" => bearer_token: At<String>,
        /// Leaves the server out.
        "disabled" => disabled: bool,
        /// `false` leaves the server out.
        "enabled" => enabled: bool,
        /// Silence allowed to a call, in milliseconds; below 1000 in seconds. Better: `plugbay.timeout`.
        "timeout" => timeout: HostLimit,
        /// Time for the server to start, in seconds. Better: `plugbay.start`.
        "startup_timeout_sec" => startup_timeout: Limit,
        /// Silence allowed to a call, in seconds. Better: `plugbay.timeout`.
        "tool_timeout_sec" => tool_timeout: Limit,
        /// Only these tools, or patterns such as `get_*`. Better: `plugbay.allow`.
        "includeTools" | "enabled_tools" => include: Filter,
        /// Not these tools. Better: `plugbay.deny`.
        "excludeTools" | "disabled_tools" => exclude: Filter,
        /// Only these tools; `*` means all. Better: `plugbay.allow`.
        "tools" => tools: Filter,
        /// plugbay's own settings for this server.
        "plugbay" => plugbay: Plugbay,
    }
    ignored: [
        "name", "description", "displayName", "icon", "source", "settings", "trust", "alwaysAllow",
        "autoApprove", "alwaysLoad", "deferTools", "oauth", "auth", "authProviderType", "scopes", "gallery", "version", "bundled",
    ]
    inner: "plugbay", Plugbay
}

object! {
    /// plugbay's own settings for a server.
    pub(super) struct Plugbay {
        /// How this server's tools are shown, whatever the host.
        "mode" => mode: Word<Option<Mode>>,
        /// Tools that match one of these patterns are listed in every mode; `*` means the whole server.
        "pin" => pin: Filter,
        /// Only tools that match one of these patterns (`get_*`) are shown and may be called.
        "allow" => allow: Filter,
        /// Tools that match one of these patterns are neither shown nor callable. Wins over `allow`.
        "deny" => deny: Filter,
        /// `false` shows tools under their own names, without `server__` in front, unless two servers want the same one. Default `true`.
        "prefix" => prefix: bool,
        /// A tool's own name → the name it is shown under, behind `server__` if there is a prefix.
        "rename" => rename: Renames,
        /// How the server is shown as one tool, in mode `suite`.
        "suite" => suite: Suite,
        /// What a language model is told that uses this server's tools for a sentence.
        "instructions" => instructions: String,
        /// A tool's own name → the description it is shown with.
        "describe" => describe: BTreeMap<String, String>,
        /// Silence allowed to a call; progress starts it anew. Default `"120s"`.
        "timeout" => timeout: Limit,
        /// The most a call may take, progress or not; never less than `timeout`. Default `"1h"`.
        "maxTime" => max_time: Limit,
        /// Time for the server to start and list its tools. Default `"30s"`.
        "start" => start: Limit,
        /// How long the server is kept running unused, or `"never"` to stop it. Default `"5m"`.
        "idle" => idle: WaitOrNever,
        /// How long the server may take to end when asked, before it is asked more firmly. Default `"2s"`.
        "shutdown" => shutdown: Wait,
        /// How messages to the server are delimited. Default `auto`.
        "framing" => framing: Word<Framing>,
        /// Certificates to trust besides the system's, for `url`: a file in PEM, relative to this file's folder.
        "caFile" => ca_file: At<String>,
    }
    ignored: []
}

object! {
    /// A server as one tool.
    pub(super) struct Suite {
        /// The tool's name. Default `{server}_suite`.
        "name" | "suiteName" => name: String,
        /// What the tool is for, instead of what the server says of itself.
        "description" => description: String,
        /// The longest summary of one of the server's tools, in characters. Default 160.
        "summaryMaxChars" => summary: Count,
        /// Show whole schemas without being asked. Default `false`.
        "full" => full: bool,
    }
    ignored: []
}

object! {
    /// What a host does with what it is told.
    pub(super) struct Host {
        /// How the host calls itself in `clientInfo.name`; a `*` at the end stands for anything.
        "clients" => clients: Vec<String>,
        /// It lists again when it is told that a list has changed.
        "listsAgain" => lists_again: bool,
        /// How long the result of an activation waits for it to do so at most.
        "pause" => pause: Wait,
        /// And how long it then needs until its model has what was listed.
        "settle" => settle: Wait,
        /// With more tools than this it does not work, or not well.
        "mostTools" => most_tools: Count,
        /// It hides tools behind a search of its own, from this many on.
        "defersFrom" => defers_from: Count,
        /// The longest name of a tool, without what the host puts in front of it.
        "nameLimit" => name_limit: NameLength,
        /// How many characters of `instructions` its model sees.
        "instructionsLimit" => instructions_limit: Count,
        /// A result of more bytes is cut or put into a file. For your information: results pass as they are.
        "resultLimit" => result_limit: Count,
        /// What its model sees of a result that has both text and structured content. For your information as well.
        "shows" => shows: Word<Shows>,
    }
    ignored: []
}

object! {
    /// Sizes that are refused or shortened.
    pub(super) struct Limits {
        /// The longest message accepted, such as `"16MiB"` (the default) or a number of bytes.
        "message" => message: MessageSize,
        /// The longest tool name shown to a host; longer ones are shortened. Default 64.
        "nameLength" => name_length: NameLength,
    }
    ignored: []
}

object! {
    /// How tools are searched for.
    pub(super) struct Search {
        /// A language model that ranks what is found; without one the local ranking stands. Gets the query and the signatures of tools, and nothing else. A name alone is a Gemini model.
        "model" => model: At<ModelChoice>,
        /// How many tools a search shows, from 1 to 50. Default 5.
        "limit" | "default_limit" => limit: Hits,
    }
    ignored: []
}

object! {
    /// How a language model calls tools for a sentence. It is told the sentence, the definitions of tools and what they return.
    pub(super) struct NaturalLanguage {
        /// The language model; without one there is no such tool.
        "model" => model: At<ModelChoice>,
        /// How many calls it may make for one sentence. Default 8.
        "calls" => calls: Count,
        /// How often it is asked for one sentence. Default 12.
        "turns" => turns: Count,
        /// How many tokens one sentence may cost, read and written. Default 100000.
        "tokens" => tokens: Count,
        /// How long one sentence may take, not counting the time in which the user is asked. Default `"120s"`.
        "time" => time: Limit,
        /// `true`: tools that add something are called without asking the user. Default `false`.
        "allowWrites" => allow_writes: bool,
        /// `true`: tools that may change or delete something are called without asking the user, and those that add something too. Default `false`.
        "allowDestructive" => allow_destructive: bool,
        /// What the model is told besides.
        "instructions" => instructions: String,
    }
    ignored: []
}

object! {
    /// A language model.
    pub(super) struct LanguageModel {
        /// Who is asked: `anthropic`, `gemini`, `openai` or whoever speaks like it at `baseUrl`, or the host's own model with `host`, by sampling and without a key.
        "provider" => provider: Word<Provider>,
        /// The model's name, as its provider writes it.
        "model" => model: String,
        /// Instead of the provider's own address, with `${VAR}` filled in: `http://localhost:11434/v1` for Ollama.
        "baseUrl" | "base_url" => base_url: At<String>,
        /// The environment variable that holds the key. Default: `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, and `GEMINI_API_KEY` or `GOOGLE_API_KEY`.
        "apiKeyEnv" | "api_key_env" => api_key_env: At<String>,
        /// The name under which the key is in the system's keychain: asked for with `security find-generic-password -w -s NAME` on macOS, with `secret-tool lookup service NAME` elsewhere, when the model is first asked.
        "keychain" => keychain: At<String>,
        /// A program that prints the key, and its arguments, with `${VAR}` filled in: `["op", "read", "op://vault/item/key"]`. No shell is involved; it is run when the model is first asked.
        "apiKeyCommand" | "api_key_command" => api_key_command: At<Vec<At<String>>>,
        /// How long its answer is waited for. For a search, until the local ranking stands: default `"5s"`, and `"30s"` for `host`, where a person may be asked first. Elsewhere as long as everything together may take.
        "timeout" => timeout: Limit,
    }
    ignored: []
}

/// A model, or the name of one of Gemini's. A broken one is kept as such: with half of what it says
/// somebody else might be asked.
#[derive(Debug, Clone)]
pub(super) struct ModelChoice(pub(super) Option<LanguageModel>);

impl Read for ModelChoice {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        if let Value::StringLit(_) = value {
            let provider = Some(Word(Provider::Remote(plugbay_model::Provider::Gemini)));
            let model =
                LanguageModel { provider, model: String::read(value, report), ..LanguageModel::default() };
            return Some(Self(Some(model)));
        }
        let (model, problem) = report.watch(|report| LanguageModel::read(value, report));
        Some(Self(model.filter(|_| problem.is_none())))
    }
}

/// Server entries in the order of the file. Each stands alone: a broken one does not harm the rest.
#[derive(Debug, Clone)]
pub(super) struct Servers(pub(super) Vec<Entry>);

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: At<String>,
    pub(super) server: Server,
    /// The first thing that is wrong with it, in one line.
    pub(super) problem: Option<String>,
}

impl Entry {
    /// It says how a server is treated, and not what that server is.
    pub(super) fn only_tunes(&self) -> bool {
        let Server { command, url, reach, .. } = &self.server;
        command.is_none() && url.is_none() && reach.is_none()
    }
}

impl Read for Servers {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut entries: BTreeMap<&str, Entry> = BTreeMap::new();
        let properties = &as_object(value, report)?.properties;
        for property in properties {
            let name = property.name.as_str();
            let read = |report: &mut Report<'_>| Server::read(&property.value, report);
            let (server, problem) = report.watch(|report| report.under(name, read));
            let key = At { value: name.to_owned(), at: key_range(property) };
            let entry = Entry { key, server: server.unwrap_or_default(), problem };
            if entries.insert(name, entry).is_some() {
                given_twice(property, report);
            }
        }
        let mut entries: Vec<Entry> = entries.into_values().collect();
        entries.sort_by_key(|entry| entry.key.at.start);
        Some(Self(entries))
    }
}

/// A program and its arguments.
#[derive(Debug, Clone)]
pub(super) struct Argv(pub(super) Vec<At<String>>);

impl Read for Argv {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let argv = match value {
            Value::StringLit(_) => vec![At::read(value, report)?],
            Value::Array(_) => Vec::read(value, report)?,
            _ => {
                mismatch(value, "a string", report);
                return None;
            }
        };
        if argv.first().is_none_or(|program: &At<String>| program.value.trim().is_empty()) {
            report.invalid(value.range(), "names no program", "write the program to start, such as \"npx\"");
            return None;
        }
        Some(Self(argv))
    }
}

/// Patterns over tool names that compile, or the first problem in them. A broken one is kept as such:
/// were it dropped like other broken values, tools meant to be hidden would appear.
#[derive(Debug, Clone)]
pub(super) struct Filter(pub(super) Result<Vec<String>, String>);

impl Read for Filter {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let (patterns, problem) = report.watch(|report| Vec::<Pattern>::read(value, report));
        let patterns = patterns.into_iter().flatten().map(|pattern| pattern.0);
        Some(Self(problem.map_or_else(|| Ok(patterns.collect()), Err)))
    }
}

struct Pattern(String);

impl Read for Pattern {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let pattern = String::read(value, report)?;
        match Patterns::compile([&pattern]) {
            Ok(_) => Some(Self(pattern)),
            Err(error) => {
                let help = "write tool names, with `*` for any characters: \"get_*\"";
                report.invalid(value.range(), &format!("not a valid pattern: {}", error.reason), help);
                None
            }
        }
    }
}

/// Files by a pattern.
#[derive(Debug, Clone)]
pub(super) struct Pathname(pub(super) glob::Pattern);

impl Read for Pathname {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        match glob::Pattern::parse(&String::read(value, report)?) {
            Ok(pattern) => Some(Self(pattern)),
            Err(reason) => {
                let help = "write a path with `*` for any characters: \"mcps/*/.mcp.json\"";
                report.invalid(value.range(), &format!("not a valid pattern: {reason}"), help);
                None
            }
        }
    }
}

/// New names for tools, no two the same.
#[derive(Debug, Clone)]
pub(super) struct Renames(pub(super) BTreeMap<String, String>);

impl Read for Renames {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut renames = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for (tool, new) in BTreeMap::<String, At<String>>::read(value, report)? {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if new.value.is_empty() || !new.value.chars().all(is_plain) {
                report.invalid(
                    new.at,
                    "not a name that hosts accept",
                    "use letters, digits, `_`, `-` and `.`",
                );
            } else if !taken.insert(new.value.clone()) {
                report.invalid(new.at, "two tools get this name", "give each a name of its own");
            } else {
                renames.insert(tool, new.value);
            }
        }
        Some(Self(renames))
    }
}

macro_rules! schema_like {
    ($($name:ident: $like:ty;)*) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$like>::json_schema(generator)
            }
        }
    )*};
}

/// A string or a list of strings, for the schema only.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The two forms of a model, for the schema only.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum NameOrModel {
    Name(String),
    Model(LanguageModel),
}

schema_like! {
    ModelChoice: NameOrModel;
    Servers: BTreeMap<String, Server>;
    Argv: OneOrMany;
    Filter: Vec<String>;
    Pathname: String;
    Renames: BTreeMap<String, String>;
}
