//! `search_tools`: what the local engine finds, in the order of a model where one is chosen and answers in
//! time.

use std::{fmt::Write, sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    model::Model,
    name::ServerName,
    search::{reply, reply::Detail},
    surface::{Found, Snapshot, activate::server_meant},
};

use super::{given::Arguments, shown};
use crate::{
    dispatch,
    message::Request,
    outbox::Outbox,
    ranking::{self, Choice, Chosen, Ranked, Whose, Wish},
    respond,
    sampling::HostModel,
    session::Session,
};

const MOST_HITS: usize = 50;
/// About what a reply in detail may cost, in tokens.
const DETAILS: usize = 4000;

pub(super) fn serve(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request, era: Era) {
    let arguments = Arguments::of(request);
    let snapshot = session.snapshot();
    let tell = |text: &str, failed| sink.answer(respond::tool_text(request.id(), era, text, failed));
    let server = match arguments.text("server").map(|server| of_server(&server, &snapshot)).transpose() {
        Ok(server) => server,
        Err(reply) => return tell(&reply, true),
    };
    let limit = arguments.whole("limit").map(|limit| limit.clamp(1, MOST_HITS));
    let detail = if arguments.is_true("detail") { Detail::Full } else { Detail::Brief };
    let query = match (arguments.text("query"), &server) {
        (Some(query), _) => query,
        (None, Some(server)) => {
            return tell(&all_of(server, &snapshot, limit.unwrap_or(MOST_HITS), detail), false);
        }
        (None, None) => return tell("\"query\" is missing: say what the tool should do", true),
    };
    let search = Search {
        session: Arc::clone(session),
        sink: Arc::clone(sink),
        id: Bytes::copy_from_slice(request.id()),
        era,
        wish: Wish { query, server, limit: limit.unwrap_or(snapshot.layout.settings.search_limit) },
        snapshot,
        detail,
        owner: None,
    };
    let tool_index = Arc::clone(&search.snapshot.tool_index);
    dispatch::when_searchable(session, sink, request, &tool_index, |_, _, request| search.begin(request));
}

/// The server that is meant, if it has told what it has.
fn of_server(wanted: &str, snapshot: &Snapshot) -> Result<ServerName, String> {
    let server = server_meant(wanted, snapshot).map_err(|unclear| format!("`server`: {unclear}"))?;
    match (snapshot.catalog.get(&server), snapshot.catalog.failure(&server)) {
        (Some(_), _) => Ok(server),
        (None, Some(failure)) => Err(format!("{server} does not work: {failure}")),
        (None, None) => Err(format!("{server} has not told yet what it has; try again")),
    }
}

/// What a server has, as far as it fits into one reply.
fn all_of(server: &ServerName, snapshot: &Snapshot, limit: usize, detail: Detail) -> String {
    let all: Vec<&Found> = snapshot.names.of(server).collect();
    if all.is_empty() {
        return format!("{server} has no tools");
    }
    let mut reply = lines(snapshot, &all[..all.len().min(limit)], false, detail);
    if let more @ 1.. = all.len().saturating_sub(limit) {
        let _ = write!(reply, "\nand {more} more: say in \"query\" what the tool should do");
    }
    reply
}

struct Search {
    session: Arc<Session>,
    sink: Arc<Outbox>,
    /// Of the request, as raw JSON.
    id: Bytes,
    era: Era,
    snapshot: Snapshot,
    wish: Wish,
    detail: Detail,
    /// Whose model ranks.
    owner: Whose,
}

impl Search {
    fn begin(self, request: &Request) {
        match self.session.gateway().ranker.choice() {
            None => self.answer(&[]),
            Some(choice) => self.with_help(choice, request),
        }
    }

    /// Asks the chosen model, unless it has answered this before, or cannot be asked now.
    fn with_help(mut self, Choice { model, deadline }: Choice, request: &Request) {
        let model: Arc<dyn Model> = match model {
            Chosen::Model(model) => model,
            Chosen::Host if self.era == Era::Legacy && self.session.lock().client_capabilities.sampling => {
                self.owner = Some(self.session.owner().0);
                Arc::new(HostModel { session: Arc::clone(&self.session), sink: Arc::clone(&self.sink) })
            }
            Chosen::Host => return self.answer(&[]),
        };
        let ranker = &self.session.gateway().ranker;
        match ranker.remembered(&self.wish, self.owner, &self.snapshot.tool_index) {
            Some(names) => self.answer(&names),
            None if ranker.is_resting(self.owner) => self.answer(&[]),
            None => self.ask(model, deadline, request),
        }
    }

    /// The session goes on meanwhile. A search that is taken back ends the server request.
    fn ask(self, model: Arc<dyn Model>, deadline: Duration, request: &Request) {
        let (session, sink) = (Arc::clone(&self.session), Arc::clone(&self.sink));
        let asking = async move {
            let gateway = self.session.gateway();
            let answer = ranking::ask(&*model, deadline, &self.wish, &self.snapshot, gateway.table).await;
            let names = gateway.ranker.learn(&self.wish, self.owner, &self.snapshot.tool_index, answer);
            (self, names)
        };
        dispatch::later(&session, &sink, request, asking, |_, _, _, (search, names)| {
            search.answer(names.as_deref().unwrap_or_default());
        });
    }

    /// `names` are the model's.
    fn answer(&self, names: &[String]) {
        let text = found(&self.session, &self.snapshot, &self.wish, names, self.detail);
        self.sink.answer(respond::tool_text(&self.id, self.era, &text, false));
    }
}

/// What there is for a query without asking anybody.
pub(super) fn found_locally(session: &Session, query: String) -> String {
    let snapshot = session.snapshot();
    let wish = Wish { query, server: None, limit: snapshot.layout.settings.search_limit };
    found(session, &snapshot, &wish, &[], Detail::Brief)
}

fn found(session: &Session, snapshot: &Snapshot, wish: &Wish, names: &[String], detail: Detail) -> String {
    let table = session.gateway().table;
    let local = snapshot.tool_index.search(&wish.query, wish.limit, wish.server.as_ref(), table);
    let Ranked { hits, clear } = ranking::merge(wish, snapshot, names, &local);
    let hits: Vec<&Found> = hits.into_iter().map(|(found, _)| found).collect();
    if hits.is_empty() { nothing(snapshot, wish) } else { lines(snapshot, &hits, clear, detail) }
}

fn nothing(snapshot: &Snapshot, wish: &Wish) -> String {
    let servers: Vec<&str> = match &wish.server {
        Some(server) => vec![server.as_str()],
        None => snapshot.catalog.iter().map(|(server, _)| server.as_str()).collect(),
    };
    reply::nothing(&wish.query, &servers)
}

/// What the host's model reads of what was found.
fn lines(snapshot: &Snapshot, hits: &[&Found], clear: bool, detail: Detail) -> String {
    let hits: Vec<reply::Found<'_>> = hits.iter().map(|found| shown(snapshot, found)).collect();
    let budget = if detail == Detail::Full { DETAILS } else { reply::BUDGET };
    reply::found(&hits, clear, detail, budget)
}
