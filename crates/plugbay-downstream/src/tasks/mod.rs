//! Tasks of servers as hosts see them: the role of a call, and the task ids in messages.

mod ids;

use bytes::Bytes;
use plugbay_core::{
    catalog::Catalog,
    era::Era,
    exchange::{ServerNotification, SubscriptionTarget},
    name::{self, ServerName},
    skill,
    surface::{Snapshot, Target},
    suspended::PolledTask,
    task::{self, TaskRole},
    wire::{Frame, Head, Members, Span, string_value},
};

pub(crate) use ids::Task;

use crate::{message::Request, seal::Owner};

/// The role of a host's call with respect to tasks, and to URIs for which the host has other names.
#[derive(Debug, Clone, Default)]
pub(crate) enum Role {
    #[default]
    None,
    /// The call may be answered with a task, which the host then polls.
    Begins,
    /// The call is about this task; the id is the server's own.
    About(TaskRole),
    /// The call lists a page of all tasks; the tasks of this server follow.
    Lists { next: Option<ServerName> },
    /// If the call is answered with a task, plugbay polls it, because the host cannot.
    Polled,
    /// The call is not about a task: the URIs in its answer get this prefix.
    Mapped(Bytes),
}

impl Role {
    /// The member that must precede the other params of the request.
    pub(crate) fn demand(&self) -> Option<Bytes> {
        matches!(self, Self::Polled).then(|| Bytes::from_static(PolledTask::PARAM))
    }

    pub(crate) fn task_role(&self) -> TaskRole {
        match self {
            Self::None | Self::Lists { .. } | Self::Mapped(_) => TaskRole::None,
            Self::Begins | Self::Polled => TaskRole::Begin,
            Self::About(task_role) => task_role.clone(),
        }
    }
}

/// The role of a tool call.
pub(crate) fn role_of_call(request: &Request, era: Era, snapshot: &Snapshot, target: &Target) -> Role {
    let Some(entry) = snapshot.catalog.get(&target.server) else {
        // The server may be of either era. If it is of the host's era, it answers as the host has asked.
        return if request.takes_a_task(era) { Role::Begins } else { Role::None };
    };
    let (alike, tasks) = (entry.offer.dialect.era == era, entry.offer.capabilities.tasks);
    if alike && request.takes_a_task(era) {
        return Role::Begins;
    }
    let required = || entry.offer.tool(&target.tool).is_some_and(|tool| task::is_required(&tool.definition));
    if tasks && entry.offer.dialect.era == Era::Legacy && required() {
        return Role::Polled;
    }
    Role::None
}

pub(crate) fn quoted(text: &str) -> Bytes {
    Bytes::from(serde_json::Value::from(text).to_string())
}

/// The servers that support `tasks/list`.
pub(crate) fn listing_servers(catalog: &Catalog) -> impl Iterator<Item = &ServerName> {
    let of_era = catalog.iter().filter(|(_, entry)| entry.offer.dialect.era == Era::Legacy);
    of_era.filter(|(_, entry)| entry.offer.capabilities.tasks_list).map(|(server, _)| server)
}

/// The insertions that turn task ids and URIs in an answer into those of the host.
pub(crate) fn labels(
    role: &Role,
    server: &ServerName,
    message: &[u8],
    head: &Head,
    owner: &Owner,
) -> Vec<(usize, Vec<u8>)> {
    let ids = match role {
        Role::None => return Vec::new(),
        Role::Mapped(start) => {
            let uris = skill::uris_of_result(message, head).into_iter();
            return uris.map(|uri| (uri.start + 1, start.to_vec())).collect();
        }
        Role::Begins | Role::Polled => task::ids_of_begun(message, head),
        Role::About(_) | Role::Lists { .. } => task::ids_of_told(message, head),
    };
    let mut labels = ids::labels(message, ids, server, owner);
    if let Role::Lists { next } = role {
        labels.extend(next_page(message, head, server, next.as_ref()));
        labels.sort_by_key(|(at, _)| *at);
    }
    labels
}

/// The cursor of the next page: at the same server, or at the next one.
fn next_page(
    message: &[u8],
    head: &Head,
    server: &ServerName,
    next: Option<&ServerName>,
) -> Option<(usize, Vec<u8>)> {
    let result = head.payload.as_ref().filter(|result| message[result.start] == b'{')?;
    let cursor = Members::find(message, result, "nextCursor").filter(|cursor| message[cursor.start] == b'"');
    if let Some(cursor) = cursor {
        return Some((cursor.start + 1, name::before(server).into_bytes()));
    }
    let comma = if Members::of(message, result).next().is_none() { "" } else { "," };
    let member = format!(r#""nextCursor":"{}"{comma}"#, name::before(next?));
    Some((result.start + 1, member.into_bytes()))
}

/// The cursor of the page after one that could not be fetched.
pub(crate) fn cursor_of(server: &ServerName) -> String {
    name::before(server)
}

/// The labels for a server's request, so that it names its task by the id that the host knows.
pub(crate) fn server_request_labels(
    message: &[u8],
    params: Option<&Span>,
    server: &ServerName,
    owner: &Owner,
) -> Vec<(usize, Vec<u8>)> {
    let id = params.and_then(|params| task::related(message, params));
    ids::labels(message, id, server, owner)
}

/// The host's answer to such a request, with the server's own task id.
pub(crate) fn with_server_task_id(message: Bytes, head: Head, owner: &Owner) -> (Bytes, Head) {
    let id = head.payload.as_ref().and_then(|payload| task::related(&message, payload));
    let task = id.and_then(|id| Some((Task::find(&string_value(&message[id.clone()])?, owner)?, id)));
    let edited = task.and_then(|(task, id)| {
        let edited = Frame::edited(&message, &[(id, &quoted(&task.id))]).into_bytes();
        Some((Head::read(&edited).ok()?, edited))
    });
    edited.map_or((message, head), |(head, edited)| (edited, head))
}

/// The server of a task and its own name for it, if that server notifies of its tasks.
pub(crate) fn subscription_target(
    shown: &str,
    catalog: &Catalog,
    owner: &Owner,
) -> Option<(ServerName, SubscriptionTarget)> {
    let task = Task::find(shown, owner)?;
    let offer = &catalog.get(&task.server)?.offer;
    let notifies = offer.dialect.era == Era::Modern && offer.capabilities.tasks;
    notifies.then(|| (task.server, SubscriptionTarget::Task(quoted(&task.id))))
}

/// A legacy server's notification of a task, with the task's id as its host knows it.
pub(crate) fn labelled(notification: &ServerNotification, id: &Span, owner: &Owner) -> Frame {
    let labels = ids::labels(&notification.message, [id.clone()], &notification.server, owner);
    let edits: Vec<(Span, &[u8])> = labels.iter().map(|(at, text)| (*at..*at, &text[..])).collect();
    Frame::edited(&notification.message, &edits)
}
