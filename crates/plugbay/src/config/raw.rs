//! The keys of a configuration file. The doc comments are the descriptions in the JSON Schema: users read them in editors.

use std::{borrow::Cow, collections::BTreeMap};

use jsonc_parser::{ast::Value, common::Ranged};
use plugbay_core::{era::Era, exposure::Mode, policy::Patterns, profile::Shows, scope::Scope, start::Warm};
use plugbay_upstream::spec::Framing;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{
    authorization::Guard,
    code::CodeChoice,
    glob::Pathname,
    oauth::{CommandLine, Logins, OAuthChoice, Scopes},
    pass_env::PassEnv,
    read::{At, Read, as_object, given_twice, key_range, mismatch, object},
    remote::Remotes,
    renames::Renames,
    report::Report,
    units::{CallRate, Count, Hits, HostLimit, Limit, MessageSize, NameLength, Processes, Wait, WaitOrNever},
    word::{Provider, Reach, Word},
};

object! {
    /// The servers of plugbay and how hosts see them. Accepts the `mcpServers` of MCP hosts.
    #[schemars(title = "plugbay configuration")]
    pub(super) struct ConfigFile {
        /// How hosts see tools: `all` lists each as `server__tool`, `search` lists three tools that find, describe and call the others, `activate` three tools that switch servers on and off, `suite` one tool per server, `code` a tool that runs scripts and one that finds tools for them. `auto` chooses for each host.
        "mode" => mode: Word<Option<Mode>>,
        /// The servers by name. A name has letters, digits, `-` and single `_`, at most 32.
        "mcpServers" | "servers" | "context_servers" | "mcp_servers" | "mcp" => servers: Servers,
        /// The local servers of a client-side proxy, as its `servers-config.json` has them: their tools have no prefix, and they start in the project's folder.
        "localServers" => local_servers: Servers,
        /// Remote gateways by name: their tools stand beside those of local servers, under the names that the remote gives them.
        "remotes" => remotes: Remotes,
        /// Only these tools of remotes, by the names that the remote shows or by their own names behind `server__`; `*` matches any characters. A remote's own `tools` replace it. Default: all.
        "remoteTools" => remote_tools: At<Filter>,
        /// Patterns of files that describe servers, with `mcpServers` or with one server as Switchboard writes it. Patterns are relative to this file's folder or begin with `~/`; `*` matches any characters of a name, `**` any folders, a leading `!` excludes. Such a server starts in its file's folder. An entry of `mcpServers` without `command` adds settings to a found server of that name.
        "discoverGlobs" => discover: Vec<At<Pathname>>,
        /// Defaults for the `plugbay` object of every server.
        "defaults" => defaults: Plugbay,
        /// Limits of sizes.
        "limits" => limits: Limits,
        /// The audit log. A project's file cannot set it.
        "audit" => audit: Audit,
        /// What holds for the logins at all servers. A project's file cannot set it.
        "oauth" => oauth: Logins,
        /// The authorization server whose access tokens `plugbay serve --http` takes. A project's file cannot set it.
        "authorization" => authorization: At<Guard>,
        /// `true`: search mode also lists `proxy_status` and `proxy_refresh`. Both can be called in any mode.
        "adminTools" => admin_tools: bool,
        /// `true`: tools that only read are called with `execute_read_tool`, so that a host's permission rules can tell the two apart. Default `false`.
        "splitExecute" => split_execute: bool,
        /// How many of the tools that a project has used most every mode lists. Default 0: plugbay counts no uses.
        "learn" => learn: Count,
        /// Profiles of hosts by name: each changes a profile that `plugbay hosts` shows, or adds one.
        "hosts" => hosts: BTreeMap<String, Host>,
        /// `false`: plugbay checks the arguments of `execute_tool`, but never repairs them. Default `true`.
        "repair" => repair: bool,
        /// The search for tools.
        "search" => search: Search,
        /// The tool `natural_language`, with which a language model calls the tools that a sentence needs.
        "naturalLanguage" => natural_language: NaturalLanguage,
        /// The tool `run_code`, with which a model makes many calls in one script: `true`, or an object. Every mode offers it then, but not to hosts that run code themselves. Default `false`.
        "code" => code: CodeChoice,
        /// A key for Gemini, with `${VAR}` expanded: lets Gemini rank the tools that a search finds. Better: `search.model`, and the key in `GEMINI_API_KEY`.
        "gemini_api_key" => gemini_api_key: At<String>,
        /// How long the first list of tools may wait for servers that have never connected. Default `"5s"`.
        "listWait" => list_wait: Wait,
        /// How long calls in flight may go on when plugbay is told to end, or its host has closed its end. Default `"2s"` on stdio, `"30s"` over HTTP.
        "drain" => drain: Wait,
        /// How many servers start at a time. Those that a host waits for come first. Default: four for each processor.
        "starts" => starts: Processes,
    }
    ignored: ["$schema", "inputs"]
    elsewhere: Plugbay, "into `defaults`, or into the `plugbay` object of a server"
}

object! {
    /// One server: an entry as MCP hosts write it, with plugbay's own settings under `plugbay`.
    pub(super) struct Server {
        /// The program to start, or a list of the program and its arguments. plugbay uses no shell. `${VAR}` and `${VAR:-default}` are expanded from the environment.
        "command" | "cmd" => command: Argv,
        /// The program's arguments, with `${VAR}` expanded.
        "args" => args: Vec<At<String>>,
        /// Environment variables for the program, with `${VAR}` expanded.
        "env" | "environment" | "envs" => env: BTreeMap<String, At<String>>,
        /// Variables of plugbay's own environment for the program, by name or by a pattern such as `AWS_*`.
        "passEnv" | "env_vars" => pass_env: PassEnv,
        /// The folder to start the program in, relative to this file's; `project_root` is the project's folder.
        "cwd" | "workingDirectory" => cwd: At<String>,
        /// How the server is reached: `stdio` (also called `local`), `http` for Streamable HTTP, `sse` for the older HTTP transport. plugbay finds out if it is absent.
        "type" | "transport" => reach: At<Word<Reach>>,
        /// The address of a remote server, with `${VAR}` expanded.
        "url" | "serverUrl" | "uri" | "httpUrl" => url: At<String>,
        /// Headers sent with every request to `url`, with `${VAR}` expanded.
        "headers" | "http_headers" => headers: BTreeMap<String, At<String>>,
        /// Headers sent with every request to `url`: name → environment variable with the value.
        "env_http_headers" => env_headers: BTreeMap<String, At<String>>,
        /// The environment variable with a bearer token for `url`.
        "bearer_token_env_var" => bearer_token: At<String>,
        /// The login at `url`, by OAuth; `false` for none. Default: plugbay logs in if the server asks for it, unless the entry has an `Authorization` header.
        "oauth" | "auth" => oauth: At<OAuthChoice>,
        /// The scopes to ask for at a login. Better: `oauth.scopes`.
        "scopes" | "oauthScopes" => scopes: Scopes,
        /// A program that prints headers for `url` as a JSON object, and its arguments, with `${VAR}` expanded. plugbay uses no shell, and runs it again when the server rejects them. It starts in this file's folder, or in `cwd`.
        "headersCommand" | "headersHelper" => headers_command: At<CommandLine>,
        /// A file with headers for `url`, as a JSON object or as lines `Name: value`, relative to this file's folder or with `~/`. plugbay reads it again when it changes.
        "headersFile" => headers_file: At<String>,
        /// `true`: plugbay ignores the server.
        "disabled" => disabled: bool,
        /// `false`: plugbay ignores the server.
        "enabled" => enabled: bool,
        /// How long a call may be silent, in milliseconds; below 1000 in seconds. Better: `plugbay.timeout`.
        "timeout" => timeout: HostLimit,
        /// Time for the server to start, in seconds. Better: `plugbay.start`.
        "startup_timeout_sec" => startup_timeout: Limit,
        /// How long a call may be silent, in seconds. Better: `plugbay.timeout`.
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
        "autoApprove", "alwaysLoad", "deferTools", "oauth_resource", "authProviderType", "gallery", "version", "bundled",
    ]
    inner: "plugbay", Plugbay
}

object! {
    /// plugbay's own settings for a server.
    pub(super) struct Plugbay {
        /// How hosts see this server's tools; overrides the general `mode`.
        "mode" => mode: Word<Option<Mode>>,
        /// Every mode lists the tools that match one of these patterns; `*` matches all.
        "pin" => pin: Filter,
        /// Hosts see and may call only tools that match one of these patterns, such as `get_*`.
        "allow" => allow: Filter,
        /// Hosts neither see nor may call tools that match one of these patterns. Wins over `allow`.
        "deny" => deny: Filter,
        /// `false`: hosts see tools without `server__` in front, unless two servers have the same name. Default `true`.
        "prefix" => prefix: bool,
        /// A tool's own name → the name that hosts see, after `server__` if there is a prefix.
        "rename" => rename: Renames,
        /// The server as one tool, in mode `suite`.
        "suite" => suite: Suite,
        /// Instructions for the language model of `natural_language` about this server's tools.
        "instructions" => instructions: String,
        /// A tool's own name → the description that hosts see.
        "describe" => describe: BTreeMap<String, String>,
        /// `false`: definitions keep characters that nobody sees, such as ANSI escapes, bidi controls and tags. Default `true`.
        "sanitize" => sanitize: bool,
        /// Large results of this server's tools.
        "results" => results: super::results::Results,
        /// How long a call may be silent; progress restarts the time. Default `"120s"`.
        "timeout" => timeout: Limit,
        /// The longest time of a call, with or without progress; never less than `timeout`. Default `"1h"`.
        "maxTime" => max_time: Limit,
        /// Time for the server to start and list its tools, after which lists do not wait for it. A server that is still working goes on. Default `"30s"`.
        "start" => start: Limit,
        /// After how much time without use the server stops; `"never"` keeps it running. Default `"5m"`.
        "idle" => idle: WaitOrNever,
        /// When the server starts: `always` with plugbay, `fresh` with plugbay unless its list was confirmed within the last day, `never` only at its first use. A server that has never listed starts in any case. Default `fresh`.
        "warm" => warm: Word<Warm>,
        /// How long the server may take to exit after its stdin closes, and again after SIGTERM. Default `"2s"`.
        "shutdown" => shutdown: Wait,
        /// The framing of messages to the server. Default `auto`.
        "framing" => framing: Word<Framing>,
        /// Who shares one process of the server: `shared` everybody, `project` all hosts in one folder, `session` nobody: each host session has its own. Default `auto`: plugbay knows many servers, and gives each session its own of all others.
        "scope" => scope: Word<Option<Scope>>,
        /// With scope `session`: how many instances of the server may run at a time. Default 8.
        "instances" => instances: Processes,
        /// Variables of plugbay's own environment that the server gets besides the usual ones, by name or by a pattern such as `AWS_*`.
        "passEnv" => pass_env: PassEnv,
        /// Certificates to trust besides the system's, for `url`: a file in PEM, relative to this file's folder.
        "caFile" => ca_file: At<String>,
    }
    ignored: []
    elsewhere: ConfigFile, "to the top level of the file"
}

object! {
    /// A server as one tool.
    pub(super) struct Suite {
        /// The tool's name. Default `{server}_suite`.
        "name" | "suiteName" => name: String,
        /// The description of the tool, instead of the server's own.
        "description" => description: String,
        /// The longest summary of each tool, in characters. Default 160.
        "summaryMaxChars" => summary: Count,
        /// `true`: `introspect` shows whole schemas by default. Default `false`.
        "full" => full: bool,
    }
    ignored: []
}

object! {
    /// The profile of a host.
    pub(super) struct Host {
        /// The names that the host sends in `clientInfo.name`; a `*` at the end matches anything.
        "clients" => clients: Vec<String>,
        /// `true`: the host lists tools again after `list_changed`.
        "listsAgain" => lists_again: bool,
        /// How long the result of an activation waits for the host to list again.
        "pause" => pause: Wait,
        /// How long the result then waits until the host's model has the new tools.
        "settle" => settle: Wait,
        /// The most tools with which the host works well.
        "mostTools" => most_tools: Count,
        /// From this many tools on, the host hides tools behind its own search.
        "defersFrom" => defers_from: Count,
        /// `true`: the host runs code that calls tools. Names are identifiers, `auto` gives it `all`, and with every tool listed there are no instructions.
        "codeMode" => code_mode: bool,
        /// `true`: the host's own search reads titles. The title of a tool then names its server and the tool.
        "findsByTitle" => finds_by_title: bool,
        /// `"legacy"`: the host offers both eras of the protocol, and the legacy one is opened.
        "era" => era: Word<Era>,
        /// The host's first request to its model without any server, in tokens: `auto` estimates with it.
        "requestTokens" => request_tokens: Count,
        /// The longest name of a tool, without the host's own prefix.
        "nameLimit" => name_limit: NameLength,
        /// How many characters of `instructions` the host's model sees.
        "instructionsLimit" => instructions_limit: Count,
        /// The host cuts a longer result, in bytes, or puts it into a file. Results of calls through `execute_tool` and suites that are longer have an outline.
        "resultLimit" => result_limit: Count,
        /// Which part of a result the host's model sees, if there are text and structured content. For information.
        "shows" => shows: Word<Shows>,
    }
    ignored: []
}

object! {
    /// Limits of sizes.
    pub(super) struct Limits {
        /// The longest message that plugbay accepts from hosts and servers, such as `"16MiB"` (the default) or a number of bytes.
        "message" => message: MessageSize,
        /// The longest tool name that hosts see; plugbay shortens longer ones. Default 64.
        "nameLength" => name_length: NameLength,
        /// How many calls each caller may make, such as `"60/min"`: that many at once, replenished evenly. Periods are `s`, `min`, `hour` and `day`. Default: no limit.
        "rate" => rate: CallRate,
        /// The same for each session of a caller.
        "sessionRate" => session_rate: CallRate,
        /// How many calls each caller may make in a stretch of time that begins with its first call, such as `"10000/day"`. Default: no limit.
        "quota" => quota: CallRate,
    }
    ignored: []
}

object! {
    /// The audit log: one line of JSON for each call to a server, without any value of its arguments.
    pub(super) struct Audit {
        /// The file, relative to this file's folder or with `~/`. Without it there is no audit log.
        "file" => file: At<String>,
        /// plugbay puts a file of this size aside, such as `"10MiB"` (the default).
        "rotate" => rotate: MessageSize,
        /// How many files plugbay keeps that it put aside. Default 5.
        "keep" => keep: Count,
    }
    ignored: []
}

object! {
    /// The search for tools.
    pub(super) struct Search {
        /// A language model that ranks the tools that were found. It gets the query and the signatures of tools, and nothing else. Without it plugbay ranks locally. A name alone means a Gemini model.
        "model" => model: At<ModelChoice>,
        /// How many tools a search shows, from 1 to 50. Default 5.
        "limit" | "default_limit" => limit: Hits,
        /// `false`: plugbay does not remember which tools were called after which searches. Default `true`. What it remembers stays on this machine, for each project apart.
        "remember" => remember: bool,
    }
    ignored: []
}

object! {
    /// A language model that calls tools for a sentence. It gets the sentence, the definitions of tools and their results.
    pub(super) struct NaturalLanguage {
        /// The language model; without it there is no tool `natural_language`.
        "model" => model: At<ModelChoice>,
        /// How many calls the model may make for one sentence. Default 8.
        "calls" => calls: Count,
        /// How many turns the model gets for one sentence. Default 12.
        "turns" => turns: Count,
        /// How many tokens, input and output, one sentence may cost. Default 100000.
        "tokens" => tokens: Count,
        /// How long one sentence may take, without the time in which the user is asked. Default `"120s"`.
        "time" => time: Limit,
        /// `true`: the model calls tools that add something without asking the user. Default `false`.
        "allowWrites" => allow_writes: bool,
        /// `true`: the model calls tools that change, delete or add something without asking the user. Default `false`.
        "allowDestructive" => allow_destructive: bool,
        /// Further instructions for the model.
        "instructions" => instructions: String,
    }
    ignored: []
}

object! {
    /// A language model.
    pub(super) struct LanguageModel {
        /// The provider: `anthropic`, `gemini`, `openai` (also any compatible API at `baseUrl`), or `host` for the host's own model, by sampling and without a key.
        "provider" => provider: Word<Provider>,
        /// The name of the model, as its provider writes it.
        "model" => model: String,
        /// The address of the API, if it is not the provider's own, with `${VAR}` expanded: `http://localhost:11434/v1` for Ollama.
        "baseUrl" | "base_url" => base_url: At<String>,
        /// The environment variable with the key. Default: `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, and `GEMINI_API_KEY` or `GOOGLE_API_KEY`.
        "apiKeyEnv" | "api_key_env" => api_key_env: At<String>,
        /// The name of the key in the system's keychain. plugbay reads it with `security find-generic-password -w -s NAME` on macOS, with `secret-tool lookup service NAME` elsewhere, when it first needs the model.
        "keychain" => keychain: At<String>,
        /// A program that prints the key, and its arguments, with `${VAR}` expanded: `["op", "read", "op://vault/item/key"]`. plugbay uses no shell, and runs it when it first needs the model.
        "apiKeyCommand" | "api_key_command" => api_key_command: At<Vec<At<String>>>,
        /// How long plugbay waits for an answer. For a search, after which it ranks locally: default `"5s"`, and `"30s"` for `host`, where a person may be asked first. For `natural_language`: as long as one sentence may take.
        "timeout" => timeout: Limit,
    }
    ignored: []
}

/// A model, or the name of a Gemini model. A broken one is kept as broken: half of its settings could lead to
/// another model being asked.
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

/// Server entries in the order of the file. Each stands alone: a broken one does not affect the others.
#[derive(Debug, Clone)]
pub(super) struct Servers(pub(super) Vec<Entry>);

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: At<String>,
    pub(super) server: Server,
    /// The first problem in the entry, on one line.
    pub(super) problem: Option<String>,
    pub(super) kind: EntryKind,
}

/// The place of an entry in its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum EntryKind {
    #[default]
    Server,
    /// In `localServers`.
    Local,
    /// In `remotes`, or on the command line.
    Remote,
}

impl Entry {
    /// Whether the entry only has settings for a server, without describing the server itself.
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
            let kind = EntryKind::Server;
            let entry = Entry { key, server: server.unwrap_or_default(), problem, kind };
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

/// Patterns over tool names, compiled, or the first problem in them. A broken one is kept as broken: if it
/// were dropped like other broken values, tools that should be hidden would appear.
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
}
