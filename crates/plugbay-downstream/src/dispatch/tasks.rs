//! The task members of requests, `tasks/list`, and subscriptions to tasks.

use std::borrow::Cow;

use plugbay_core::{
    era::Era,
    name::ServerName,
    task,
    wire::{Members, Span, elements, string_value, write},
};
use serde_json::json;

use super::{Message, Request, handle};
use crate::{
    context::RequestContext, refusal::Refusal, route, session::Session, subscriptions::ItemSubscription,
    tasks,
};

impl Request {
    /// The task that the request names, and where its id stands.
    pub(crate) fn of_task(&self) -> Result<(Cow<'_, str>, Span), Refusal> {
        let found = self.task_id.clone().and_then(|span| Some((string_value(self.raw(&span))?, span)));
        found.ok_or_else(|| Refusal::InvalidParams("\"taskId\" must be the id of a task".to_owned()))
    }

    /// The cursor of a list request.
    pub(crate) fn cursor(&self) -> Result<Option<(Cow<'_, str>, Span)>, Refusal> {
        let Some(span) = self.cursor.clone() else { return Ok(None) };
        let text = string_value(self.raw(&span));
        let text = text.ok_or_else(|| Refusal::InvalidParams("\"cursor\" must be a string".to_owned()))?;
        Ok(Some((text, span)))
    }

    /// Whether the host accepts a task as the answer. In the legacy era the request must ask for one.
    pub(crate) fn takes_a_task(&self, era: Era) -> bool {
        match era {
            Era::Legacy => self.task.is_some(),
            Era::Modern => self.knows_tasks(),
        }
    }

    /// Whether a modern host has declared the tasks extension.
    pub(crate) fn knows_tasks(&self) -> bool {
        self.meta.capabilities.as_ref().is_some_and(|declared| task::is_known(&self.message, declared))
    }

    /// The same request without one of its parameters.
    pub(crate) fn without(&self, key: &str) -> Self {
        let members = self.params.iter().flat_map(|params| Members::of(&self.message, params)).flatten();
        let members = members.filter(|member| member.key != key).map(|member| {
            format!("{}:{}", json!(member.key), String::from_utf8_lossy(self.raw(&member.value)))
        });
        let params = members.collect::<Vec<_>>().join(",");
        let method = String::from_utf8_lossy(self.method());
        match Message::read(write::request(self.id(), &method, format!("{{{params}}}").as_bytes())) {
            Ok(Message::Request(request)) => request,
            _ => self.clone(), // it was one before
        }
    }
}

/// `tasks/list`. A server lists the tasks of all its hosts, so only a host that is alone may use this.
pub(super) fn list(context: RequestContext<'_>) -> Result<(), Refusal> {
    if !context.session.is_alone() {
        return Err(Refusal::UnknownMethod);
    }
    if context.snapshot().settled {
        page(context);
    } else {
        context.when_settled(page);
    }
    Ok(())
}

fn page(context: RequestContext<'_>) {
    let is_own = |server: &ServerName| context.gateway().servers.is_own(server);
    match route::task_list(context.request, &context.snapshot(), is_own) {
        Ok((request, destination)) => handle(context.with_request(&request), destination),
        Err(refusal) => context.refuse(&refusal),
    }
}

/// The tasks in a subscription request, if their servers notify of tasks.
pub(super) fn item_subscriptions(
    session: &Session,
    request: &Request,
) -> Result<Vec<ItemSubscription>, Refusal> {
    let filter = request.notifications.as_ref();
    let ids = filter.and_then(|filter| Members::find(&request.message, filter, "taskIds"));
    let ids = ids.map(|list| elements(&request.message, &list)).unwrap_or_default();
    if !ids.is_empty() && !request.knows_tasks() {
        return Err(Refusal::MissingTasks);
    }
    let catalog = session.snapshot().catalog;
    let item = |span: Span| {
        let shown = string_value(request.raw(&span))?;
        let (server, target) = tasks::subscription_target(&shown, &catalog, &session.owner())?;
        Some(ItemSubscription::task(server, target, request.raw(&span), request.id()))
    };
    Ok(ids.into_iter().filter_map(item).collect())
}
