//! `plugbay permissions`: a host's permission rules keep their meaning for tools that are called through another.

mod files;
mod rules;

use std::{io::Read, path::PathBuf, process::ExitCode};

use plugbay_core::{
    repair::{self, Envelope, NoCall, Tools},
    surface::{Found, Own, Plan, Snapshot, View, suite},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CommandError, Context};
use crate::panel::Panel;
pub use files::Places;
use rules::{Decision, Rules};

/// How Claude Code calls a tool of ours: `mcp__{entry}__{tool}`.
const PREFIX: &str = "mcp__";

/// What is asked for.
#[derive(Debug)]
pub struct Wish {
    /// What plugbay is called in the host's settings.
    pub entry: String,
    /// Believe servers that say of a tool that it only reads, and let it pass.
    pub allow_reading: bool,
}

/// Prints what is to be added to the settings of Claude Code.
pub async fn fragment(context: &Context, wish: &Wish) -> Result<ExitCode, CommandError> {
    let Wish { entry, allow_reading } = wish;
    let snapshot = seen_by_claude(context).await?;
    let ours = |own: Own| format!("{PREFIX}{entry}__{}", own.name());
    let mut allow: Vec<String> = [Own::Search, Own::Describe, Own::Overview].map(ours).into();
    let reading = snapshot.names.iter().filter(|found| *allow_reading && found.is_read_only());
    allow.extend(reading.map(|found| format!("{PREFIX}{entry}__{}", found.exposed)));
    let hook = json!({ "type": "command", "command": hook_command(context, wish) });
    let suites = snapshot.listing.suites().map(|(exposed, _)| format!("{PREFIX}{entry}__{exposed}"));
    let matcher: Vec<String> = [Own::Execute, Own::Read].map(ours).into_iter().chain(suites).collect();
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

/// What Claude Code tells a hook before a tool is used.
#[derive(Debug, Deserialize)]
struct Asked {
    /// As the host calls it.
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    cwd: PathBuf,
}

/// Answers Claude Code's question whether a tool of ours may be used that calls others. Says nothing where its user is to be asked.
pub async fn hook(context: &Context, wish: &Wish, places: &Places) -> Result<ExitCode, CommandError> {
    let entry = &wish.entry;
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let asked: Asked = serde_json::from_str(&input)
        .map_err(|error| CommandError::usage(format!("this is no question of a hook: {error}")))?;
    let snapshot = seen_by_claude(context).await?;
    let Some(name) = called(&asked, &snapshot, entry) else { return Ok(ExitCode::SUCCESS) };
    let rules = places.rules(&asked.cwd);
    if let Some((decision, reason)) = decide(&rules, &snapshot, &name, wish) {
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

/// The tool that will be called, read as those that call it read it: a model may write its name in many ways.
fn called(asked: &Asked, snapshot: &Snapshot, entry: &str) -> Option<String> {
    let input = asked.tool_input.to_string();
    let meant = |envelope, tools: Tools<'_, '_>| {
        repair::unwrap_call(input.as_bytes(), envelope, repair::Mode::Repair, tools).map(|call| call.name)
    };
    let tool = asked.tool_name.strip_prefix(&format!("{PREFIX}{entry}__")).unwrap_or_default();
    match snapshot.listing.plan(tool) {
        Plan::Suite(server) => {
            meant(Envelope::SUITE, &|name, _| suite::callable(server, name, snapshot)).ok()
        }
        _ => match meant(Envelope::EXECUTE, &|name, server| snapshot.executable(name, server)) {
            // By now there may be one.
            Ok(name) | Err(NoCall::Unknown(name)) => Some(name),
            Err(NoCall::Refused(_)) => None,
        },
    }
}

/// The rules for a tool as if its server were the host's own, and for its name as we show it.
fn decide(rules: &Rules, snapshot: &Snapshot, name: &str, wish: &Wish) -> Option<(Decision, String)> {
    let found = snapshot.names.get(name);
    // A tool of a server that was never heard of can be called too, by both names together.
    let direct = found.map_or_else(
        || format!("{PREFIX}{name}"),
        |Found { target, .. }| format!("{PREFIX}{}__{}", target.server, target.tool),
    );
    let shown = format!("{PREFIX}{}__{name}", wish.entry);
    if let Some((decision, rule)) = rules.decide(&[&direct, &shown]) {
        return Some((decision, format!("the rule {rule} holds for {name}")));
    }
    let reads = wish.allow_reading && found.is_some_and(Found::is_read_only);
    reads.then(|| (Decision::Allow, format!("{name} only reads, says its server")))
}

/// This command as a shell takes it, on the same configuration.
fn hook_command(context: &Context, wish: &Wish) -> String {
    let mut words = vec![context.outside.program.display().to_string(), "permissions".to_owned()];
    words.extend(["--hook", "--name", &wish.entry].map(str::to_owned));
    words.extend(wish.allow_reading.then(|| "--allow-reading".to_owned()));
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
    let panel = Panel::assemble(&settings, context.outside.clone());
    let snapshot = panel.snapshots().borrow().clone();
    panel.shut_down().await;
    let name_limit = settings.hosts.of(Some("claude-code")).name_limit;
    // Where the mode is not settled, this host sees everything.
    Ok(snapshot.seen_by(&View { name_limit, ..View::in_mode(settings.mode.unwrap_or_default()) }))
}
