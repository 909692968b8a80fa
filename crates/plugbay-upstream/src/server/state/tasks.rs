//! The tasks that hosts have begun at a server: whose they are, and whether they still need it.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    exchange::{Answer, Caller, ServerNotification, Ticket, Topic},
    failure::{CallError, Failure},
    task::{self, TaskRole},
    wire::{Kind, Members, Span},
};
use rustc_hash::FxHashMap;

use super::{Actor, server_requests::Way};

/// So many tasks of one server are remembered; the oldest are forgotten first.
const KNOWN_LIMIT: usize = 1024;
/// For so long after the last word of it a task keeps its server from being stopped, if it lives that long.
const LONGEST_REST: Duration = Duration::from_secs(3600);

/// Calls that have to do with tasks, and the tasks that are known by them.
#[derive(Default)]
pub(super) struct TaskRoles {
    calls: FxHashMap<Ticket, TaskRole>,
    /// The newest last.
    known: VecDeque<Known>,
}

struct Known {
    /// As the server names it.
    id: Arc<str>,
    /// Whoever spoke of it last. Its session has made sure that it may.
    host: Weak<dyn Caller>,
    /// The call that began it: its progress token is good for as long as the task lives.
    begun_by: Option<Ticket>,
    /// Until then it is taken to be under way.
    needed_until: Option<Instant>,
    /// The end of the server that it was begun at.
    lost: Option<Arc<Failure>>,
}

impl TaskRoles {
    fn find(&mut self, id: &str) -> Option<&mut Known> {
        self.known.iter_mut().find(|known| *known.id == *id)
    }

    fn note(&mut self, id: &str, caller: &Arc<dyn Caller>) -> &mut Known {
        let place = self.known.iter().position(|known| *known.id == *id);
        let before = place.and_then(|place| self.known.remove(place));
        if self.known.len() >= KNOWN_LIMIT {
            self.known.pop_front();
        }
        let (begun_by, needed_until, lost) =
            before.map(|known| (known.begun_by, known.needed_until, known.lost)).unwrap_or_default();
        let host = Arc::downgrade(caller);
        self.known.push_back(Known { id: id.into(), host, begun_by, needed_until, lost });
        self.known.back_mut().expect("just pushed")
    }

    /// Whether a task may still be under way.
    pub(super) fn under_way(&self, now: Instant) -> bool {
        self.known.iter().any(|known| known.needed_until.is_some_and(|until| now < until))
    }

    /// Calls that have ended in any way have no task role any more.
    pub(super) fn forget_all_but(&mut self, open: impl Fn(Ticket) -> bool) {
        if !self.calls.is_empty() {
            self.calls.retain(|ticket, _| open(*ticket));
        }
    }
}

impl Known {
    fn learn(&mut self, task: &task::Task, now: Instant) {
        let rest = task.lifetime.unwrap_or(LONGEST_REST).min(LONGEST_REST);
        self.needed_until = if task.is_over() { None } else { now.checked_add(rest) };
        self.lost = None; // its server knows it
    }
}

impl Actor {
    /// A call is about to be sent.
    pub(super) fn set_out(&mut self, ticket: Ticket, caller: &Arc<dyn Caller>, task_role: TaskRole) {
        match &task_role {
            TaskRole::None => return,
            TaskRole::Begin => {}
            TaskRole::About(id) | TaskRole::Await(id) => {
                self.task_roles.note(id, caller);
            }
        }
        self.task_roles.calls.insert(ticket, task_role);
    }

    /// Its answer: what it tells of a task is remembered, and a task that a server has taken with it is
    /// told of by the reason for that.
    pub(super) fn returned(&mut self, ticket: Ticket, caller: &Arc<dyn Caller>, answer: Answer) -> Answer {
        let Some(task_role) = self.task_roles.calls.remove(&ticket) else { return answer };
        let Answer::Response { message, head, .. } = &answer else { return answer };
        match task_role {
            TaskRole::None => {}
            TaskRole::Begin => {
                if let Some(task) = task::Task::begun(message, head) {
                    let known = self.task_roles.note(&task.id, caller);
                    (known.begun_by, known.lost) = (Some(ticket), None);
                    known.learn(&task, self.now);
                }
            }
            TaskRole::About(id) | TaskRole::Await(id) => {
                let now = self.now;
                let Some(known) = self.task_roles.find(&id) else { return answer };
                match (&head.kind, &known.lost) {
                    (Kind::Error { .. }, Some(failure)) => {
                        let (server, failure) = (self.spec.name.clone(), Arc::clone(failure));
                        return Answer::Failed(CallError::TaskLost { server, failure });
                    }
                    (Kind::Error { .. }, None) => known.needed_until = None,
                    _ => match task::Task::told(message, head).filter(|task| *task.id == *id) {
                        Some(task) => known.learn(&task, now),
                        None if task::related(message, head.payload.as_ref().unwrap_or(&(0..0)))
                            .is_some() =>
                        {
                            known.needed_until = None; // the result of the task itself
                        }
                        None => {} // a word of thanks
                    },
                }
            }
        }
        answer
    }

    /// A legacy server tells how a task is: to its host alone. A modern one was asked to, by whoever hears
    /// it.
    pub(super) fn task_told(&mut self, message: Bytes, params: Option<Span>) {
        let Some(params) = params else { return };
        let Some(task) = task::Task::read(&message, &params) else { return };
        let Some(id) = Members::find(&message, &params, "taskId") else { return };
        let now = self.now;
        let known = self.task_roles.find(&task.id);
        let host = known.and_then(|known| {
            known.learn(&task, now);
            known.host.upgrade()
        });
        let era = self.opened.era.unwrap_or(Era::Legacy);
        let topic = Topic::Task { era, id, params };
        let server_notification = ServerNotification { server: self.spec.name.clone(), message, topic };
        match (era, host) {
            (Era::Modern, _) => self.around.host_registry.each(|host| host.told(None, &server_notification)),
            (Era::Legacy, Some(host)) => host.told(None, &server_notification),
            (Era::Legacy, None) => {}
        }
    }

    /// Whom a server request is for that belongs to this task: its host, and the call by which that waits for the
    /// task, if it does. Of a task that nobody has spoken of the only host may know.
    pub(super) fn whose_task(&self, id: &str) -> Option<Way> {
        let Some(known) = self.task_roles.known.iter().find(|known| *known.id == *id) else {
            return self.around.host_registry.only().map(|only| (only, None));
        };
        let awaited =
            |task_role: &TaskRole| matches!(task_role, TaskRole::Await(awaited) if **awaited == *id);
        let waiting = self.task_roles.calls.iter().filter(|(_, task_role)| awaited(task_role));
        let waiting = waiting.map(|(ticket, _)| *ticket).max();
        known.host.upgrade().map(|host| (host, waiting))
    }

    /// Whoever began a task with this call hears of its progress even when the call is over.
    pub(super) fn beginner(&self, ticket: Ticket) -> Option<Arc<dyn Caller>> {
        let known = self.task_roles.known.iter().rev().find(|known| known.begun_by == Some(ticket))?;
        known.host.upgrade()
    }

    /// The server is gone. What it worked on is not waited for; another may yet know of it.
    pub(super) fn lose_tasks(&mut self, failure: &Arc<Failure>) {
        for known in &mut self.task_roles.known {
            known.needed_until = None;
            known.lost = Some(Arc::clone(failure));
        }
    }
}
