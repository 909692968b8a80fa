//! `plugbay permissions`: a host's permission rules keep their meaning for tools that are called through another.

mod rules;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

use plugbay_core::{
    profile::Profiles,
    surface::{Found, Own, Snapshot, View},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CommandError, Context};
use crate::panel::Panel;
use rules::{Decision, Rules};

/// How Claude Code calls a tool of ours: `mcp__{entry}__{tool}`.
const PREFIX: &str = "mcp__";
/// What Claude Code's rules for all projects, for this one, and for this one on this machine stand in.
const PROJECT_FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
const USER_FILE: &str = ".claude/settings.json";

/// Prints what is to be added to the settings of Claude Code. `entry` is what plugbay is called there.
pub async fn fragment(context: &Context, entry: &str) -> Result<ExitCode, CommandError> {
    let snapshot = seen_by_claude(context).await?;
    let ours = |own: Own| format!("{PREFIX}{entry}__{}", own.name());
    let mut allow: Vec<String> = [Own::Search, Own::Describe, Own::Overview].map(ours).into();
    let reading = snapshot.names.iter().filter(|found| found.is_read_only());
    allow.extend(reading.map(|found| format!("{PREFIX}{entry}__{}", found.exposed)));
    let program = context.outside.program.display();
    let hook =
        json!({ "type": "command", "command": format!("{program} permissions --hook --name {entry}") });
    let matcher = [Own::Execute, Own::Read].map(ours).join("|");
    context.output.json(&json!({
        "permissions": { "allow": allow },
        "hooks": { "PreToolUse": [{ "matcher": matcher, "hooks": [hook] }] },
    }));
    context.output.note(
        "merge this into .claude/settings.json; the hook applies the rules there, such as \
         mcp__github__get_issue, to what execute_tool calls",
    );
    Ok(ExitCode::SUCCESS)
}

/// What Claude Code tells a hook before a tool is used.
#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    cwd: PathBuf,
}

/// Answers Claude Code's question whether `execute_tool` may be used. Says nothing where its user is to be asked.
pub async fn hook(context: &Context, entry: &str, home: Option<&Path>) -> Result<ExitCode, CommandError> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let asked: Asked = serde_json::from_str(&input)
        .map_err(|error| CommandError::usage(format!("this is no question of a hook: {error}")))?;
    let snapshot = seen_by_claude(context).await?;
    let found = asked.tool_input["name"].as_str().and_then(|name| snapshot.names.get(name));
    let Some(found) = found else { return Ok(ExitCode::SUCCESS) };
    let user = home.map(|home| home.join(USER_FILE));
    let files = PROJECT_FILES.iter().map(|file| asked.cwd.join(file)).chain(user);
    let rules = files.filter_map(|file| fs::read_to_string(file).ok()).fold(Rules::default(), Rules::with);
    if let Some((decision, reason)) = decide(&rules, found, entry) {
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

/// The rules for a tool as if its server were the host's own, and for its name as we show it.
fn decide(rules: &Rules, found: &Found, entry: &str) -> Option<(Decision, String)> {
    let direct = format!("{PREFIX}{}__{}", found.target.server, found.target.tool);
    let shown = format!("{PREFIX}{entry}__{}", found.exposed);
    if let Some((decision, rule)) = rules.decide(&[&direct, &shown]) {
        return Some((decision, format!("the rule {rule} holds for {}", found.exposed)));
    }
    let reads = found.is_read_only();
    reads.then(|| (Decision::Allow, format!("{} only reads, says its server", found.exposed)))
}

async fn seen_by_claude(context: &Context) -> Result<Snapshot, CommandError> {
    let settings = context.settings_in_passing()?;
    let panel = Panel::assemble(&settings, context.outside.clone());
    let snapshot = panel.snapshots().borrow().clone();
    panel.shut_down().await;
    let name_limit = Profiles::built_in("claude-code").and_then(|profile| profile.name_limit);
    Ok(snapshot.seen_by(&View { name_limit, ..View::default() }))
}
