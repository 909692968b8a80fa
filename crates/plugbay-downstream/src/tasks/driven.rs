//! Tasks that we look after, because the host of the call cannot: to it they are one long call.
//!
//! A legacy server's tool may insist on a task while its host knows nothing of such things: then the call
//! asks for one, and `tasks/result` waits for its end. A modern server may insist on a client that takes
//! tasks while its host is a legacy one: then it is told that we do, and asked for the task's state as often
//! as it likes. What it wants to know becomes server requests to the host, as in any round.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    era::{Era, InputRequired},
    exchange::{Answer, Call, Ticket},
    failure::{CallError, Limit},
    task::{self, Status, TaskRole},
    wire::{Draft, Head, Hole, Kind, Members, Span},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Role, quoted};
use crate::{
    respond::Refusal,
    rounds::{Next, raw_answers},
    session::{HostCall, Recourse, Session},
};

/// How often a modern server is asked, unless it says something else within reason.
const INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(60);

/// One such task.
#[derive(Debug)]
pub(crate) struct Driven {
    server: Era,
    /// The server's own id, once the task has begun.
    id: Option<Arc<str>>,
    /// Keys of what a modern server has been told; it may ask again before it has noticed.
    told: Vec<String>,
    /// When the host has waited long enough, and how long that was.
    deadline: Option<(Instant, Duration)>,
}

/// What an answer means to a call that has, or may yet have, such a task.
enum Step {
    /// It is for the host.
    Done(Answer),
    /// The server works for clients that take tasks, and for no others.
    Insist,
    /// A legacy task has begun: wait for its end.
    Await,
    /// Ask how a modern task is, after a while.
    Poll(Duration),
    /// Its server wants to know something.
    Ask(Bytes, InputRequired),
}

impl Driven {
    pub(crate) fn legacy() -> Self {
        Self { server: Era::Legacy, id: None, told: Vec::new(), deadline: None }
    }

    fn modern(timeout: Option<Duration>) -> Self {
        let deadline = timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        Self { server: Era::Modern, deadline, ..Self::legacy() }
    }

    /// What the next request has to do with it.
    pub(crate) fn task_role(&self) -> TaskRole {
        self.id.as_ref().map_or(TaskRole::Begin, |id| TaskRole::About(Arc::clone(id)))
    }

    /// The member that asks a legacy server for a task; others stand behind it.
    pub(crate) fn demand(&self) -> Option<Bytes> {
        (self.server == Era::Legacy).then_some(Bytes::from_static(br#""task":{},"#))
    }

    pub(crate) fn has_told(&self, key: &str) -> bool {
        self.told.iter().any(|told| told == key)
    }

    /// The request by which a task in progress gets its answers; without one the call itself brings them.
    pub(crate) fn update(&mut self, answers: &[(String, Bytes)]) -> Option<Next> {
        let id = self.id.clone()?;
        self.told.extend(answers.iter().map(|(key, _)| key.clone()));
        let members = format!(r#","inputResponses":{}"#, raw_answers(answers));
        Some(next("tasks/update", &id, &members, TaskRole::About(Arc::clone(&id))))
    }

    fn step(&mut self, answer: Answer) -> Step {
        let Answer::Response { message, head, .. } = &answer else { return Step::Done(answer) };
        if self.id.is_none() {
            let Some(task) = task::Task::begun(message, head) else { return Step::Done(answer) };
            self.id = Some(task.id.into());
            return match self.server {
                Era::Legacy => Step::Await,
                Era::Modern => Step::Poll(pause(task.interval)),
            };
        }
        if self.server == Era::Legacy || !matches!(head.kind, Kind::Result { .. }) {
            return Step::Done(answer);
        }
        // Without a task in it, it is the thanks for what the server was told.
        let Some(task) = task::Task::told(message, head) else { return Step::Poll(SHORTEST) };
        match task.status {
            Some(Status::Completed) => Step::Done(unfolded(message, "result", task.result.as_ref())),
            Some(Status::Failed) => Step::Done(unfolded(message, "error", task.error.as_ref())),
            Some(Status::Cancelled) => Step::Done(ended("the task has been cancelled by its server")),
            Some(Status::InputRequired) if self.is_news(message, task.requests.as_ref()) => {
                Step::Ask(message.clone(), InputRequired { requests: task.requests, state: None })
            }
            _ => Step::Poll(pause(task.interval)),
        }
    }

    fn is_news(&self, message: &[u8], requests: Option<&Span>) -> bool {
        let asked = requests.into_iter().flat_map(|requests| Members::of(message, requests)).flatten();
        asked.into_iter().any(|member| !self.has_told(&member.key))
    }
}

impl HostCall {
    fn step(&mut self, answer: Answer) -> Step {
        match (&mut self.role, &self.recourse, &answer) {
            (Role::Driven(driven), ..) => driven.step(answer),
            (Role::None, Recourse::Again(again), Answer::Response { message, head, era: Era::Modern })
                if task::is_demanded(message, head) =>
            {
                self.role = Role::Driven(Box::new(Driven::modern(again.timeout)));
                Step::Insist
            }
            _ => Step::Done(answer),
        }
    }

    fn task(&self) -> Option<(&Driven, &Arc<str>)> {
        let Role::Driven(driven) = &self.role else { return None };
        Some((driven, driven.id.as_ref()?))
    }
}

impl Session {
    /// Gives back an answer that is for the host; one that is a step of its task leads to the next.
    pub(crate) fn drive(&self, ticket: Ticket, answer: Answer) -> Option<Answer> {
        let step = match self.lock().calls.get_mut(&ticket) {
            Some(call) => call.step(answer),
            None => return Some(answer),
        };
        let session = self.me()?;
        match step {
            Step::Done(answer) => {
                if let Answer::Failed(CallError::TimedOut { .. }) = answer {
                    self.end_task_of(ticket);
                }
                return Some(answer);
            }
            Step::Insist => session.call_again(ticket),
            Step::Await => session.go_on(ticket, |call| {
                let timeout = call.timeout;
                let (_, id) = call.task()?;
                Some(Next { timeout, ..next("tasks/result", id, "", TaskRole::Await(Arc::clone(id))) })
            }),
            Step::Poll(pause) => session.poll_later(ticket, pause),
            Step::Ask(message, required) => session.start_round(ticket, &message, &required),
        }
        None
    }

    fn poll_later(self: &Arc<Self>, ticket: Ticket, pause: Duration) {
        let session = Arc::clone(self);
        tokio::spawn(async move {
            sleep(pause).await;
            session.poll(ticket);
        });
    }

    fn poll(self: &Arc<Self>, ticket: Ticket) {
        let late = self.lock().calls.get(&ticket).and_then(|call| {
            let (deadline, after) = call.task()?.0.deadline?;
            let (server, limit) = (call.server.clone(), Limit::Call);
            (deadline <= Instant::now()).then_some(CallError::TimedOut { server, after, limit })
        });
        match late {
            Some(error) => self.fail(ticket, &Refusal::Call(error)),
            None => self.go_on(ticket, |call| {
                let (driven, id) = call.task()?;
                Some(next("tasks/get", id, "", driven.task_role()))
            }),
        }
    }

    fn end_task_of(&self, ticket: Ticket) {
        let state = self.lock();
        let Some(call) = state.calls.get(&ticket) else { return };
        let (server, task) = (call.server.clone(), call.task().map(|(_, id)| Arc::clone(id)));
        drop(state);
        if let Some(id) = task {
            self.cancel_task(&server, &id);
        }
    }

    /// Nobody waits for the call any more, and nobody else knows of its task.
    pub(crate) fn end_task(&self, call: &HostCall) {
        if let Some((_, id)) = call.task() {
            self.cancel_task(&call.server, id);
        }
    }

    fn cancel_task(&self, server: &plugbay_core::name::ServerName, id: &Arc<str>) {
        let Some(caller) = self.me() else { return };
        let Next { request, params, task_role, timeout } =
            next("tasks/cancel", id, "", TaskRole::About(Arc::clone(id)));
        // The ticket is nobody's, and so is the answer.
        let ticket = self.gateway().tickets.next();
        let call =
            Call { ticket, caller, request, era: Era::Legacy, params: Some(params), timeout, task_role };
        self.gateway().servers.forward(server, call);
    }
}

/// A request of ours about a task. A modern server is told the rest as for every legacy host.
fn next(method: &str, id: &str, members: &str, task_role: TaskRole) -> Next {
    let id = String::from_utf8_lossy(&quoted(id)).into_owned();
    let before = r#"{"jsonrpc":"2.0","id":"#;
    let middle = format!(r#","method":"{method}","params":"#);
    let params = format!(r#"{{"taskId":{id}{members}}}"#);
    let start = before.len() + middle.len();
    let message = Bytes::from(format!("{before}{middle}{params}}}"));
    let request = Draft::new(message).with(before.len()..before.len(), Hole::Ticket);
    Next { request, params: start..start + params.len(), task_role, timeout: None }
}

/// What a task has ended with, as the answer that the call itself would have had.
fn unfolded(message: &Bytes, key: &str, value: Option<&Span>) -> Answer {
    let told = value.and_then(|value| response(key, &message[value.clone()]));
    told.unwrap_or_else(|| ended("the task has ended, and its server does not say how"))
}

fn ended(why: &str) -> Answer {
    let error = json!({ "code": -32000, "message": why }).to_string();
    response("error", error.as_bytes()).expect("it is one")
}

/// `None`: it is none.
fn response(key: &str, value: &[u8]) -> Option<Answer> {
    let message =
        Bytes::from([br#"{"jsonrpc":"2.0","id":0,""#, key.as_bytes(), b"\":", value, b"}"].concat());
    let head = Head::read(&message).ok()?;
    Some(Answer::Response { message, head, era: Era::Modern })
}

fn pause(interval: Option<Duration>) -> Duration {
    interval.map_or(INTERVAL, |interval| interval.clamp(SHORTEST, LONGEST))
}
