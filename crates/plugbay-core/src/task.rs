//! Tasks: work that outlives the request that began it. Finds their ids in messages, and reads their states.
//!
//! The legacy era has them in its last revision, the modern one as an extension; the shapes differ, the
//! words hardly do.

use std::{sync::Arc, time::Duration};

use crate::{
    era,
    wire::{Head, Kind, Members, Span, elements, string_value},
};

/// The name of the extension in the modern era.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The key under which a message of the legacy era names the task that it belongs to.
const RELATED_KEY: &str = "io.modelcontextprotocol/related-task";

/// The role of a call for tasks; ids are the server's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TaskRole {
    /// It has nothing to do with tasks.
    #[default]
    None,
    /// It may be answered by a task.
    Begin,
    /// It asks about a task, or changes it.
    About(Arc<str>),
    /// Its answer comes when the task is over, however long that takes.
    Await(Arc<str>),
}

/// A task as its server describes it, in either era.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    pub status: Option<Status>,
    /// How long the server keeps it, counted from its beginning; `None` is for ever, or unknown.
    pub lifetime: Option<Duration>,
    /// The interval at which the server wants to be polled.
    pub interval: Option<Duration>,
    /// The contents of modern tasks, by their status.
    pub result: Option<Span>,
    pub error: Option<Span>,
    pub requests: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl Task {
    /// `object` is a description of a task; `None` if it has no id.
    pub fn read(bytes: &[u8], object: &Span) -> Option<Self> {
        let mut id = None;
        let (mut status, mut lifetime, mut interval) = (None, None, None);
        let (mut result, mut error, mut requests) = (None, None, None);
        for member in Members::of(bytes, object).flatten() {
            let value = &bytes[member.value.clone()];
            match &*member.key {
                "taskId" => id = string_value(value),
                "status" => status = Status::parse(value),
                "ttl" | "ttlMs" => lifetime = milliseconds(value),
                "pollInterval" | "pollIntervalMs" => interval = milliseconds(value),
                "result" => result = Some(member.value),
                "error" => error = Some(member.value),
                "inputRequests" => requests = Some(member.value),
                _ => {}
            }
        }
        Some(Self { id: id?.into_owned(), status, lifetime, interval, result, error, requests })
    }

    /// The task that answers a call instead of its result.
    pub fn begun(bytes: &[u8], head: &Head) -> Option<Self> {
        Self::read(bytes, &begun(bytes, head)?)
    }

    /// The task that an answer describes.
    pub fn told(bytes: &[u8], head: &Head) -> Option<Self> {
        Self::read(bytes, result(head)?)
    }

    pub fn is_over(&self) -> bool {
        matches!(self.status, Some(Status::Completed | Status::Failed | Status::Cancelled))
    }
}

impl Status {
    fn parse(json: &[u8]) -> Option<Self> {
        match &*string_value(json)? {
            "working" => Some(Self::Working),
            "input_required" => Some(Self::InputRequired),
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }
}

/// The ids in the answer to a call that may have begun a task. An answer without a task has none, whatever
/// its tool may have put into it.
pub fn ids_of_begun(bytes: &[u8], head: &Head) -> Vec<Span> {
    let task = begun(bytes, head);
    let ids = task.iter().flat_map(|task| ids_in(bytes, task));
    ids.chain(result(head).and_then(|result| related(bytes, result))).collect()
}

/// The ids in the answer to a request about tasks: of one, of a list, or beside the result of one.
pub fn ids_of_told(bytes: &[u8], head: &Head) -> Vec<Span> {
    let Some(result) = result(head) else { return Vec::new() };
    let listed = Members::find(bytes, result, "tasks").map(|list| elements(bytes, &list)).unwrap_or_default();
    let mut ids: Vec<Span> = ids_in(bytes, result).collect();
    ids.extend(listed.iter().flat_map(|task| ids_in(bytes, task)));
    ids.extend(related(bytes, result));
    ids.sort_by_key(|id| id.start);
    ids
}

/// The place of the id of the task that a message belongs to, in its `params` or `result`.
pub fn related(bytes: &[u8], payload: &Span) -> Option<Span> {
    memchr::memmem::find(&bytes[payload.clone()], RELATED_KEY.as_bytes())?;
    let meta = Members::find(bytes, payload, "_meta")?;
    let id = Members::find(bytes, &Members::find(bytes, &meta, RELATED_KEY)?, "taskId")?;
    is_string(bytes, &id).then_some(id)
}

/// Whether a client that declares these capabilities accepts tasks as answers.
pub fn is_known(bytes: &[u8], capabilities: &Span) -> bool {
    let extensions = Members::find(bytes, capabilities, "extensions");
    let tasks = extensions.and_then(|extensions| Members::find(bytes, &extensions, EXTENSION));
    tasks.is_some_and(|tasks| bytes[tasks.start] == b'{')
}

/// Whether a modern server refuses a call because its client does not accept tasks as answers. Then it has
/// done nothing.
pub fn is_demanded(bytes: &[u8], head: &Head) -> bool {
    let (Kind::Error { .. }, Some(error)) = (&head.kind, &head.payload) else { return false };
    let code = Members::find(bytes, error, "code").map(|code| &bytes[code]);
    let data = Members::find(bytes, error, "data");
    let required = data.and_then(|data| Members::find(bytes, &data, "requiredCapabilities"));
    code == Some(era::MISSING_CAPABILITY) && required.is_some_and(|required| is_known(bytes, &required))
}

/// Whether a tool can only be called with a task; `definition` is its own.
pub fn is_required(definition: &[u8]) -> bool {
    let support = Members::find(definition, &(0..definition.len()), "execution")
        .and_then(|execution| Members::find(definition, &execution, "taskSupport"));
    support.is_some_and(|support| &definition[support] == br#""required""#)
}

fn result(head: &Head) -> Option<&Span> {
    head.payload.as_ref().filter(|_| matches!(head.kind, Kind::Result { .. }))
}

/// The description of a task in a result: a modern result is one and says so, a legacy one contains it.
fn begun(bytes: &[u8], head: &Head) -> Option<Span> {
    let result = result(head)?;
    memchr::memmem::find(bytes, br#""taskId""#)?;
    let kind = Members::find(bytes, result, "resultType");
    if kind.is_some_and(|kind| &bytes[kind] == br#""task""#) {
        return Some(result.clone());
    }
    Members::find(bytes, result, "task").filter(|task| bytes[task.start] == b'{')
}

/// All ids of a task, if a server wrote several: a parser may take any.
fn ids_in(bytes: &[u8], object: &Span) -> impl Iterator<Item = Span> {
    let ids = Members::of(bytes, object).flatten().filter(|member| member.key == "taskId");
    ids.map(|member| member.value).filter(|id| is_string(bytes, id))
}

fn is_string(bytes: &[u8], value: &Span) -> bool {
    bytes[value.start] == b'"'
}

fn milliseconds(json: &[u8]) -> Option<Duration> {
    let number: f64 = std::str::from_utf8(json).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(number / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(key: &str, payload: &str) -> (String, Head) {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"{key}":{payload}}}"#);
        let head = Head::read(message.as_bytes()).unwrap();
        (message, head)
    }

    fn texts(message: &str, spans: Vec<Span>) -> Vec<String> {
        spans.into_iter().map(|span| message[span].to_owned()).collect()
    }

    #[test]
    fn a_task_is_read_alike_in_both_eras() {
        let legacy = r#"{"task":{"taskId":"1","status":"working","ttl":60000,"pollInterval":500}}"#;
        let modern =
            r#"{"resultType":"task","taskId":"1","status":"working","ttlMs":60000,"pollIntervalMs":500}"#;
        for text in [legacy, modern] {
            let (message, head) = message("result", text);
            let task = Task::begun(message.as_bytes(), &head).unwrap();
            let times = (task.lifetime.unwrap().as_secs(), task.interval.unwrap().as_millis());
            assert_eq!((&*task.id, task.status, times), ("1", Some(Status::Working), (60, 500)), "{text}");
            assert_eq!(texts(&message, ids_of_begun(message.as_bytes(), &head)), ["\"1\""]);
        }
    }

    #[test]
    fn what_is_no_task_is_left_alone() {
        for text in [
            r#"{"content":[],"taskId":"1"}"#,
            r#"{"resultType":"complete","structuredContent":{"taskId":"1"}}"#,
            r#"{"task":"taskId"}"#,
            r#"{"task":{"taskId":1}}"#,
            "{}",
        ] {
            let (message, head) = message("result", text);
            assert!(ids_of_begun(message.as_bytes(), &head).is_empty(), "{text}");
            assert_eq!(Task::begun(message.as_bytes(), &head), None, "{text}");
        }
        let (message, head) = message("error", r#"{"code":1,"message":"taskId","taskId":"1"}"#);
        assert!(ids_of_told(message.as_bytes(), &head).is_empty());
    }

    #[test]
    fn ids_are_found_wherever_an_answer_has_them() {
        for (text, ids) in [
            (r#"{"taskId":"a","status":"completed"}"#, vec!["\"a\""]),
            (
                r#"{"tasks":[{"taskId":"a"},{"status":"x","taskId":"b"}],"nextCursor":"c"}"#,
                vec!["\"a\"", "\"b\""],
            ),
            (r#"{"taskId":"a","x":1,"taskId":"b"}"#, vec!["\"a\"", "\"b\""]),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"r"}},"content":[]}"#,
                vec!["\"r\""],
            ),
        ] {
            let (message, head) = message("result", text);
            assert_eq!(texts(&message, ids_of_told(message.as_bytes(), &head)), ids, "{text}");
        }
    }

    #[test]
    fn a_server_that_wants_a_client_with_tasks_says_so_by_its_error() {
        let demanded = |text: &str| {
            let (message, head) = message("error", text);
            is_demanded(message.as_bytes(), &head)
        };
        let required = r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
        assert!(demanded(&format!(r#"{{"code":-32021,"message":"m","data":{required}}}"#)));
        assert!(!demanded(&format!(r#"{{"code":-32000,"message":"m","data":{required}}}"#)));
        assert!(!demanded(
            r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}"#
        ));
    }

    #[test]
    fn only_a_tool_that_says_so_needs_a_task() {
        assert!(is_required(br#"{"name":"a","execution":{"taskSupport":"required"}}"#));
        assert!(!is_required(br#"{"name":"a","execution":{"taskSupport":"optional"}}"#));
        assert!(!is_required(br#"{"name":"a","taskSupport":"required"}"#));
    }
}
