//! Answers whose result is too large for the host: they get an outline with a handle, or the values of a
//! filter.

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use bytes::Bytes;
use plugbay_core::{
    arguments::CompiledSchema,
    exchange::Answer,
    filter::FilterOutput,
    fit::LEAST_THRESHOLD,
    name::{self, ServerName},
    reference::Handle,
    surface::{BuiltinTool, suite},
    task::{Task, TaskRole},
    text::{on_one_line, word},
    wire::{Frame, Head, Kind, Members, Span, string_value},
};

use crate::{
    destination::{Route, Way},
    gateway::Gateway,
    message::Request,
    results::{Results, Store, parts},
    seal::Owner,
    session::Session,
};

/// The facts about a call that are needed if its result is large.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    /// The server's own name for the tool, as a JSON string.
    tool: Bytes,
    way: CalledBy,
    /// A jq filter for the result.
    filter: Option<Arc<str>>,
    /// The answer describes a modern task that contains the result.
    in_task: bool,
}

/// How the host has called the tool, and so how it can call `read_result`.
#[derive(Debug, Clone)]
enum CalledBy {
    /// By the tool's own name.
    Name,
    /// With `execute_tool`, under this name, as a JSON string.
    Execute(Bytes),
    /// With the `call` of a suite of this name, as a JSON string.
    Suite(Bytes),
}

impl CalledBy {
    /// The name of `read_result` for a host that calls this way.
    fn read_result(&self, session: &Session, server: &ServerName) -> &'static str {
        match self {
            Self::Suite(_) => suite::read_result_name(server, &session.snapshot()),
            Self::Name | Self::Execute(_) => BuiltinTool::ReadResult.name(),
        }
    }
}

impl Fit {
    /// `None` for a request that neither calls a tool nor asks for the result of a task.
    pub(crate) fn of(session: &Session, request: &Request, route: &Route) -> Option<Self> {
        match request.method() {
            b"tools/call" => {}
            b"tasks/result" | b"tasks/get" => return Self::of_task(session, request, route),
            _ => return None,
        }
        let (name, tool) = (request.name.clone()?, route.subject.as_ref()?.1.clone());
        let outer = || request.message.slice(name);
        let way = match route.inner.as_ref().map(|inner| inner.way) {
            Some(Way::Execute) => CalledBy::Execute(outer()),
            Some(Way::Suite) => CalledBy::Suite(outer()),
            Some(Way::Plain) | None => CalledBy::Name,
        };
        let filter = route.inner.as_ref().and_then(|inner| inner.filter.clone());
        Some(Self { tool, way, filter, in_task: false })
    }

    /// The `Fit` of the call that began the task. In the legacy era the answer contains only the task's
    /// result.
    fn of_task(session: &Session, request: &Request, route: &Route) -> Option<Self> {
        let (TaskRole::About(id) | TaskRole::Await(id)) = route.role.task_role() else { return None };
        let tasks = &session.gateway().suspended.task_fits;
        let fit = tasks.find(session.result_store().owner, &route.server, &id)?;
        let in_task = request.method() == b"tasks/get";
        Some(Self { in_task, ..fit })
    }

    /// Whether the call was answered with a task. If it came through plugbay's own tools, its `Fit` is
    /// remembered.
    pub(crate) fn is_task(&self, session: &Session, server: &ServerName, answer: &Answer) -> bool {
        let Answer::Response { message, head, .. } = answer else { return false };
        let Some(task) = Task::begun(message, head) else { return false };
        if !matches!(self.way, CalledBy::Name) {
            let owner = session.result_store().owner;
            session.gateway().suspended.task_fits.remember(owner, server, &task.id, self.clone());
        }
        true
    }

    /// Where the tool's result is in an answer.
    fn place(&self, answer: &Answer) -> Option<Span> {
        let Answer::Response { message, head, .. } = answer else { return None };
        let (Kind::Result { .. }, Some(payload)) = (&head.kind, &head.payload) else { return None };
        if !self.in_task {
            return Some(payload.clone());
        }
        Task::told(message, head)?.result.filter(|result| message[result.start] == b'{')
    }

    /// The result to learn a shape from, if it is one of the tool's first. Only calls through plugbay's own
    /// tools count: those of listed tools stay as fast as they are.
    pub(crate) fn learning(
        &self,
        session: &Session,
        server: &ServerName,
        answer: &Answer,
    ) -> Option<Learning> {
        if matches!(self.way, CalledBy::Name) {
            return None;
        }
        let Answer::Response { message, .. } = answer else { return None };
        let (place, shapes) = (self.place(answer)?, &session.gateway().usage.shapes);
        let tool = string_value(&self.tool)?;
        shapes.is_wanted(server, &tool, place.len()).then(|| Learning {
            server: server.clone(),
            tool: tool.into_owned(),
            result: message.slice(place),
            gateway: session.gateway().clone(),
            caller: session.caller(),
        })
    }

    /// How the answer must be changed; `None` if it passes unchanged. Most answers are short, and cost only a
    /// comparison.
    pub(crate) fn wanted(&self, session: &Session, server: &ServerName, answer: &Answer) -> Option<Fitting> {
        let Answer::Response { head: Head { payload: Some(payload), .. }, .. } = answer else { return None };
        if payload.len() <= LEAST_THRESHOLD && self.filter.is_none() {
            return None;
        }
        let place = self.place(answer)?;
        if matches!(self.way, CalledBy::Name) && !is_for_listed(session, server) {
            return None;
        }
        let tool = string_value(&self.tool)?;
        let threshold = self.threshold(session, server, &tool);
        if threshold.is_none_or(|threshold| place.len() <= threshold) && self.filter.is_none() {
            return None;
        }
        let layout = Arc::clone(&session.gateway().snapshots.borrow().layout);
        let schema =
            matches!(self.way, CalledBy::Name).then(|| output_schema(session, server, &tool)).flatten();
        let tool = name::expose(server, &tool, layout.name_limit).into();
        let read = self.way.read_result(session, server);
        let (way, filter) = (self.way.clone(), self.filter.clone());
        Some(Fitting { place, tool, threshold, schema, way, read, filter })
    }

    fn threshold(&self, session: &Session, server: &ServerName, tool: &str) -> Option<usize> {
        let takes = session.host_view().takes();
        let snapshots = session.gateway().snapshots.borrow();
        let listed = matches!(self.way, CalledBy::Name);
        match snapshots.layout.exposures.get(server) {
            Some(exposure) => exposure.results.threshold(tool, listed, takes),
            None => plugbay_core::fit::ResultRules::default().threshold(tool, listed, takes),
        }
    }
}

#[cfg(test)]
impl Fit {
    pub(super) fn any() -> Self {
        Self { tool: Bytes::new(), way: CalledBy::Name, filter: None, in_task: false }
    }
}

/// A result whose shape is to be learned.
pub(crate) struct Learning {
    server: ServerName,
    tool: String,
    result: Bytes,
    gateway: Gateway,
    caller: Owner,
}

impl Learning {
    /// Learns in another thread, so that no answer waits for it.
    pub(crate) fn begin(self) {
        let Self { server, tool, result, gateway, caller } = self;
        let (shapes, catalog) =
            (Arc::clone(&gateway.usage.shapes), Arc::clone(&gateway.snapshots.borrow().catalog));
        let work = move || {
            if let Some(entry) = catalog.get(&server).filter(|_| !is_error(&result)) {
                shapes.learn(&server, &entry.offer, &tool, &parts::json_of(&result));
            }
        };
        tokio::spawn(async move { gateway.workers.run(caller, work).await });
    }
}

/// Whether the user wants outlines for tools that hosts call by name.
fn is_for_listed(session: &Session, server: &ServerName) -> bool {
    let snapshots = session.gateway().snapshots.borrow();
    snapshots.layout.exposures.get(server).is_some_and(|exposure| exposure.results.listed)
}

/// The output schema of a tool. A host that lists the tool may check results against it.
fn output_schema(session: &Session, server: &ServerName, tool: &str) -> Option<CompiledSchema> {
    let snapshot = session.snapshot();
    let definition = &snapshot.catalog.get(server)?.offer.tool(tool)?.definition;
    let schema = Members::find(definition, &(0..definition.len()), "outputSchema")?;
    Some(CompiledSchema::new(&definition[schema]))
}

/// How the result of a call must be changed.
#[derive(Debug)]
pub(crate) struct Fitting {
    /// Where the result is in the answer.
    place: Span,
    /// The tool, by the name that the host knows.
    tool: Arc<str>,
    /// An answer with more bytes than this is replaced by its outline.
    threshold: Option<usize>,
    /// The schema against which the host may check the result.
    schema: Option<CompiledSchema>,
    way: CalledBy,
    /// The name of `read_result` for this host.
    read: &'static str,
    filter: Option<Arc<str>>,
}

/// The changed answer, and the handle of the result that was stored for it.
pub(crate) struct Fitted {
    pub(crate) answer: Answer,
    pub(crate) stored: Option<Handle>,
}

impl Fitting {
    /// Makes the host's answer, and stores the result if the answer does not hold all of it. If something
    /// fails, the answer stays unchanged.
    pub(crate) async fn apply(self, session: &Arc<Session>, answer: Answer) -> Fitted {
        let Answer::Response { message, head, era } = answer else { return Fitted { answer, stored: None } };
        let (place, result) = (self.place.clone(), message.slice(self.place.clone()));
        let made = match self.filter.clone() {
            Some(filter) if !is_error(&result) => self.filtered(session, result, &filter).await,
            _ => self.outlined(session, result).await,
        };
        let replaced = made.and_then(|(result, stored)| {
            let message = Frame::edited(&message, &[(place, &result)]).into_bytes();
            let head = Head::read(&message).ok()?;
            Some(Fitted { answer: Answer::Response { message, head, era }, stored })
        });
        replaced.unwrap_or(Fitted { answer: Answer::Response { message, head, era }, stored: None })
    }

    /// The result with an outline in place of its content; `None` if it stays unchanged.
    async fn outlined(self, session: &Arc<Session>, result: Bytes) -> Option<(Vec<u8>, Option<Handle>)> {
        let (threshold, store) = (self.threshold?, session.result_store());
        let work = move || {
            let handle = Results::new_handle()?;
            let outline = parts::outlined(&result, threshold, &self.closing(handle), self.schema.as_ref())?;
            store.put(handle, &self.tool, &result)?;
            Some((outline, Some(handle)))
        };
        session.gateway().workers.run(session.caller(), work).await.ok().flatten()
    }

    /// The values that the filter gives for the result. If it gives none, the result is stored, because the
    /// call was made.
    async fn filtered(
        self,
        session: &Arc<Session>,
        result: Bytes,
        filter: &str,
    ) -> Option<(Vec<u8>, Option<Handle>)> {
        let gateway = session.gateway();
        let input = {
            let result = result.clone();
            gateway.workers.run(session.caller(), move || parts::json_of(&result)).await.ok()?
        };
        let outcome = gateway.results.filter(filter.to_owned(), input.clone()).await;
        let store = session.result_store();
        let work = move || match outcome {
            Ok(FilterOutput { values, cut: false, .. }) => {
                let values = parts::with_text(&result, &String::from_utf8_lossy(&values), false);
                if self.threshold.is_none_or(|threshold| values.len() <= threshold) {
                    return Some((values, None));
                }
                let (handle, values) = (Results::new_handle()?, Bytes::from(values));
                let outline = parts::outlined(&values, self.threshold?, &self.closing(handle), None);
                let outline = outline.unwrap_or_else(|| values.to_vec());
                store.put(handle, &self.tool, &values)?;
                Some((outline, Some(handle)))
            }
            Ok(FilterOutput { values, count, .. }) => {
                let why =
                    format!("the filter gives too much: {count} values in the first {} bytes", values.len());
                self.unfiltered(&store, &result, &input, &why)
            }
            Err(error) => self.unfiltered(&store, &result, &input, &error.to_string()),
        };
        gateway.workers.run(session.caller(), work).await.ok().flatten()
    }

    /// Says why a filter gave nothing, and where the result is.
    fn unfiltered(
        &self,
        store: &Store,
        result: &[u8],
        value: &[u8],
        why: &str,
    ) -> Option<(Vec<u8>, Option<Handle>)> {
        let handle = Results::new_handle()?;
        let mut text = format!("{} was called, and has answered. jq: {}", word(&self.tool), on_one_line(why));
        let _ = write!(text, "\nits result: {}\n{}", parts::shape_of(value), self.closing(handle));
        let told = parts::with_text(result, &text, true);
        store.put(handle, &self.tool, result)?;
        Some((told, Some(handle)))
    }

    /// The last line of an outline: how a model reads more, in the form in which it made the call.
    fn closing(&self, handle: Handle) -> String {
        closing(&self.way, self.read, handle)
    }
}

fn closing(way: &CalledBy, read: &str, handle: Handle) -> String {
    let arguments = format!(r#"{{"result":"{handle}","lines":"1-80"}}"#);
    let quoted = |name: &Bytes| string_value(name).map(Cow::into_owned).unwrap_or_default();
    let reads = match way {
        CalledBy::Name => format!("{read} {arguments}"),
        CalledBy::Execute(name) => format!(r#"{} {{"name":"{read}","arguments":{arguments}}}"#, quoted(name)),
        CalledBy::Suite(name) => {
            format!(r#"{} {{"action":"call","subtool":"{read}","args":{arguments}}}"#, quoted(name))
        }
    };
    format!(
        "result: \"{handle}\". Parts of it: {reads}, or \"jq\", \"grep\", \"page\" for \"lines\". \
         {{\"$result\":…}} as an argument of another call passes it on."
    )
}

fn is_error(result: &[u8]) -> bool {
    Members::find(result, &(0..result.len()), "isError").is_some_and(|flag| &result[flag] == b"true")
}
