//! `search_tools`: what the local engine finds, in the order of a model where one is chosen and answers in
//! time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    model::Model,
    search::{reply, reply::Detail},
    surface::{Found, Snapshot},
};

use super::{arguments::Arguments, shown};
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
    let (query, server) = (arguments.text("query"), arguments.text("server"));
    let limit = arguments.whole("limit").map(|limit| limit.clamp(1, MOST_HITS));
    let tell = |text: &str, failed| sink.answer(respond::tool_text(request.id(), era, text, failed));
    let (gateway, snapshot) = (session.gateway(), session.snapshot());
    let detail = if arguments.is_true("detail") { Detail::Full } else { Detail::Brief };
    let query = match (query, &server) {
        (Some(query), _) => query,
        (None, Some(server)) => {
            let own = snapshot.names.iter().filter(|found| found.target.server.as_str() == server);
            let all: Vec<&Found> = own.take(limit.unwrap_or(MOST_HITS)).collect();
            return tell(&told(&snapshot, "", &all, false, detail), false);
        }
        (None, None) => return tell("\"query\" is missing: say what the tool should do", true),
    };
    let wish = Wish { query, server, limit: limit.unwrap_or(gateway.hits) };
    let search = Search {
        session: Arc::clone(session),
        sink: Arc::clone(sink),
        id: Bytes::copy_from_slice(request.id()),
        era,
        snapshot,
        wish,
        detail,
        owner: None,
    };
    match gateway.ranker.choice() {
        None => search.answer(&[]),
        Some(choice) => search.with_help(choice, request),
    }
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
    /// Asks the chosen model, unless it has answered this before, or cannot be asked now.
    fn with_help(mut self, Choice { model, deadline }: Choice, request: &Request) {
        if !self.is_about_something() {
            return self.answer(&[]);
        }
        let model: Arc<dyn Model> = match model {
            Chosen::Model(model) => model,
            Chosen::Host if self.era == Era::Legacy && self.session.lock().abilities.sampling => {
                self.owner = Some(self.session.owner().0);
                Arc::new(HostModel { session: Arc::clone(&self.session), sink: Arc::clone(&self.sink) })
            }
            Chosen::Host => return self.answer(&[]),
        };
        let ranker = &self.session.gateway().ranker;
        match ranker.remembered(&self.wish, self.owner, &self.snapshot.finder) {
            Some(names) => self.answer(&names),
            None if ranker.is_resting(self.owner) => self.answer(&[]),
            None => self.ask(model, deadline, request),
        }
    }

    /// It names no server, or one that there is.
    fn is_about_something(&self) -> bool {
        let server = self.wish.server.as_deref();
        server.is_none_or(|server| self.snapshot.catalog.iter().any(|(name, _)| name.as_str() == server))
    }

    /// The session goes on meanwhile. A search that is taken back ends the question.
    fn ask(self, model: Arc<dyn Model>, deadline: Duration, request: &Request) {
        let (session, sink) = (Arc::clone(&self.session), Arc::clone(&self.sink));
        let asking = async move {
            let gateway = self.session.gateway();
            let answer = ranking::ask(&*model, deadline, &self.wish, &self.snapshot, gateway.table).await;
            let names = gateway.ranker.learn(&self.wish, self.owner, &self.snapshot.finder, answer);
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
    let wish = Wish { query, server: None, limit: session.gateway().hits };
    found(session, &session.snapshot(), &wish, &[], Detail::Brief)
}

fn found(session: &Session, snapshot: &Snapshot, wish: &Wish, names: &[String], detail: Detail) -> String {
    let table = session.gateway().table;
    let local = snapshot.finder.search(&wish.query, wish.limit, wish.server.as_deref(), table);
    let Ranked { hits, clear } = ranking::merge(wish, snapshot, names, &local);
    let hits: Vec<&Found> = hits.into_iter().map(|(found, _)| found).collect();
    told(snapshot, &wish.query, &hits, clear, detail)
}

/// What the host's model reads of it.
fn told(snapshot: &Snapshot, query: &str, hits: &[&Found], clear: bool, detail: Detail) -> String {
    if hits.is_empty() {
        let servers: Vec<&str> = snapshot.catalog.iter().map(|(server, _)| server.as_str()).collect();
        return reply::nothing(query, &servers);
    }
    let hits: Vec<reply::Found<'_>> = hits.iter().map(|found| shown(snapshot, found)).collect();
    let budget = if detail == Detail::Full { DETAILS } else { reply::BUDGET };
    reply::found(&hits, clear, detail, budget)
}
