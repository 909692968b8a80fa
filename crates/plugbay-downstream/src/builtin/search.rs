//! `search_tools`: hits of the local engine, ranked by a model if one is configured and answers in time.

use std::{fmt::Write, sync::Arc, time::Duration};

use plugbay_core::{
    era::Era,
    model::Model,
    name::ServerName,
    search::{reply, reply::Detail},
    size_limit,
    surface::{BuiltinTool, Found, Skill, Snapshot, activate::server_meant, beside_search},
};

use super::{call_arguments::Arguments, shown};
use crate::{
    context::RequestContext,
    ranking::{self, Choice, Chosen, ModelOwner, RankRequest, Ranked},
    remembered_searches::RememberedSearches,
    sampling::HostModel,
    session::Session,
};

const MOST_HITS: usize = 50;
/// About how many tokens a detailed reply may cost.
const DETAILS: usize = 4000;

pub(super) fn serve(context: RequestContext<'_>) {
    let session = context.session;
    let arguments = Arguments::of(context.request);
    let snapshot = session.snapshot();
    let text = |key, limit| arguments.text_within(key, limit).map_err(|too_long| too_long.to_string());
    let server = match arguments.wrong_text("server", "the name of a server") {
        Some(wrong) => Err(wrong),
        None => text("server", size_limit::NAME),
    };
    let server =
        server.and_then(|server| server.map(|server| resolve_server(&server, &snapshot)).transpose());
    let read =
        || Ok((server?, text("query", size_limit::QUERY)?, how_many(&arguments)?, detail(&arguments)?));
    let (server, query, limit, detail) = match read() {
        Ok(read) => read,
        Err(reply) => return context.text(&Err(reply)),
    };
    let query = match (query, server.clone()) {
        (Some(query), _) => query,
        (None, Some(server)) => {
            let (is_large, limit) = (snapshot.tool_index.is_large(), limit.unwrap_or(MOST_HITS));
            // One of them may be what was searched for.
            let unknown = arguments.unknown(BuiltinTool::Search, &[]);
            return context.text_made(is_large, move |_| {
                let all = all_of(&server, &snapshot, limit, detail);
                Ok(if unknown.is_empty() { all } else { format!("{all}\n{unknown}") })
            });
        }
        (None, None) => {
            let missing = arguments.missing("query", "say what the tool should do");
            return context.text(&Err(arguments.with_unknown(&missing, BuiltinTool::Search, &[])));
        }
    };
    let searched = snapshot.clone();
    let search = Search {
        request: RankRequest { query, server, limit: limit.unwrap_or(snapshot.layout.settings.search_limit) },
        snapshot,
        detail,
        owner: None,
    };
    context.when_searchable(&searched, |context| search.begin(context));
}

/// How many tools the reply shows at most.
fn how_many(arguments: &Arguments<'_>) -> Result<Option<usize>, String> {
    match arguments.optional_whole("limit")? {
        Some(0) => Err("\"limit\" must be a whole number above 0".to_owned()),
        limit => Ok(limit.map(|limit| limit.min(MOST_HITS))),
    }
}

fn detail(arguments: &Arguments<'_>) -> Result<Detail, String> {
    Ok(if arguments.optional_flag("detail")? { Detail::Full } else { Detail::Brief })
}

/// The server of this name, if it has listed its tools.
fn resolve_server(wanted: &str, snapshot: &Snapshot) -> Result<ServerName, String> {
    let server = server_meant(wanted, snapshot).map_err(|unclear| format!("`server`: {unclear}"))?;
    match (snapshot.catalog.get(&server), snapshot.catalog.failure(&server)) {
        (Some(_), _) => Ok(server),
        (None, Some(failure)) => Err(format!("{server} {}", failure.of_server())),
        (None, None) => Err(format!("{server} has not listed its tools yet; try again")),
    }
}

/// The tools of a server, as far as they fit into one reply.
fn all_of(server: &ServerName, snapshot: &Snapshot, limit: usize, detail: Detail) -> String {
    let all: Vec<&Found> = snapshot.names.for_model_of(server).collect();
    let skills = snapshot.resources.skills.iter().filter(|skill| skill.server == *server);
    let skills = skill_lines(skills.take(limit)).join("\n");
    if all.is_empty() {
        return format!("{server} has no tools\n{skills}").trim_end().to_owned();
    }
    let mut reply = lines(snapshot, &all[..all.len().min(limit)], false, detail);
    if !skills.is_empty() {
        reply = format!("{reply}\n{skills}");
    }
    if let more @ 1.. = all.len().saturating_sub(limit) {
        let _ = write!(reply, "\nand {more} more: say in \"query\" what the tool should do");
    }
    reply
}

struct Search {
    snapshot: Snapshot,
    request: RankRequest,
    detail: Detail,
    /// The owner of the ranking model.
    owner: ModelOwner,
}

impl Search {
    fn begin(self, context: RequestContext<'_>) {
        match context.gateway().ranker.choice() {
            None => self.answer(context, Arc::default()),
            Some(choice) => self.with_model(context, choice),
        }
    }

    /// Asks the chosen model, unless its answer is cached or it cannot be asked now.
    fn with_model(mut self, context: RequestContext<'_>, Choice { model, deadline }: Choice) {
        let RequestContext { session, sink, era, .. } = context;
        let model: Arc<dyn Model> = match model {
            Chosen::Model(model) => model,
            Chosen::Host if era == Era::Legacy && session.lock().client_capabilities.sampling => {
                self.owner = Some(session.owner().0);
                Arc::new(HostModel { session: Arc::clone(session), sink: Arc::clone(sink) })
            }
            Chosen::Host => return self.answer(context, Arc::default()),
        };
        let ranker = &session.gateway().ranker;
        match ranker.cached(&self.request, self.owner, &self.snapshot.tool_index) {
            Some(names) => self.answer(context, names),
            None if ranker.is_backing_off(self.owner) => self.answer(context, Arc::default()),
            None => self.ask(context, model, deadline),
        }
    }

    /// Asks the model. The session serves other requests meanwhile. Cancelling the search cancels the model
    /// request.
    fn ask(self, context: RequestContext<'_>, model: Arc<dyn Model>, deadline: Duration) {
        let session = Arc::clone(context.session);
        let asking = async move {
            let gateway = session.gateway();
            let answer = ranking::ask(&*model, deadline, &self.request, &self.snapshot, gateway.table).await;
            let names = gateway.ranker.record(&self.request, self.owner, &self.snapshot.tool_index, answer);
            (self, names)
        };
        context.later(asking, |context, (search, names)| {
            search.answer(context, names.unwrap_or_default());
        });
    }

    /// Answers with the names that the model chose, and the local hits.
    fn answer(self, context: RequestContext<'_>, names: Arc<[String]>) {
        context.text_made(self.snapshot.tool_index.is_large(), move |session| {
            Ok(found(session, &self.snapshot, &self.request, &names, self.detail))
        });
    }
}

/// The hits of the local engine alone.
pub(super) fn found_locally(session: &Session, query: String) -> String {
    let snapshot = session.snapshot();
    let request = RankRequest { query, server: None, limit: snapshot.layout.settings.search_limit };
    found(session, &snapshot, &request, &[], Detail::Brief)
}

fn found(
    session: &Session,
    snapshot: &Snapshot,
    request: &RankRequest,
    names: &[String],
    detail: Detail,
) -> String {
    let table = session.gateway().table;
    let searches = session.gateway().searches();
    let (memory, day) = searches.map(RememberedSearches::recall).unwrap_or_default();
    let (query, server) = (&request.query, request.server.as_ref());
    let search = |limit| snapshot.tool_index.search_recalling(query, limit, server, (&memory, day), table);
    let local = search(request.limit);
    let Ranked { hits, clear, poor } = ranking::merge(request, snapshot, names, &local);
    let hits: Vec<&Found> = hits.into_iter().map(|(found, _)| found).collect();
    let further: Vec<&Found> = if poor {
        let hits = search(request.limit + reply::FURTHER).into_iter().skip(request.limit);
        hits.map(|(found, _)| found).collect()
    } else {
        Vec::new()
    };
    if let Some(searches) = searches {
        let shown = hits.iter().chain(&further).copied();
        searches.searched(session.gateway().principal.session, query, shown);
    }
    let skills = snapshot.resources.skills.found(&request.query, request.server.as_ref(), table);
    let skills = skill_lines(skills.into_iter());
    let reply = if poor {
        let further = reply::further(further.iter().map(|found| found.exposed.as_str()));
        format!("{}\n{}{further}", reply::NONE_FITS, lines(snapshot, &hits, false, detail))
    } else if !hits.is_empty() {
        lines(snapshot, &hits, clear, detail)
    } else if skills.is_empty() {
        nothing(snapshot, request)
    } else {
        "No tool found.".to_owned()
    };
    let is_vain = (poor || hits.is_empty()) && request.server.is_none();
    let servers = hits.iter().map(|found| &found.target.server).collect();
    let notes = beside_search(snapshot, &request.query, is_vain, &servers);
    [vec![reply], skills, notes].concat().join("\n")
}

fn skill_lines<'a>(skills: impl Iterator<Item = &'a Skill>) -> Vec<String> {
    skills.map(|skill| skill.line(BuiltinTool::Describe.name())).collect()
}

fn nothing(snapshot: &Snapshot, request: &RankRequest) -> String {
    if let Some(server) = &request.server {
        return format!("{server} has no tool for that. Without `server`, all servers are searched.");
    }
    let servers: Vec<&str> = snapshot.catalog.iter().map(|(server, _)| server.as_str()).collect();
    reply::nothing(&request.query, &servers)
}

/// The reply that the host's model reads.
fn lines(snapshot: &Snapshot, hits: &[&Found], clear: bool, detail: Detail) -> String {
    let hits: Vec<reply::Found<'_>> = hits.iter().map(|found| shown(snapshot, found)).collect();
    let budget = if detail == Detail::Full { DETAILS } else { reply::BUDGET };
    reply::found(&hits, clear, detail, budget)
}
