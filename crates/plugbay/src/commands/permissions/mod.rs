//! `plugbay permissions`: applies the permission rules of a host to calls within `execute_tool` and suites.

mod files;
mod rules;

use std::{cell::RefCell, io::Read, path::PathBuf, process::ExitCode};

use plugbay_core::{
    arguments::{self, Envelope, NoCall, ResolveTool},
    name::{self, ServerName},
    profile::Client,
    script::ScriptError,
    surface::{BuiltinTool, Callable, Plan, Snapshot, Target, View, suite},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CommandError, Context};
use crate::{
    app::{App, scripts},
    settings,
};
use files::Places;
use rules::{Decision, Rules};

/// The prefix of tools: Claude Code calls a tool of plugbay `mcp__{entry}__{tool}`.
const PREFIX: &str = "mcp__";

/// Print permission rules and a hook for Claude Code.
///
/// The hook applies Claude Code's permission rules to tools that are called through `execute_tool`.
#[derive(Debug, clap::Args)]
pub struct PermissionsArgs {
    /// The host to print settings for.
    #[arg(long, value_parser = ["claude-code"], default_value = "claude-code")]
    host: String,
    /// The name of plugbay in that host's settings.
    #[arg(long, value_name = "NAME", default_value = "plugbay")]
    name: String,
    /// Allow tools that only read, according to their servers.
    #[arg(long)]
    allow_reading: bool,
    /// Run as the hook: read Claude Code's hook input from stdin and print a decision.
    #[arg(long)]
    hook: bool,
}

/// The options that the fragment and the hook share.
#[derive(Debug)]
struct PermissionsOptions {
    /// The name of plugbay in the host's settings.
    entry: String,
    /// Allow tools that only read, according to their servers.
    allow_reading: bool,
}

pub async fn permissions(context: &Context, args: PermissionsArgs) -> Result<ExitCode, CommandError> {
    let options = PermissionsOptions { entry: args.name, allow_reading: args.allow_reading };
    if !args.hook {
        return fragment(context, &options).await;
    }
    let (project, user) = settings::claude_code();
    hook(context, &options, &Places::new(project, user)).await
}

/// Prints the fragment to add to Claude Code's settings.
async fn fragment(context: &Context, options: &PermissionsOptions) -> Result<ExitCode, CommandError> {
    let PermissionsOptions { entry, allow_reading } = options;
    let snapshot = seen_by_claude(context).await?;
    let ours = |own: BuiltinTool| format!("{PREFIX}{entry}__{}", own.name());
    let mut allow: Vec<String> =
        [BuiltinTool::Search, BuiltinTool::Describe, BuiltinTool::Overview, BuiltinTool::ReadResult]
            .map(ours)
            .into();
    let reading = snapshot.names.iter().filter(|found| *allow_reading && found.is_read_only());
    allow.extend(reading.map(|found| format!("{PREFIX}{entry}__{}", found.exposed)));
    let hook = json!({ "type": "command", "command": hook_command(context, options) });
    let suites = snapshot.listing.suites().map(|(exposed, _)| format!("{PREFIX}{entry}__{exposed}"));
    let callers =
        [BuiltinTool::Execute, BuiltinTool::Read, BuiltinTool::NaturalLanguage, BuiltinTool::RunCode];
    let matcher: Vec<String> = callers.map(ours).into_iter().chain(suites).collect();
    context.output.json(&json!({
        "permissions": { "allow": allow },
        "hooks": { "PreToolUse": [{ "matcher": matcher.join("|"), "hooks": [hook] }] },
    }));
    context.output.note(
        "merge this into .claude/settings.json; the hook applies the rules of Claude Code, such as \
         mcp__github__get_issue, to what execute_tool or a suite calls",
    );
    Ok(ExitCode::SUCCESS)
}

/// The input of Claude Code's hook before a tool is used.
#[derive(Debug, Deserialize)]
struct HookInput {
    /// The name by which the host calls the tool.
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    cwd: PathBuf,
}

/// Tells Claude Code whether a built-in tool may make the call that it contains. Prints nothing if no rule
/// applies.
async fn hook(
    context: &Context,
    options: &PermissionsOptions,
    places: &Places,
) -> Result<ExitCode, CommandError> {
    let entry = &options.entry;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let input: HookInput = serde_json::from_str(&text)
        .map_err(|error| CommandError::usage(format!("the input of the hook cannot be parsed: {error}")))?;
    let snapshot = seen_by_claude(context).await?;
    let rules = places.rules(&input.cwd);
    let decided = match called(&input, &snapshot, entry) {
        Called::Script(code) => decide_script(context, &rules, &snapshot, code, options).await,
        Called::Nothing => None,
        Called::Tool(name) => decide(&rules, &snapshot, &name, options),
        Called::ReadResult => Some(decide_reading(&rules, entry)),
        Called::Unclear(names) => Some(decide_unclear(&rules, &names, entry)),
        Called::Anything => Some((Decision::Ask, "a model calls the tools that it needs".to_owned())),
    };
    if let Some((decision, reason)) = decided {
        let decision = match decision {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        };
        context.output.json(&json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        } }));
    }
    Ok(ExitCode::SUCCESS)
}

/// The tool that a built-in tool will call.
#[derive(Debug)]
enum Called {
    Nothing,
    Tool(String),
    /// plugbay's own tool that reads the result of another call.
    ReadResult,
    /// Perhaps a tool with one of these names. The gateway may know more servers than this process, because
    /// cached offers depend on the environment.
    Unclear(Vec<String>),
    Anything,
    /// The tools that a script calls.
    Script(String),
}

/// The tool that will be called. Names are read as the built-in tools read them: a model may write them in
/// many ways.
fn called(input: &HookInput, snapshot: &Snapshot, entry: &str) -> Called {
    let tool = input.tool_name.strip_prefix(&format!("{PREFIX}{entry}__")).unwrap_or_default();
    let suite = match (BuiltinTool::named(tool), snapshot.listing.plan(tool)) {
        (Some(BuiltinTool::NaturalLanguage), _) => return Called::Anything,
        (Some(BuiltinTool::RunCode), _) => return called_by_script(&input.tool_input),
        (_, Plan::Suite(server)) => Some(server),
        _ => None,
    };
    let written = RefCell::new(Vec::new());
    let note = |name: &str, server: Option<&str>| {
        let server = server.or(suite.map(ServerName::as_str));
        written.borrow_mut().extend(server.map(|server| format!("{server}{}{name}", name::JOINT)));
        written.borrow_mut().push(name.to_owned());
    };
    let (envelope, tools): (_, ResolveTool<'_, Callable<'_>>) = match suite {
        Some(of) => (Envelope::SUITE, &|name, server| {
            note(name, server);
            suite::callable(of, name, snapshot)
        }),
        None => (Envelope::EXECUTE, &|name, server| {
            note(name, server);
            snapshot.executable(name, server)
        }),
    };
    let input = input.tool_input.to_string();
    let meant = arguments::unwrap_call(input.as_bytes(), envelope, arguments::Mode::Repair, tools);
    match (meant, written.take()) {
        (Ok(call), _) => Called::Tool(call.tool.name),
        (Err(NoCall::Unknown(name)), _) if name == BuiltinTool::ReadResult.name() => Called::ReadResult,
        (Err(_), names) if names.is_empty() => Called::Nothing,
        (Err(_), names) => Called::Unclear(names),
    }
}

/// The tools that a script calls. A continued run was permitted when it began, and a dry run calls nothing.
fn called_by_script(input: &Value) -> Called {
    match input["code"].as_str() {
        Some(code) if input["dry_run"] != true => Called::Script(code.to_owned()),
        _ => Called::Nothing,
    }
}

/// Applies the rules to every tool that the script names. If it may call others too, the user is asked.
async fn decide_script(
    context: &Context,
    rules: &Rules,
    snapshot: &Snapshot,
    code: String,
    options: &PermissionsOptions,
) -> Option<(Decision, String)> {
    let reach = match scripts::sandboxed(&context.environment.program).reach(code).await {
        Ok(reach) => reach,
        // The script will fail in the same way before it calls anything.
        Err(ScriptError::Wrong { .. }) => return None,
        Err(error) => return Some((Decision::Ask, format!("the script cannot be read: {error}"))),
    };
    let mut decisions: Vec<Option<(Decision, String)>> = Vec::new();
    for (server, tool) in &reach.tools {
        decisions.push(if let Some(meant) = snapshot.executable(tool, server.as_deref()) {
            decide(rules, snapshot, &meant.name, options)
        } else {
            let written = server.as_ref().map(|server| format!("{server}{}{tool}", name::JOINT));
            let names: Vec<String> = written.into_iter().chain([tool.clone()]).collect();
            Some(decide_unclear(rules, &names, &options.entry))
        });
    }
    if !reach.is_complete {
        decisions.push(Some((Decision::Ask, "the script does not name all tools that it calls".to_owned())));
    }
    strictest(&decisions)
}

/// The strictest decision: one denial denies, one question asks, and a call is allowed only if all are.
fn strictest(decisions: &[Option<(Decision, String)>]) -> Option<(Decision, String)> {
    let is = |wanted: Decision| decisions.iter().flatten().find(|(decision, _)| *decision == wanted).cloned();
    let allowed = || decisions.iter().all(Option::is_some).then(|| is(Decision::Allow)).flatten();
    is(Decision::Deny).or_else(|| is(Decision::Ask)).or_else(allowed)
}

/// The decision for reading a stored result: the call that produced it was allowed.
fn decide_reading(rules: &Rules, entry: &str) -> (Decision, String) {
    let name = BuiltinTool::ReadResult.name();
    match rules.decide(&[&format!("{PREFIX}{entry}__{name}")]) {
        Some((decision, rule)) => (decision, format!("the rule {rule} holds for {name}")),
        None => (Decision::Allow, format!("{name} reads what an earlier call has given")),
    }
}

/// Applies the rules to the tool's name without plugbay, and to the name that plugbay shows.
fn decide(
    rules: &Rules,
    snapshot: &Snapshot,
    name: &str,
    options: &PermissionsOptions,
) -> Option<(Decision, String)> {
    let shown = format!("{PREFIX}{}__{name}", options.entry);
    let Some(found) = snapshot.names.get(name) else {
        return decide_unlisted(rules, snapshot, name, &shown);
    };
    let Target { server, tool, .. } = &found.target;
    if let Some((decision, rule)) = rules.decide(&[&format!("{PREFIX}{server}__{tool}"), &shown]) {
        return Some((decision, format!("the rule {rule} holds for {name}")));
    }
    let reads = options.allow_reading && found.is_read_only();
    reads.then(|| (Decision::Allow, format!("{name} only reads, says its server")))
}

/// The decision for a tool of a server that has never connected, which can also be called. Its real name may
/// be spelt differently, so the user is asked if that could matter.
fn decide_unlisted(
    rules: &Rules,
    snapshot: &Snapshot,
    name: &str,
    shown: &str,
) -> Option<(Decision, String)> {
    let names = [&format!("{PREFIX}{name}"), shown];
    let server = name::split(name).and_then(|(server, _)| ServerName::parse(server).ok());
    let exposure = server.and_then(|server| snapshot.layout.exposures.get(&server));
    let is_renamed = name::is_marked(name) || exposure.is_none_or(|exposure| !exposure.rename.is_empty());
    match (rules.decide(&names), rules.decide_loosely(&names)) {
        (Some((Decision::Deny, rule)), _) => {
            Some((Decision::Deny, format!("the rule {rule} holds for {name}")))
        }
        (None, None) if !is_renamed => None,
        (Some((exact, rule)), Some((loose, _))) if exact == loose && !is_renamed => {
            Some((exact, format!("the rule {rule} holds for {name}")))
        }
        _ => Some((Decision::Ask, format!("which tool {name} is, is not known to plugbay yet"))),
    }
}

/// The decision for a tool that this process does not know; it is never allowed.
fn decide_unclear(rules: &Rules, names: &[String], entry: &str) -> (Decision, String) {
    let direct = names.iter().map(|name| format!("{PREFIX}{name}"));
    let shown = names.iter().map(|name| format!("{PREFIX}{entry}__{name}"));
    // A model may also write a name in the host's form.
    let all: Vec<String> = names.iter().cloned().chain(direct).chain(shown).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    match rules.decide_loosely(&all) {
        Some((Decision::Deny, rule)) => (Decision::Deny, format!("the rule {rule} holds for {}", names[0])),
        _ => (Decision::Ask, format!("which tool {} is, is not clear", names[0])),
    }
}

/// This command as a shell command, with the same configuration.
fn hook_command(context: &Context, options: &PermissionsOptions) -> String {
    let program = settings::own_program(&context.environment.program);
    let mut words = vec![program.display().to_string(), "permissions".to_owned()];
    words.extend(["--hook", "--name", &options.entry].map(str::to_owned));
    words.extend(options.allow_reading.then(|| "--allow-reading".to_owned()));
    if let Some(file) = context.source.explicit() {
        words.extend(["--config".to_owned(), file.display().to_string()]);
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

async fn seen_by_claude(context: &Context) -> Result<Snapshot, CommandError> {
    let settings = context.settings_in_passing()?;
    let app = App::assemble(&settings, context.environment.clone());
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;
    let name_limit = settings.hosts.of(Client::named("claude-code")).limits.name;
    // While the mode is undecided, this host sees everything.
    Ok(snapshot.seen_by(&View { name_limit, ..View::in_mode(settings.mode.unwrap_or_default()) }))
}
