//! Checks of why a started program did not become a working server.

use std::time::Duration;

use plugbay_core::failure::{Cause, Failure};
use serde_json::{Value, json};

use super::{
    super::{
        examination::{EntryPlace, Examination, ServerFacts},
        finding::{Code, Finding},
        fix::Fix,
    },
    programs,
    said::{Said, has, variables},
};

/// Programs that may download a package before they start it.
const DOWNLOADERS: &[&str] =
    &["npx", "uvx", "uv", "bunx", "pnpm", "yarn", "pipx", "docker", "podman", "deno"];
/// Phrases with which programs ask for a variable.
const WANTED: &[&str] = &[
    "required",
    "missing",
    "not set",
    "must be set",
    "must set",
    "undefined",
    "provide",
    "keyerror",
    "environment",
    "please set",
    "is empty",
    "unset",
    "expected",
];
/// Signs in a program's output, with the code, the message and the remedy.
const SIGNS: &[(&[&str], Code, &str, &str)] = &[
    (
        &[
            "E404",
            "404 Not Found - GET",
            "not found in the package registry",
            "No matching distribution",
            "could not determine executable",
            "manifest unknown",
            "pull access denied",
        ],
        Code::PackageUnknown,
        "The registry does not know its package.",
        "check the name of the package in \"args\"",
    ),
    (
        &["EADDRINUSE", "address already in use"],
        Code::PortInUse,
        "Another program uses the port that this server wants.",
        "end the other program, or give the server another port",
    ),
    (
        &["Cannot connect to the Docker daemon", "docker daemon is not running"],
        Code::DockerNotRunning,
        "Docker is installed, but its daemon does not run.",
        "start Docker; a server may also need DOCKER_HOST in its \"env\"",
    ),
    (
        &[
            "SELF_SIGNED_CERT",
            "self-signed certificate",
            "self signed certificate",
            "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
            "UNABLE_TO_GET_ISSUER_CERT",
            "CERTIFICATE_VERIFY_FAILED",
            "invalid peer certificate",
        ],
        Code::Certificate,
        "The server does not trust the certificate of an address that it uses.",
        "set NODE_EXTRA_CA_CERTS (Node) or SSL_CERT_FILE (others) where plugbay is started; plugbay passes both on",
    ),
    (
        &[
            "401 Unauthorized",
            "Unauthorized",
            "Bad credentials",
            "invalid token",
            "invalid api key",
            "invalid_api_key",
        ],
        Code::NeedsLogin,
        "A service rejected the server's credentials.",
        "check the token or key in its \"env\"",
    ),
];

pub fn check(examination: &Examination, facts: &ServerFacts) -> Option<Finding> {
    let failure = facts.failure()?;
    let said = Said::of(failure);
    let entry = examination.entry(&facts.name);
    let finding = not_passed(examination, facts, &said, entry)
        .or_else(|| wrong_path(facts, &said, entry))
        .or_else(|| network(examination, facts, &said))
        .or_else(|| sign(facts, &said))
        .or_else(|| wanted(examination, facts, &said))
        .or_else(|| missing_module(facts, &said))
        .or_else(|| not_mcp(facts, failure))
        .or_else(|| late(facts, failure, entry));
    Some(finding.unwrap_or_else(|| other(facts, failure)))
}

/// A variable that the server names and that is set here, but is not passed to the server.
fn not_passed(
    examination: &Examination,
    facts: &ServerFacts,
    said: &Said<'_>,
    entry: Option<&EntryPlace>,
) -> Option<Finding> {
    let given = facts.env()?;
    let ours = &examination.variables;
    let withheld = |name: &&str| {
        ours.names.contains(*name) && !given.contains_key(*name) && !ours.inherited.contains(*name)
    };
    let (line, name) = said.lines().find_map(|line| Some((line, variables(line).find(withheld)?)))?;
    let message = format!(
        "It asks for {name}. The variable is set here, but a server gets only the variables that its entry names."
    );
    let remedy = format!("add \"passEnv\": [\"{name}\"] to its entry");
    let fix = entry.map(|entry| {
        let passed = entry.value.get("passEnv").and_then(Value::as_array).cloned().unwrap_or_default();
        let names: Value = passed.into_iter().chain([json!(name)]).collect();
        Fix::Set { file: entry.file.clone(), host: None, members: vec![(entry.key("passEnv"), names)] }
    });
    Some(
        Finding::of(Code::VariableNotPassed, &facts.name, message, remedy)
            .seen([line.to_owned()])
            .fixed_by(fix),
    )
}

/// A variable that the server asks for, and that is set nowhere.
fn wanted(examination: &Examination, facts: &ServerFacts, said: &Said<'_>) -> Option<Finding> {
    let given = facts.env()?;
    let absent = |name: &&str| {
        name.contains('_') && !given.contains_key(*name) && !examination.variables.names.contains(*name)
    };
    let asking = said.lines().filter(|line| has(line, WANTED));
    let (line, name) = asking.into_iter().find_map(|line| Some((line, variables(line).find(absent)?)))?;
    let message = format!("It asks for the variable {name}, which is not set.");
    let remedy = format!(
        "add \"{name}\" to \"env\" of its entry; write \"${{{name}}}\" to take it from plugbay's environment"
    );
    Some(Finding::of(Code::MissingVariable, &facts.name, message, remedy).seen([line.to_owned()]))
}

/// An argument that names a file which does not exist.
fn wrong_path(facts: &ServerFacts, said: &Said<'_>, entry: Option<&EntryPlace>) -> Option<Finding> {
    let dead = facts.dead_paths.first()?;
    let message = if dead.word.starts_with('~') {
        format!("There is no {}: plugbay uses no shell, so ~ is not your home folder there.", dead.word)
    } else {
        format!("{} in \"args\" does not exist.", dead.word)
    };
    let finding = Finding::of(Code::WrongPath, &facts.name, message, "correct the path in \"args\"");
    Some(programs::corrected(finding.seen([said.last()]), facts, entry))
}

/// A download that fails while a proxy is set.
fn network(examination: &Examination, facts: &ServerFacts, said: &Said<'_>) -> Option<Finding> {
    let signs = [
        "ECONNREFUSED",
        "ETIMEDOUT",
        "ENOTFOUND",
        "ECONNRESET",
        "EAI_AGAIN",
        "tunnel error",
        "behind a proxy",
        "407 Proxy",
        "ProxyError",
        "error sending request",
    ];
    let line = said.line_with(&signs)?;
    let proxy = super::remote::proxy_variable(examination)?;
    let through =
        has(line, &["proxy", "tunnel"]) || facts.runner().is_some_and(|runner| DOWNLOADERS.contains(&runner));
    let message =
        format!("It cannot reach the network. {proxy} is set, so its traffic goes through a proxy.");
    let remedy = format!("check that the proxy in {proxy} runs, or name the address in NO_PROXY");
    through.then(|| Finding::of(Code::Proxy, &facts.name, message, remedy).seen([line.to_owned()]))
}

fn sign(facts: &ServerFacts, said: &Said<'_>) -> Option<Finding> {
    let known = SIGNS
        .iter()
        .find_map(|(signs, code, message, remedy)| Some((said.line_with(signs)?, *code, *message, *remedy)));
    let (line, code, message, remedy) = known?;
    Some(Finding::of(code, &facts.name, message, remedy).seen([line.to_owned()]))
}

fn missing_module(facts: &ServerFacts, said: &Said<'_>) -> Option<Finding> {
    let signs = [
        "ModuleNotFoundError",
        "Cannot find module",
        "ERR_MODULE_NOT_FOUND",
        "No module named",
        "Cannot find package",
    ];
    let line = said.line_with(&signs)?;
    let message = "A module that its program needs is not installed.";
    let remedy = "install its dependencies in the environment of this command, or let npx or uvx do it";
    Some(Finding::of(Code::MissingModule, &facts.name, message, remedy).seen([line.to_owned()]))
}

fn not_mcp(facts: &ServerFacts, failure: &Failure) -> Option<Finding> {
    let line = failure.stdout.first()?;
    let message = "Its program prints text on stdout where MCP messages belong, and answers nothing.";
    let remedy = failure.remedy.clone().unwrap_or_default();
    Some(Finding::of(Code::NotMcp, &facts.name, message, remedy).seen([line.clone()]))
}

/// A start that took too long.
fn late(facts: &ServerFacts, failure: &Failure, entry: Option<&EntryPlace>) -> Option<Finding> {
    if failure.cause != Cause::OutOfTime {
        return None;
    }
    let limit = facts.spec.as_ref().ok()?.timeouts.start;
    let downloads = facts.runner().is_some_and(|runner| DOWNLOADERS.contains(&runner));
    let (code, message, first) = if downloads {
        let runner = facts.runner().unwrap_or_default();
        let message = format!(
            "`{runner}` was not ready within {}; it probably still downloads the package.",
            seconds(limit)
        );
        (Code::PackageDownloading, message, "run its command once by hand, or ")
    } else {
        let first = match facts.http() {
            Some(_) => "check \"url\" and the network, or ",
            None => "run its command by hand to see what it waits for, or ",
        };
        (Code::SlowStart, format!("It did not answer within {}.", seconds(limit)), first)
    };
    let longer = (limit * 4).max(LONG_START);
    let remedy = format!("{first}allow more time: \"plugbay\": {{ \"start\": \"{}s\" }}", longer.as_secs());
    // Only a download is certain to end.
    let fix = entry.filter(|_| downloads).map(|entry| {
        let path = entry.key("plugbay").into_iter().chain(["start".to_owned()]).collect();
        let value = Value::from(format!("{}s", longer.as_secs()));
        Fix::Set { file: entry.file.clone(), host: None, members: vec![(path, value)] }
    });
    Some(Finding::of(code, &facts.name, message, remedy).seen(failure.stderr.last().cloned()).fixed_by(fix))
}

/// Time for a first start with a download.
const LONG_START: Duration = Duration::from_secs(120);

fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f32())
}

/// A failure that no other check recognises.
fn other(facts: &ServerFacts, failure: &Failure) -> Finding {
    let mut what = failure.what.clone();
    if let Some(first) = what.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let look = match facts.http() {
        Some(_) => "check \"url\": it must be the address of an MCP server, often ending in /mcp or /sse",
        None => "run its command by hand to see more",
    };
    let remedy = failure.remedy.clone().unwrap_or_else(|| look.to_owned());
    Finding::of(Code::ServerFailed, &facts.name, format!("{what}."), remedy).seen(failure.stderr.clone())
}
