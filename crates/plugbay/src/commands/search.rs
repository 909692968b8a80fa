//! `plugbay search`: finds tools by what they are for, among those that the cache remembers.

use std::process::ExitCode;

use plugbay_core::{
    catalog::Tool,
    search::{Engine, Explanation, Hit, reply},
    signature::Signature,
    surface::{Plan, Snapshot},
    tokens::Ledger,
};
use serde::Serialize;

use super::{CommandError, Context, tools::find};
use crate::{config::Settings, meaning, panel::Panel};

/// What is searched for.
#[derive(Debug)]
pub struct Wish {
    pub query: String,
    pub limit: usize,
    pub server: Option<String>,
    pub explain: bool,
}

#[derive(Debug, Serialize)]
pub struct Results {
    /// The first hit is so far ahead that hardly another can be meant.
    pub clear: bool,
    pub hits: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub struct Row {
    /// The name that hosts use.
    pub tool: String,
    pub server: String,
    pub score: f32,
    pub signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// A tool with its server and the name that hosts use.
struct Candidate {
    exposed: String,
    server: String,
    /// As the host sees it, but by its own name: a server's name counts once.
    tool: Tool,
}

pub async fn search(context: &Context, wish: &Wish, as_json: bool) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    let server = wish.server.as_deref().map(|name| find(&settings, name)).transpose()?;
    let panel = Panel::assemble(&settings, context.outside.clone());
    let snapshot = panel.snapshots().borrow().clone();
    panel.shut_down().await;

    let unknown = unknown(&settings, &snapshot);
    let mut candidates = candidates(&snapshot);
    candidates.retain(|one| server.as_ref().is_none_or(|server| one.server == server.as_str()));
    if candidates.is_empty() {
        return Err(CommandError::failed("no tools are known yet")
            .hint("`plugbay list` meets every server and remembers its tools"));
    }
    let results = find_in(&candidates, wish);
    let found = !results.hits.is_empty();
    if found || as_json {
        context.output.show(&results, as_json);
    }
    if !unknown.is_empty() {
        let these = unknown.join(", ");
        context.output.note(format!("nothing is remembered of {these}; `plugbay list` meets every server"));
    }
    if !found && !as_json {
        return Err(CommandError::failed(format!("no tool is for {:?}", wish.query))
            .hint("say what it should do, as a verb and a thing: \"create issue\""));
    }
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find_in(candidates: &[Candidate], wish: &Wish) -> Results {
    let tools: Vec<(&str, &Tool)> = candidates.iter().map(|one| (one.server.as_str(), &one.tool)).collect();
    let engine = Engine::build(&tools, meaning::table());
    // One more than is shown tells how far the first is ahead.
    let hits = engine.search(&wish.query, wish.limit + 1);
    let row = |hit: &Hit| {
        let one = &candidates[hit.tool as usize];
        let explain = || engine.explain(&wish.query, hit.tool, tools[hit.tool as usize]);
        Row {
            tool: one.exposed.clone(),
            server: one.server.clone(),
            score: hit.score,
            signature: Signature::of(&one.exposed, &one.tool).to_string(),
            explanation: wish.explain.then(explain),
        }
    };
    Results { clear: reply::is_clear(&hits), hits: hits.iter().take(wish.limit).map(row).collect() }
}

fn candidates(snapshot: &Snapshot) -> Vec<Candidate> {
    let entries = Ledger::of(&snapshot.listing, |_| 0).entries;
    let candidate = |entry: plugbay_core::tokens::Entry| {
        let Plan::Forward(target) = snapshot.listing.plan(&entry.tool.name) else { return None };
        let exposed = entry.tool.name.clone();
        let tool = Tool { name: target.tool.clone(), ..entry.tool };
        Some(Candidate { exposed, server: entry.server.to_string(), tool })
    };
    entries.into_iter().filter_map(candidate).collect()
}

/// Servers of which the cache has nothing.
fn unknown(settings: &Settings, snapshot: &Snapshot) -> Vec<String> {
    let names = settings.servers.iter().map(|server| &server.name);
    names.filter(|name| snapshot.catalog.get(name).is_none()).map(ToString::to_string).collect()
}
