//! `plugbay search`: finds tools by what they are for, among those that the cache remembers.

use std::process::ExitCode;

use plugbay_core::{
    search::Explanation,
    signature::Signature,
    surface::{Found, Snapshot},
};
use plugbay_downstream::ranking::{self, Choice, Chosen, Ranked};
use serde::Serialize;

use super::{CommandError, Context, tools::find};
use crate::{
    app::{App, choice},
    config::Settings,
    embeddings,
};

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
    /// The local engine's; none if only the model found it.
    pub score: Option<f32>,
    pub signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

pub async fn search(context: &Context, wish: &Wish, as_json: bool) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    let server = wish.server.as_deref().map(|name| find(&settings, name)).transpose()?;
    let app = App::assemble(&settings, context.outside.clone());
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;

    let unknown = unknown(&settings, &snapshot);
    if snapshot.names.is_empty() {
        return Err(CommandError::failed("no tools are known yet")
            .hint("`plugbay list` meets every server and remembers its tools"));
    }
    let wanted = ranking::RankRequest { query: wish.query.clone(), server, limit: wish.limit };
    let names = ask_model(context, &settings, &wanted, &snapshot).await;
    let results = find_in(&snapshot, &wanted, &names, wish.explain);
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

/// What the chosen model names; nothing if it does not answer. The model of a host is not within reach.
async fn ask_model(
    context: &Context,
    settings: &Settings,
    wish: &ranking::RankRequest,
    snapshot: &Snapshot,
) -> Vec<String> {
    let Some(Choice { model: Chosen::Model(model), deadline }) = choice(settings) else { return Vec::new() };
    let answer = ranking::ask(&*model, deadline, wish, snapshot, embeddings::table).await;
    answer.unwrap_or_else(|trouble| {
        context.output.note(format!("ranked without the model: {trouble}"));
        Vec::new()
    })
}

fn find_in(snapshot: &Snapshot, wish: &ranking::RankRequest, names: &[String], explain: bool) -> Results {
    let tool_index = &snapshot.tool_index;
    let local = tool_index.search(&wish.query, wish.limit, wish.server.as_ref(), embeddings::table);
    let Ranked { hits, clear } = ranking::merge(wish, snapshot, names, &local);
    let row = |(found, score): &(&Found, Option<f32>)| Row {
        tool: found.exposed.clone(),
        server: found.target.server.to_string(),
        score: *score,
        signature: Signature::of(&found.exposed, &found.tool).to_string(),
        explanation: explain
            .then(|| tool_index.explain(&wish.query, &found.exposed, embeddings::table))
            .flatten(),
    };
    Results { clear, hits: hits.iter().map(row).collect() }
}

/// Servers of which the cache has nothing.
fn unknown(settings: &Settings, snapshot: &Snapshot) -> Vec<String> {
    let names = settings.servers.iter().map(|server| &server.name);
    names.filter(|name| snapshot.catalog.get(name).is_none()).map(ToString::to_string).collect()
}
