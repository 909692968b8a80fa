//! Agent runs whose hosts are away. A modern host is asked by the answer to its request, and comes back with its next
//! one; until then nothing goes on, and what is let go is taken back.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use plugbay_core::exchange::Ticket;
use rustc_hash::FxHashMap;
use tokio::time::{Instant, sleep_until};

use super::{
    Course,
    host::{Place, Question, Returned},
};
use crate::{
    context::RequestContext,
    parked::{self, Back, PATIENCE},
    respond::{self, Refusal},
    seal::Subject,
};

/// So many agent runs may wait for their hosts.
const LIMIT: usize = 256;

/// Shared by all sessions: over HTTP a host comes back in another one.
#[derive(Default)]
pub(super) struct Away {
    // A std mutex: held for look-ups, never across an await.
    paused: Mutex<FxHashMap<Ticket, Paused>>,
}

pub(super) struct Paused {
    pub(super) question: Question,
    pub(super) course: Course,
}

impl Away {
    pub(super) fn is_full(&self) -> bool {
        self.lock().len() >= LIMIT
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<Ticket, Paused>> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers the host's request with the question, and keeps the agent run for its next one.
pub(super) fn leave(context: RequestContext<'_>, paused: Paused) {
    let RequestContext { session, request, .. } = context;
    let gateway = session.gateway().clone();
    let Some(seal) = &gateway.parking.seal else { return };
    let (ticket, until) = (gateway.tickets.next(), Instant::now() + PATIENCE);
    let state = seal.close(ticket, &session.owner(), &Subject::of(request), until);
    let Question { method, params, .. } = &paused.question;
    let asked = respond::input_request(ticket, method, params);
    gateway.agents.away.lock().insert(ticket, paused);
    context.answer(respond::input_required(request.id(), &asked, &state));
    tokio::spawn(async move {
        sleep_until(until).await;
        let forgotten = gateway.agents.away.lock().remove(&ticket);
        drop(forgotten);
    });
}

/// Whether the request is one by which a host comes back. Its agent run goes on, or asks again if there is no answer.
pub(super) fn come_back(context: RequestContext<'_>) -> Result<bool, Refusal> {
    let RequestContext { session, request, .. } = context;
    let Some(state) = &request.state else { return Ok(false) };
    let state = request.text(Some(state)).unwrap_or_default();
    let (gateway, back) = (session.gateway(), Back::of(request, &state));
    let ticket = gateway.parking.recognise(session, &back)?;
    let answer = back.answers()?.into_iter().find(|(number, _)| *number == ticket);
    let paused = gateway.agents.away.lock().remove(&ticket);
    let paused = paused.ok_or_else(parked::ended)?;
    let Some((_, answer)) = answer else {
        leave(context, paused);
        return Ok(true);
    };
    let _ = paused.question.answer.send(Returned { place: Place::of(context), answer });
    paused.course.follow(context);
    Ok(true)
}

impl fmt::Debug for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Away({})", self.lock().len())
    }
}
