//! Turns a server's entry into its settings.

use std::{cell::RefCell, collections::BTreeMap, path::Path};

use jsonc_parser::common::Range;
use plugbay_core::{
    exposure::{Exposure, Suite},
    name::ServerName,
    policy::{Patterns, Policy},
    secret::KnownSecrets,
    start::Warm,
};
use plugbay_upstream::spec::{HttpFlavour, HttpSpec, ServerSpec, StdioSpec, Timeouts, Transport};

use super::{
    Env, LoginSettings, ServerSettings, SharingSettings, credentials,
    diagnostic::{Kind, quote},
    expand::{ExpandError, FOLDERS, expand},
    masked::secret_words,
    pass_env::PassEnv,
    raw::{self, Entry, EntryKind, Filter, Plugbay, Server},
    read::{At, Overlay, nearest},
    remote,
    report::Report,
    results::Results,
    units::{Limit, WaitOrNever},
    word::{Reach, Word},
};

/// The context of an entry.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) defaults: &'a Plugbay,
    pub(super) message_limit: usize,
    /// The folder of the entry's file; relative folders are relative to it.
    pub(super) folder: &'a Path,
    /// Whether a server without `cwd` starts in `folder` instead of plugbay's working directory.
    pub(super) starts_in_folder: bool,
    /// The tools denied by entries that this one replaces: it may deny more, never less.
    pub(super) denied: Option<&'a Filter>,
    /// The filter for tools of remotes that have no filter of their own.
    pub(super) remote_tools: Option<&'a Filter>,
    /// plugbay's client id metadata document, for servers without one of their own.
    pub(super) logins: &'a LoginSettings,
    pub(super) env: Env<'a>,
}

/// Whether this server is disabled by its own entry.
pub(super) fn is_disabled(server: &Server) -> bool {
    server.disabled == Some(true) || server.enabled == Some(false)
}

pub(super) fn build(
    entry: &Entry,
    name: ServerName,
    around: Surroundings<'_>,
    report: &mut Report<'_>,
) -> ServerSettings {
    let own = laid_over(tuning(&entry.server), around.defaults.clone());
    let own = Plugbay { deny: denied_by_both(own.deny.clone(), around.denied.cloned()), ..own };
    let remote = entry.kind == EntryKind::Remote;
    let own = if remote { of_remote(own, around.remote_tools) } else { own };
    match launch(entry, &own, around, report) {
        Err(reason) => {
            let exposure = Exposure { remote, ..Exposure::default() };
            let (sharing, warm) = (SharingSettings::default(), Warm::default());
            ServerSettings { name, spec: Err(reason), exposure, sharing, warm }
        }
        Ok((transport, policy, pin)) => {
            let (timeouts, sharing) = (timeouts(&own), sharing(&own));
            let message_limit = around.message_limit;
            let sanitize = own.sanitize != Some(false);
            let spec = Ok(ServerSpec { name: name.clone(), transport, timeouts, message_limit, sanitize });
            let rename = own.rename.map(|renames| renames.0).unwrap_or_default();
            let bare = own.prefix == Some(false);
            let describe = own.describe.unwrap_or_default();
            let mode = own.mode.and_then(|mode| mode.0);
            let suite = own.suite.map(suite).unwrap_or_default();
            let instructions = own.instructions;
            let results = own.results.map(Results::rules).unwrap_or_default();
            let warm = own.warm.map(|warm| warm.0).unwrap_or_default();
            let policy = Policy { own_names: remote, ..policy };
            // With `"prefix": true` the user wants the remote's name as a prefix.
            let remote = remote && own.prefix != Some(true);
            let exposure =
                Exposure { mode, pin, policy, bare, remote, rename, describe, suite, instructions, results };
            ServerSettings { name, spec, exposure, sharing, warm }
        }
    }
}

fn sharing(own: &Plugbay) -> SharingSettings {
    let standard = SharingSettings::default();
    SharingSettings {
        scope: own.scope.and_then(|scope| scope.0),
        instances: own.instances.map_or(standard.instances, |count| count.0),
    }
}

/// Defaults for a remote: it costs little while it is unused, and plugbay notices its changes only while it
/// is connected.
fn of_remote(own: Plugbay, tools: Option<&Filter>) -> Plugbay {
    let idle = own.idle.or(Some(WaitOrNever(None)));
    Plugbay { allow: own.allow.or_else(|| tools.filter(|tools| !is_everything(tools)).cloned()), idle, ..own }
}

fn is_everything(filter: &Filter) -> bool {
    matches!(&filter.0, Ok(patterns) if patterns.iter().any(|pattern| pattern == "*"))
}

fn suite(said: raw::Suite) -> Suite {
    Suite {
        name: said.name,
        description: said.description,
        summary: said.summary.map(|count| count.0),
        full: said.full.unwrap_or_default(),
    }
}

/// The parts of the entry that can be wrong. `Err` is the first problem.
fn launch(
    entry: &Entry,
    own: &Plugbay,
    around: Surroundings<'_>,
    report: &mut Report<'_>,
) -> Result<(Transport, Policy, Patterns), String> {
    if let Some(problem) = &entry.problem {
        // Half an entry would only cause further errors.
        return Err(problem.clone());
    }
    let (transport, problem) = report.watch(|report| transport(entry, own, around, report));
    let transport = transport.ok_or_else(|| problem.unwrap_or_default())?;
    let pin = own.pin.as_ref().map(compile).transpose()?.unwrap_or_default();
    Ok((transport, policy(own)?, pin))
}

/// `own`, with `base` for everything that it leaves open, including the suite and results.
pub(super) fn laid_over(own: Plugbay, base: Plugbay) -> Plugbay {
    fn both<T: Overlay>(own: Option<T>, base: Option<T>) -> Option<T> {
        match (own, base) {
            (Some(own), Some(base)) => Some(own.over(base)),
            (own, base) => own.or(base),
        }
    }
    let suite = both(own.suite.clone(), base.suite.clone());
    let results = both(own.results.clone(), base.results.clone());
    Plugbay { suite, results, ..own.over(base) }
}

/// Tools that either filter denies: neither was written in order to allow something.
pub(super) fn denied_by_both(one: Option<Filter>, other: Option<Filter>) -> Option<Filter> {
    match (one, other) {
        (Some(Filter(Ok(one))), Some(Filter(Ok(other)))) => Some(Filter(Ok([one, other].concat()))),
        (Some(Filter(Ok(_))), Some(broken)) => Some(broken),
        (one, other) => one.or(other),
    }
}

/// plugbay's own keys of the entry, laid over the keys that hosts use.
pub(super) fn tuning(server: &Server) -> Plugbay {
    let own = server.plugbay.clone().unwrap_or_default();
    let host = Plugbay {
        allow: server.include.clone().or(server.tools.clone()).filter(|filter| !is_everything(filter)),
        timeout: server.tool_timeout.or(server.timeout.map(|limit| Limit(limit.0))),
        start: server.startup_timeout,
        ..Plugbay::default()
    };
    let deny = denied_by_both(own.deny.clone(), server.exclude.clone());
    let pass_env = PassEnv::and(own.pass_env.clone(), server.pass_env.clone());
    Plugbay { deny, pass_env, ..own.over(host) }
}

/// Compiles a filter. `Err` says which pattern is broken; for a filter in `defaults` this is noticed only
/// here.
fn compile(filter: &Filter) -> Result<Patterns, String> {
    let patterns = filter.0.as_ref().map_err(Clone::clone)?;
    Patterns::compile(patterns).map_err(|error| error.to_string())
}

fn policy(own: &Plugbay) -> Result<Policy, String> {
    Ok(Policy {
        allow: own.allow.as_ref().map(compile).transpose()?,
        deny: own.deny.as_ref().map(compile).transpose()?.unwrap_or_default(),
        own_names: false,
        grant: None,
    })
}

fn transport(
    entry: &Entry,
    own: &Plugbay,
    around: Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Transport> {
    let Entry { key, server, kind, .. } = entry;
    if *kind == EntryKind::Remote {
        let Some(url) = &server.url else {
            let message = format!("remote {} has no `url`", quote(&key.value));
            report.error(key.at, message, "give its address: \"url\": \"https://HOST\"");
            return None;
        };
        let transport = http(server, url, HttpFlavour::Auto, own, around, report)?;
        return Some(match transport {
            Transport::Http(http) => Transport::Http(HttpSpec { remote: true, ..http }),
            Transport::Stdio(_) => transport,
        });
    }
    match (&server.reach, &server.url) {
        (Some(At { value: Word(Reach::Http(flavour)), .. }), Some(url)) => {
            return http(server, url, *flavour, own, around, report);
        }
        (None, Some(url)) => return http(server, url, HttpFlavour::Auto, own, around, report),
        (Some(At { value: Word(Reach::Http(_)), at }), None) => {
            let message = format!("server {} has no `url`", quote(&key.value));
            report.error(*at, message, "give its address: \"url\": \"https://HOST/mcp\"");
            return None;
        }
        _ => {}
    }
    let Some(command) = &server.command else {
        let message = format!("server {} has no `command`", quote(&key.value));
        report.error(key.at, message, "name the program to start: \"command\": \"npx\"");
        return None;
    };
    let seen = RefCell::new(BTreeMap::new());
    let noting = noting(around.env, &seen);
    let mut fill = |text: &At<String>| fill(text, &noting, report);
    let words = command.0.iter().chain(server.args.iter().flatten());
    // Collected first, so that every unset variable is reported, not only the first.
    let words: Vec<Option<String>> = words.map(&mut fill).collect();
    let values = server.env.iter().flatten();
    let values: Vec<_> = values.map(|(name, value)| (name, value.at, fill(value))).collect();
    let cwd = match &server.cwd {
        Some(cwd) => fill(cwd).map(Some),
        None => Some(None),
    };
    let cwd = cwd.map(|cwd| match cwd {
        cwd if remote::is_in_project(entry) && (cwd.is_some() || !around.starts_in_folder) => {
            remote::working_folder(entry, cwd.as_deref(), around.folder, around.env, report)
        }
        Some(cwd) => Some(around.folder.join(cwd)),
        None => around.starts_in_folder.then(|| around.folder.to_owned()),
    });
    let env = environment(values, report);

    let mut words = words.into_iter();
    let command = words.next()??;
    let args: Vec<String> = words.collect::<Option<_>>()?;
    // A variable has a name to show in its place, so variables come last.
    let secrets: BTreeMap<String, String> = secret_words(&args).into_iter().chain(seen.take()).collect();
    let stdio = StdioSpec {
        command,
        args,
        env: env?,
        pass_env: own.pass_env.clone().unwrap_or_default().sorted(),
        cwd: cwd?,
        framing: own.framing.map(|framing| framing.0).unwrap_or_default(),
        origin: plugbay_upstream::spec::Origin::default(),
        references: KnownSecrets::new(secrets),
    };
    Some(Transport::Stdio(stdio))
}

/// The same lookup, which also notes each value with its reference. Folders are not secret.
fn noting<'a>(
    env: Env<'a>,
    seen: &'a RefCell<BTreeMap<String, String>>,
) -> impl Fn(&str) -> Option<String> + 'a {
    move |name| {
        let value = env(name);
        if let Some(value) = value.clone().filter(|_| !FOLDERS.contains(&name)) {
            seen.borrow_mut().insert(value, format!("${{{name}}}"));
        }
        value
    }
}

fn http(
    server: &Server,
    url: &At<String>,
    flavour: HttpFlavour,
    own: &Plugbay,
    around: Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Transport> {
    let seen = RefCell::new(BTreeMap::new());
    let noting = noting(around.env, &seen);
    let around = Surroundings { env: &noting, ..around };
    let mut headers = Some(BTreeMap::new());
    let mut add = |name: &str, value: Option<String>| {
        headers = headers.take().zip(value).map(|(mut headers, value)| {
            headers.insert(name.to_owned(), value);
            headers
        });
    };
    for (name, value) in server.headers.iter().flatten() {
        add(name, fill(value, around.env, report));
    }
    for (name, variable) in server.env_headers.iter().flatten() {
        add(name, variable_value(variable, around.env, report));
    }
    if let Some(variable) = &server.bearer_token {
        let token = variable_value(variable, around.env, report);
        add("Authorization", token.map(|token| format!("Bearer {token}")));
    }
    let has_authorization = server.bearer_token.is_some()
        || [&server.headers, &server.env_headers]
            .into_iter()
            .flatten()
            .flat_map(BTreeMap::keys)
            .any(|header| is_authorization(header));
    let credentials = credentials::source(server, has_authorization, around, report);
    let ca_file = match &own.ca_file {
        Some(path) => Some(around.folder.join(fill(path, around.env, report)?)),
        None => None,
    };
    let address = fill(url, around.env, report)?;
    // An address that begins with a variable may be valid; connecting shows whether it is.
    if !["http://", "https://", "${"].iter().any(|start| address.starts_with(start)) {
        report.error(url.at, "not the address of an HTTP server", remedy_for_address(&address));
        return None;
    }
    let (headers, credentials) = (headers?, credentials?);
    let references = KnownSecrets::new(seen.take());
    Some(Transport::Http(HttpSpec {
        url: address,
        headers,
        credentials,
        flavour,
        ca_file,
        remote: false,
        references,
    }))
}

fn is_authorization(header: &str) -> bool {
    header.eq_ignore_ascii_case("Authorization")
}

/// The remedy for an address of a database or another service, which is no MCP server.
fn remedy_for_address(address: &str) -> &'static str {
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    if scheme.is_some_and(|scheme| nearest(scheme, &["http", "https"]).is_some()) {
        return "it begins with `https://` or `http://`";
    }
    if scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|c| c.is_ascii_alphanumeric())) {
        "`url` is for MCP servers: start one for this service with `command`, and give it the address in `env` or `args`"
    } else {
        "write it as https://HOST/PATH"
    }
}

/// The value of an environment variable that is given only by name.
pub(super) fn variable_value(name: &At<String>, env: Env<'_>, report: &mut Report<'_>) -> Option<String> {
    let value = env(&name.value);
    if value.is_none() {
        report.error(name.at, format!("the variable {} is not set", quote(&name.value)), SET_VARIABLE);
        report.was(Kind::Unset { variable: name.value.clone() });
    }
    value
}

const SET_VARIABLE: &str = "set it where plugbay is started (by a host: in the host's `env` for plugbay)";

fn environment(
    values: Vec<(&String, Range, Option<String>)>,
    report: &mut Report<'_>,
) -> Option<BTreeMap<String, String>> {
    let mut env = Some(BTreeMap::new());
    for (name, at, value) in values {
        if name.is_empty() || name.contains(['=', '\0']) {
            let help = "use letters, digits and `_`";
            report.error(at, format!("{} cannot be the name of a variable", quote(name)), help);
            env = None;
        }
        env = env.zip(value).map(|(mut env, value)| {
            env.insert(name.clone(), value);
            env
        });
    }
    env
}

/// Expands `${VAR}`. The expanded text may hold secrets, so it must not reach the report.
pub(super) fn fill(text: &At<String>, env: Env<'_>, report: &mut Report<'_>) -> Option<String> {
    match expand(&text.value, env) {
        Ok(filled) if filled.contains('\0') => {
            report.error(text.at, "contains a NUL character", "remove it: programs cannot take it");
            None
        }
        Ok(filled) => Some(filled),
        Err(ExpandError::Unset { variable, reference }) => {
            let help = format!("{SET_VARIABLE}, or give a default: ${{{variable}:-…}}");
            let at = report.source.locate(text.at, &reference);
            report.error(at, format!("the variable {} is not set", quote(&variable)), help);
            report.was(Kind::Unset { variable });
            None
        }
        Err(ExpandError::Foreign { reference }) => {
            let at = report.source.locate(text.at, &reference);
            let help = "use an environment variable: ${VAR}";
            report.error(at, format!("{} cannot be expanded here", quote(&reference)), help);
            report.was(Kind::Foreign);
            None
        }
        Err(ExpandError::Unclosed) => {
            report.error(text.at, "`${` without `}`", "close the variable: ${VAR}");
            None
        }
    }
}

fn timeouts(own: &Plugbay) -> Timeouts {
    let standard = Timeouts::default();
    let call = own.timeout.map_or(standard.call, |limit| limit.0);
    Timeouts {
        start: own.start.map_or(standard.start, |limit| limit.0),
        call,
        call_max: own.max_time.map_or(standard.call_max, |limit| limit.0).max(call),
        idle: own.idle.map_or(standard.idle, |wait| wait.0),
        shutdown: own.shutdown.map_or(standard.shutdown, |wait| wait.0),
    }
}
