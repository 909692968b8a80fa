//! The MCP tasks of a server: which host each belongs to, and whether it still needs the server.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use plugbay_core::{
    exchange::{Caller, Ticket},
    failure::Failure,
    task::{self, Task, TaskRole},
    wire::{Head, Kind},
};
use rustc_hash::FxHashMap;

use super::server_requests::Recipient;

/// Limit of remembered tasks of one server; the oldest are forgotten first.
const TASK_LIMIT: usize = 1024;
/// A task keeps its server running for at most this long after its last status.
const LONGEST_LIFETIME: Duration = Duration::from_secs(3600);

/// The live tasks of one server, and the roles of calls with respect to them.
#[derive(Debug, Default)]
pub(in crate::server) struct Tasks {
    calls: FxHashMap<Ticket, TaskRole>,
    /// The newest last.
    entries: VecDeque<TaskEntry>,
}

#[derive(Debug)]
struct TaskEntry {
    /// The server's own id.
    id: Arc<str>,
    /// The host that last sent a request about it. Its session has checked that the host may.
    host: Weak<dyn Caller>,
    /// The call that created it: its progress token is valid for as long as the task lives.
    created_by: Option<Ticket>,
    /// Until then it counts as in progress.
    in_progress_until: Option<Instant>,
    /// The reason why the server that created it is gone.
    lost: Option<Arc<Failure>>,
}

impl Tasks {
    /// Notes a call that is about to be sent.
    pub(in crate::server) fn sending(&mut self, ticket: Ticket, caller: &Arc<dyn Caller>, role: TaskRole) {
        match &role {
            TaskRole::None => return,
            TaskRole::Begin => {}
            TaskRole::About(id) | TaskRole::Await(id) => {
                self.touch(id, caller);
            }
        }
        self.calls.insert(ticket, role);
    }

    /// Notes that a call was answered. Returns why its task was lost, if it was.
    pub(in crate::server) fn answered(
        &mut self,
        ticket: Ticket,
        caller: &Arc<dyn Caller>,
        (message, head): (&Bytes, &Head),
        now: Instant,
    ) -> Option<Arc<Failure>> {
        match self.calls.remove(&ticket)? {
            TaskRole::None => None,
            TaskRole::Begin => {
                let task = Task::begun(message, head)?;
                let entry = self.touch(&task.id, caller);
                entry.created_by = Some(ticket);
                entry.update(&task, now);
                None
            }
            TaskRole::About(id) | TaskRole::Await(id) => self.find(&id)?.answered(message, head, now),
        }
    }

    /// Notes the status of a task from the server; returns the task's host.
    pub(in crate::server) fn status(&mut self, task: &Task, now: Instant) -> Option<Arc<dyn Caller>> {
        let entry = self.find(&task.id)?;
        entry.update(task, now);
        entry.host.upgrade()
    }

    pub(in crate::server) fn contains(&self, id: &str) -> bool {
        self.entries.iter().any(|entry| *entry.id == *id)
    }

    /// The recipient of a server request that belongs to this task: its host, and the call that awaits the
    /// task.
    pub(in crate::server) fn recipient(&self, id: &str) -> Option<Recipient> {
        let entry = self.entries.iter().find(|entry| *entry.id == *id)?;
        let awaits = |role: &TaskRole| matches!(role, TaskRole::Await(awaited) if **awaited == *id);
        let call = self.calls.iter().filter(|(_, role)| awaits(role)).map(|(ticket, _)| *ticket).max();
        entry.host.upgrade().map(|caller| Recipient { caller, call })
    }

    /// The host of the task that this call created. It gets progress even after the call has ended.
    pub(in crate::server) fn host_of_creator(&self, ticket: Ticket) -> Option<Arc<dyn Caller>> {
        let entry = self.entries.iter().rev().find(|entry| entry.created_by == Some(ticket))?;
        entry.host.upgrade()
    }

    /// Notes that the server is gone: nothing is in progress. Its successor may still know the tasks.
    pub(in crate::server) fn server_lost(&mut self, failure: &Arc<Failure>) {
        for entry in &mut self.entries {
            entry.in_progress_until = None;
            entry.lost = Some(Arc::clone(failure));
        }
    }

    /// Whether a task may still be in progress.
    pub(in crate::server) fn in_progress(&self, now: Instant) -> bool {
        self.entries.iter().any(|entry| entry.in_progress_until.is_some_and(|until| now < until))
    }

    /// Forgets the roles of calls that have ended without an answer.
    pub(in crate::server) fn retain_calls(&mut self, is_open: impl Fn(Ticket) -> bool) {
        if !self.calls.is_empty() {
            self.calls.retain(|ticket, _| is_open(*ticket));
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut TaskEntry> {
        self.entries.iter_mut().find(|entry| *entry.id == *id)
    }

    /// The entry of a task that this caller's request is about. It becomes the newest one.
    fn touch(&mut self, id: &str, caller: &Arc<dyn Caller>) -> &mut TaskEntry {
        let index = self.entries.iter().position(|entry| *entry.id == *id);
        let before = index.and_then(|index| self.entries.remove(index));
        if self.entries.len() >= TASK_LIMIT {
            self.entries.pop_front();
        }
        let (created_by, in_progress_until, lost) =
            before.map(|entry| (entry.created_by, entry.in_progress_until, entry.lost)).unwrap_or_default();
        let host = Arc::downgrade(caller);
        self.entries.push_back(TaskEntry { id: id.into(), host, created_by, in_progress_until, lost });
        self.entries.back_mut().expect("just pushed")
    }
}

impl TaskEntry {
    fn update(&mut self, task: &Task, now: Instant) {
        let lifetime = task.lifetime.unwrap_or(LONGEST_LIFETIME).min(LONGEST_LIFETIME);
        self.in_progress_until = if task.is_over() { None } else { now.checked_add(lifetime) };
        self.lost = None; // its server knows it
    }

    fn answered(&mut self, message: &Bytes, head: &Head, now: Instant) -> Option<Arc<Failure>> {
        match (&head.kind, &self.lost) {
            (Kind::Error { .. }, Some(failure)) => return Some(Arc::clone(failure)),
            (Kind::Error { .. }, None) => self.in_progress_until = None,
            _ => match Task::told(message, head).filter(|task| *task.id == *self.id) {
                Some(task) => self.update(&task, now),
                None if task::related(message, head.payload.as_ref().unwrap_or(&(0..0))).is_some() => {
                    self.in_progress_until = None; // the result of the task itself
                }
                None => {} // a plain acknowledgement
            },
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::wire::write;

    use super::{super::test_caller::TestCaller, *};

    fn response(result: &str) -> (Bytes, Head) {
        let message = write::result(b"1", result.as_bytes());
        let head = Head::read(&message).unwrap();
        (message, head)
    }

    fn refusal() -> (Bytes, Head) {
        let message = write::error(b"1", br#"{"code":-32602,"message":"unknown task"}"#);
        let head = Head::read(&message).unwrap();
        (message, head)
    }

    const CREATED: &str = r#"{"task":{"taskId":"t","status":"working","ttl":60000}}"#;

    /// A table in which call 1 has created the task "t".
    fn created(caller: &Arc<dyn Caller>, now: Instant) -> Tasks {
        let mut tasks = Tasks::default();
        tasks.sending(Ticket(1), caller, TaskRole::Begin);
        let (message, head) = response(CREATED);
        assert!(tasks.answered(Ticket(1), caller, (&message, &head), now).is_none());
        tasks
    }

    #[test]
    fn a_task_is_in_progress_until_its_lifetime_or_its_end() {
        let (now, (_, caller)) = (Instant::now(), TestCaller::new());
        let mut tasks = created(&caller, now);
        assert!(tasks.in_progress(now + Duration::from_secs(59)));
        assert!(!tasks.in_progress(now + Duration::from_secs(60)));
        tasks.sending(Ticket(2), &caller, TaskRole::About("t".into()));
        let (message, head) = response(r#"{"taskId":"t","status":"completed"}"#);
        assert!(tasks.answered(Ticket(2), &caller, (&message, &head), now).is_none());
        assert!(!tasks.in_progress(now));
    }

    #[test]
    fn a_task_belongs_to_the_host_that_asked_about_it_last() {
        let now = Instant::now();
        let ((_, first), (_, second)) = (TestCaller::new(), TestCaller::new());
        let mut tasks = created(&first, now);
        assert!(Arc::ptr_eq(&tasks.host_of_creator(Ticket(1)).unwrap(), &first));
        tasks.sending(Ticket(2), &second, TaskRole::Await("t".into()));
        let recipient = tasks.recipient("t").unwrap();
        assert!(Arc::ptr_eq(&recipient.caller, &second) && recipient.call == Some(Ticket(2)));
        assert!(!tasks.contains("other"));
        tasks.retain_calls(|_| false);
        assert_eq!(tasks.recipient("t").unwrap().call, None);
        drop((second, recipient));
        assert!(tasks.contains("t") && tasks.recipient("t").is_none(), "its host is gone");
    }

    #[test]
    fn a_task_that_its_server_took_along_is_lost_with_the_reason() {
        let (now, (_, caller)) = (Instant::now(), TestCaller::new());
        let mut tasks = created(&caller, now);
        tasks.server_lost(&Arc::new(Failure::new("crashed", Vec::new())));
        assert!(!tasks.in_progress(now));
        tasks.sending(Ticket(2), &caller, TaskRole::About("t".into()));
        let (message, head) = refusal();
        let lost = tasks.answered(Ticket(2), &caller, (&message, &head), now);
        assert_eq!(lost.unwrap().to_string(), "crashed");
    }

    #[test]
    fn the_oldest_tasks_are_forgotten_first() {
        let (_, caller) = TestCaller::new();
        let mut tasks = Tasks::default();
        for number in 0..=TASK_LIMIT as u64 {
            tasks.sending(Ticket(number), &caller, TaskRole::About(number.to_string().into()));
        }
        assert!(!tasks.contains("0") && tasks.contains("1"));
    }
}
