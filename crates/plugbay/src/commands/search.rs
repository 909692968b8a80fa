//! `plugbay search`: finds tools by what they are for, among those that the cache remembers.

use std::process::ExitCode;

use plugbay_core::{
    name::ServerName,
    search::{Explanation, Hit, reply},
    signature::Signature,
    surface::{Finder, Found, Snapshot},
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

pub async fn search(context: &Context, wish: &Wish, as_json: bool) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    let server = wish.server.as_deref().map(|name| find(&settings, name)).transpose()?;
    let panel = Panel::assemble(&settings, context.outside.clone());
    let snapshot = panel.snapshots().borrow().clone();
    panel.shut_down().await;

    let unknown = unknown(&settings, &snapshot);
    if snapshot.names.is_empty() {
        return Err(CommandError::failed("no tools are known yet")
            .hint("`plugbay list` meets every server and remembers its tools"));
    }
    let results = find_in(&snapshot.finder, wish, server.as_ref());
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

fn find_in(finder: &Finder, wish: &Wish, server: Option<&ServerName>) -> Results {
    // One more than is shown tells how far the first is ahead.
    let found = finder.search(&wish.query, wish.limit + 1, server.map(ServerName::as_str), meaning::table);
    let scores: Vec<Hit> = (0..).zip(&found).map(|(tool, (_, score))| Hit { tool, score: *score }).collect();
    let row = |(found, score): &(&Found, f32)| {
        let explain = || finder.explain(&wish.query, &found.exposed, meaning::table);
        Row {
            tool: found.exposed.clone(),
            server: found.target.server.to_string(),
            score: *score,
            signature: Signature::of(&found.exposed, &found.tool).to_string(),
            explanation: wish.explain.then(explain).flatten(),
        }
    };
    Results { clear: reply::is_clear(&scores), hits: found.iter().take(wish.limit).map(row).collect() }
}

/// Servers of which the cache has nothing.
fn unknown(settings: &Settings, snapshot: &Snapshot) -> Vec<String> {
    let names = settings.servers.iter().map(|server| &server.name);
    names.filter(|name| snapshot.catalog.get(name).is_none()).map(ToString::to_string).collect()
}
