//! `plugbay search`: finds tools in the cache by their descriptions.

use std::{collections::BTreeMap, process::ExitCode};

use plugbay_core::{
    search::{
        Explanation,
        memory::{Remembered, SearchMemory},
        reply,
    },
    signature::Signature,
    surface::{Found, Snapshot},
};
use plugbay_downstream::{
    ranking::{self, Choice, Chosen, Ranked},
    remembered_searches::today,
};
use serde::Serialize;

use super::{CommandError, Context, tools::find};
use crate::{
    app::{App, choice},
    config::Settings,
    embeddings,
    search_memory::MemoryFile,
};

/// Find tools by what they do. Starts no server.
///
/// It searches the tools in the cache.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct SearchArgs {
    /// What the tool should do, in words.
    #[arg(required_unless_present = "learned")]
    query: Vec<String>,
    /// Show at most this many tools, from 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Search only the tools of this server.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Also show which words matched where, and how near the meaning is.
    #[arg(long)]
    explain: bool,
    /// Show what is remembered of this project's searches: which words led to which tools.
    #[arg(long, conflicts_with_all = ["query", "explain", "limit"])]
    learned: bool,
}

const EXAMPLES: &str = "\
Examples:
  plugbay search create an issue
  plugbay search --server github --limit 10 --explain pull requests

The exit code is 1 if no tool was found.";

#[derive(Debug, Serialize)]
pub struct Results {
    /// Whether the first hit is far ahead of all others.
    pub clear: bool,
    /// Whether no hit fits well.
    pub poor: bool,
    pub hits: Vec<Row>,
    /// The names of further tools, if no hit fits well: one of them may be right.
    pub further: Vec<String>,
}

/// The memory of a project's searches.
#[derive(Debug, Serialize)]
pub struct Memory {
    pub tools: Vec<Learned>,
}

/// The words of searches after which a tool was called.
#[derive(Debug, Serialize)]
pub struct Learned {
    pub server: String,
    /// The server's own name for it.
    pub tool: String,
    /// The words without their endings, with their weights.
    pub words: BTreeMap<String, f32>,
}

impl Memory {
    fn of(memory: SearchMemory, server: Option<&str>) -> Self {
        let all: Vec<Remembered> = memory.into();
        let wanted = all.into_iter().filter(|tool| server.is_none_or(|server| tool.server == server));
        let learned = |Remembered { server, tool, words, .. }| Learned { server, tool, words };
        Self { tools: wanted.map(learned).collect() }
    }
}

#[derive(Debug, Serialize)]
pub struct Row {
    /// The name that hosts use.
    pub tool: String,
    pub server: String,
    /// The score of the local engine; `None` if only the model found the tool.
    pub score: Option<f32>,
    pub signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

pub async fn search(context: &Context, args: &SearchArgs) -> Result<ExitCode, CommandError> {
    let memory = MemoryFile::of(&context.environment.project, context.environment.cache_folder.as_deref());
    if args.learned {
        let learned = Memory::of(memory.read(), args.server.as_deref());
        context.output.show(&learned);
        if !learned.tools.is_empty() {
            context.output.note("words have no endings; a call counts 1, and half after 30 days".to_owned());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (query, limit) = (args.query.join(" "), args.limit.into());
    let settings = context.settings_in_passing()?;
    let server = args.server.as_deref().map(|name| find(&settings, name)).transpose()?;
    let app = App::assemble(&settings, context.environment.clone());
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;

    let unknown = unknown(&settings, &snapshot);
    if snapshot.names.is_empty() {
        return Err(CommandError::failed("no tools are known yet")
            .hint("`plugbay list` starts every server and caches its tools"));
    }
    let wanted = ranking::RankRequest { query: query.clone(), server, limit };
    let names = ask_model(context, &settings, &wanted, &snapshot).await;
    let memory = if settings.search.remember { memory.read() } else { SearchMemory::default() };
    let results = find_in(&snapshot, &wanted, &names, &memory, args.explain);
    let found = !results.hits.is_empty();
    let as_json = context.output.is_json();
    if found || as_json {
        context.output.show(&results);
    }
    if results.poor {
        context.output.note("no tool fits this well".to_owned());
    }
    if !unknown.is_empty() {
        let these = unknown.join(", ");
        context.output.note(format!("the cache has no tools of {these}; `plugbay list` starts every server"));
    }
    if !found && !as_json {
        return Err(CommandError::failed(format!("no tool fits {query:?}")).hint(
            "describe what the tool should do with a verb and an object, in English: \"create issue\"",
        ));
    }
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tools that the chosen model names; none if it does not answer. A host's model cannot be asked here.
async fn ask_model(
    context: &Context,
    settings: &Settings,
    request: &ranking::RankRequest,
    snapshot: &Snapshot,
) -> Vec<String> {
    let Some(Choice { model: Chosen::Model(model), deadline }) = choice(settings) else { return Vec::new() };
    let answer = ranking::ask(&*model, deadline, request, snapshot, embeddings::table).await;
    answer.unwrap_or_else(|trouble| {
        context.output.note(format!("ranked without the model: {trouble}"));
        Vec::new()
    })
}

fn find_in(
    snapshot: &Snapshot,
    request: &ranking::RankRequest,
    names: &[String],
    memory: &SearchMemory,
    explain: bool,
) -> Results {
    let tool_index = &snapshot.tool_index;
    let (query, server) = (&request.query, request.server.as_ref());
    let search =
        |limit| tool_index.search_recalling(query, limit, server, (memory, today()), embeddings::table);
    let local = search(request.limit);
    let Ranked { hits, clear, poor } = ranking::merge(request, snapshot, names, &local);
    let row = |(found, score): &(&Found, Option<f32>)| Row {
        tool: found.exposed.clone(),
        server: found.target.server.to_string(),
        score: *score,
        signature: Signature::of(&found.exposed, &found.tool).to_string(),
        explanation: explain
            .then(|| tool_index.explain(&request.query, &found.exposed, embeddings::table))
            .flatten(),
    };
    let further = if poor { search(request.limit + reply::FURTHER) } else { Vec::new() };
    let further = further.iter().skip(request.limit).map(|(found, _)| found.exposed.clone()).collect();
    Results { clear, poor, hits: hits.iter().map(row).collect(), further }
}

/// Servers for which the cache has no tools.
fn unknown(settings: &Settings, snapshot: &Snapshot) -> Vec<String> {
    let names = settings.servers.iter().map(|server| &server.name);
    names.filter(|name| snapshot.catalog.get(name).is_none()).map(ToString::to_string).collect()
}
