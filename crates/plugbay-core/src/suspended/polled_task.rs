//! A task that plugbay looks after because the call's host cannot: to the host it is one long call.
//!
//! A legacy server's tool may require a task while the host knows none: the call asks for a task, and
//! `tasks/result` waits for its end. A modern server may require a client that supports tasks while the host
//! is a legacy one: plugbay tells the server that it does, and polls it with `tasks/get`. Requests of the
//! server meanwhile are a multi-round trip.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{NextRequest, repeat::by_key};
use crate::{
    era::{Era, InputRequired},
    exchange::Answer,
    task::{self, Status, TaskRole},
    wire::{Head, Kind, Members, Span, write},
};

/// How often a modern server is polled, unless it names an interval; that one is kept within these limits.
const INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct PolledTask {
    server: Era,
    /// The server's own id, once the task has begun.
    id: Option<Arc<str>>,
    /// Keys of the answers that were sent to a modern server; it may ask again before it has noticed them.
    sent: Vec<String>,
    /// The deadline of the whole task, and the timeout that it came from.
    deadline: Option<(Instant, Duration)>,
    /// Replaces the server's own call timeout for a legacy task's result.
    timeout: Option<Duration>,
}

/// What an answer means to a call that has, or may yet have, such a task.
#[derive(Debug)]
pub(super) enum Step {
    /// It is for the host.
    Done(Answer),
    /// The server serves only clients that accept tasks: repeat the call as such a client.
    RepeatAsTask,
    /// A legacy task has begun: wait for its result.
    Await(NextRequest),
    /// Ask a modern server for the state of its task, after a while.
    Poll(Duration),
    /// The server needs input for the task.
    Ask(Bytes, InputRequired),
}

impl PolledTask {
    /// For a legacy server's tool that requires a task.
    pub fn legacy(timeout: Option<Duration>) -> Self {
        Self { server: Era::Legacy, id: None, sent: Vec::new(), deadline: None, timeout }
    }

    /// For a modern server that requires a client with tasks.
    pub(super) fn modern(timeout: Option<Duration>, now: Instant) -> Self {
        let deadline = timeout.and_then(|timeout| Some((now.checked_add(timeout)?, timeout)));
        Self { server: Era::Modern, deadline, ..Self::legacy(None) }
    }

    /// The member of `params` that asks a legacy server for a task; other members follow it.
    pub const PARAM: &'static [u8] = br#""task":{},"#;

    /// The role of the next request for the task.
    pub fn role(&self) -> TaskRole {
        self.id.as_ref().map_or(TaskRole::Begin, |id| TaskRole::About(Arc::clone(id)))
    }

    pub(super) fn id(&self) -> Option<Arc<str>> {
        self.id.clone()
    }

    pub(super) fn has_sent(&self, key: &str) -> bool {
        self.sent.iter().any(|sent| sent == key)
    }

    /// The timeout, if it has passed.
    pub(super) fn overdue(&self, now: Instant) -> Option<Duration> {
        self.deadline.filter(|(deadline, _)| *deadline <= now).map(|(_, after)| after)
    }

    /// The request that brings a begun task its answers; before it has begun, the call itself brings them.
    pub(super) fn update(&mut self, answers: &[(String, Bytes)]) -> Option<NextRequest> {
        let id = self.id.clone()?;
        self.sent.extend(answers.iter().map(|(key, _)| key.clone()));
        let members = format!(r#","inputResponses":{}"#, by_key(answers));
        Some(about("tasks/update", &id, &members, self.role()))
    }

    pub(super) fn state_request(&self) -> Option<NextRequest> {
        Some(about("tasks/get", self.id.as_ref()?, "", self.role()))
    }

    pub(super) fn step(&mut self, answer: Answer) -> Step {
        let Answer::Response { message, head, .. } = &answer else { return Step::Done(answer) };
        if self.id.is_none() {
            let Some(task) = task::Task::begun(message, head) else { return Step::Done(answer) };
            let id: Arc<str> = task.id.into();
            self.id = Some(Arc::clone(&id));
            return match self.server {
                Era::Legacy => {
                    let next = about("tasks/result", &id, "", TaskRole::Await(Arc::clone(&id)));
                    Step::Await(NextRequest { timeout: self.timeout, ..next })
                }
                Era::Modern => Step::Poll(pause(task.interval)),
            };
        }
        if self.server == Era::Legacy || !matches!(head.kind, Kind::Result { .. }) {
            return Step::Done(answer);
        }
        // A response without a task acknowledges the answers that the server was sent.
        let Some(task) = task::Task::told(message, head) else { return Step::Poll(SHORTEST) };
        match task.status {
            Some(Status::Completed) => Step::Done(ended_with(message, task.result.as_ref(), write::result)),
            Some(Status::Failed) => Step::Done(ended_with(message, task.error.as_ref(), write::error)),
            Some(Status::Cancelled) => Step::Done(failed("the task has been cancelled by its server")),
            Some(Status::InputRequired) if self.asks_more(message, task.requests.as_ref()) => {
                Step::Ask(message.clone(), InputRequired { requests: task.requests, state: None })
            }
            _ => Step::Poll(pause(task.interval)),
        }
    }

    /// Whether the server asks for an answer that it has not been sent.
    fn asks_more(&self, message: &[u8], requests: Option<&Span>) -> bool {
        let mut asked = requests.into_iter().flat_map(|requests| Members::of(message, requests)).flatten();
        asked.any(|member| !self.has_sent(&member.key))
    }
}

/// The cancellation of a task that nobody waits for any more.
pub fn cancel_request(id: &Arc<str>) -> NextRequest {
    about("tasks/cancel", id, "", TaskRole::About(Arc::clone(id)))
}

/// A request about a task; `members` follow its id.
fn about(method: &str, id: &str, members: &str, task_role: TaskRole) -> NextRequest {
    let params = format!(r#"{{"taskId":{}{members}}}"#, Value::from(id));
    let (request, params) = write::request_draft(method, params.as_bytes());
    NextRequest { request, params, task_role, timeout: None }
}

/// The end of a task as the answer that the call itself would have had.
fn ended_with(message: &Bytes, value: Option<&Span>, write: fn(&[u8], &[u8]) -> Bytes) -> Answer {
    let response = value.and_then(|value| response(write(b"0", &message[value.clone()])));
    response.unwrap_or_else(|| failed("the task has ended, and its server does not say how"))
}

fn failed(why: &str) -> Answer {
    let error = json!({ "code": -32000, "message": why }).to_string();
    response(write::error(b"0", error.as_bytes())).expect("it is an error response")
}

/// `None`: the message is no response.
fn response(message: Bytes) -> Option<Answer> {
    let head = Head::read(&message).ok()?;
    Some(Answer::Response { message, head, era: Era::Modern })
}

fn pause(interval: Option<Duration>) -> Duration {
    interval.map_or(INTERVAL, |interval| interval.clamp(SHORTEST, LONGEST))
}
