//! A scripted host: it records everything that the actor sends it, and answers when the test wants.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    exchange::{
        Answer, Call, Caller, ListChange, Reply, ServerNotification, ServerRequest, ServerRequestError,
        Ticket,
    },
    task::TaskRole,
    wire::{Draft, Head, Span},
};
use tokio::sync::watch;

use super::{
    harness::{Harness, text_of},
    soon,
};
use crate::server::Command;

/// One host, or one request of a host.
#[derive(Debug, Default)]
pub(crate) struct Host {
    refuses: Option<ServerRequestError>,
    owner: Option<[u8; 32]>,
    /// Whether its user can log in.
    logs_in: bool,
    events: watch::Sender<Vec<HostEvent>>,
    read: Mutex<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostEvent {
    /// A server request: its number, the call that carries it, and its text.
    Request(Ticket, Option<Ticket>, String),
    Withdrawn(Ticket, String),
    Completed(String),
    /// A notification of the server, or a progress notification.
    Notification(String),
    Answered(Ticket, String),
    /// The lists have changed during a call.
    ListsChanging(Ticket),
    /// Hosts can see the new lists.
    ListsChanged(Ticket),
}

/// Records the end of a list change.
struct Guard(watch::Sender<Vec<HostEvent>>, Ticket);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.send_modify(|all| all.push(HostEvent::ListsChanged(self.1)));
    }
}

impl Host {
    pub(crate) fn new(refuses: Option<ServerRequestError>) -> Arc<Self> {
        Arc::new(Self { refuses, ..Self::default() })
    }

    /// A host whose user can log in at servers.
    pub(crate) fn logging_in() -> Arc<Self> {
        Arc::new(Self { logs_in: true, ..Self::default() })
    }

    /// One of the requests of a host, identified by its owner.
    pub(crate) fn owned_by(owner: Option<u8>) -> Arc<Self> {
        let owner = owner.map(|owner| [owner; 32]);
        Arc::new(Self { owner, ..Self::default() })
    }

    fn record(&self, event: HostEvent) {
        self.events.send_modify(|all| all.push(event));
    }

    pub(crate) async fn next_event(&self) -> HostEvent {
        let mut read = *self.read.lock().unwrap();
        let mut events = self.events.subscribe();
        let next = soon("an event", events.wait_for(|all| all.len() > read)).await.unwrap()[read].clone();
        read += 1;
        *self.read.lock().unwrap() = read;
        next
    }

    pub(crate) async fn next_request(&self) -> (Ticket, Option<Ticket>, String) {
        match self.next_event().await {
            HostEvent::Request(number, during, text) => (number, during, text),
            other => panic!("{other:?} instead of a server request"),
        }
    }

    /// How many events were recorded.
    pub(crate) fn received(&self) -> usize {
        self.events.borrow().len()
    }

    pub(crate) fn expect_nothing_more(&self) {
        let all = self.events.borrow();
        assert_eq!(all[*self.read.lock().unwrap()..], [], "unexpected");
    }
}

impl Caller for Host {
    fn answered(&self, ticket: Ticket, answer: Answer) {
        self.record(HostEvent::Answered(ticket, text_of(&answer)));
    }

    fn owner(&self) -> Option<[u8; 32]> {
        self.owner
    }

    fn progressed(&self, ticket: Ticket, _: Bytes, _: Span) {
        self.record(HostEvent::Notification(format!("progress of {}", ticket.0)));
    }

    fn lists_changing(&self, call: Ticket, change: &ListChange) {
        self.record(HostEvent::ListsChanging(call));
        change.keep(Box::new(Guard(self.events.clone(), call)));
    }

    fn notified(&self, _: Option<Ticket>, server_notification: &ServerNotification) {
        self.record(HostEvent::Notification(
            String::from_utf8(server_notification.message.to_vec()).unwrap(),
        ));
    }

    fn client_capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { form: true, roots: true, roots_changes: true, ..ClientCapabilities::NONE }
    }

    fn can_log_in(&self, _: Ticket) -> bool {
        self.logs_in
    }

    fn server_request(
        &self,
        during: Option<Ticket>,
        server_request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        if let Some(why) = self.refuses {
            return Err(why);
        }
        let text = String::from_utf8(server_request.message.to_vec()).unwrap();
        self.record(HostEvent::Request(server_request.number, during, text));
        Ok(())
    }

    fn withdrawn(&self, _: Option<Ticket>, server_request: Ticket, notification: Draft) {
        let text = String::from_utf8(notification.render(server_request.0).to_vec()).unwrap();
        self.record(HostEvent::Withdrawn(server_request, text));
    }

    fn completed(&self, notification: Bytes) {
        self.record(HostEvent::Completed(String::from_utf8(notification.to_vec()).unwrap()));
    }
}

impl Harness {
    pub(crate) fn call_by(&self, host: &Arc<Host>, tool: &str) -> Ticket {
        self.call_with_role(host, tool, TaskRole::None)
    }

    /// A call with a role in an MCP task.
    pub(crate) fn call_with_role(&self, host: &Arc<Host>, tool: &str, task_role: TaskRole) -> Ticket {
        let ticket = self.context.tickets.next();
        let call = self.calls.call(ticket, tool, None);
        self.handle.send(Command::Forward(Call { caller: host.clone(), task_role, ..call }));
        ticket
    }

    pub(crate) fn reply(&self, server_request: Ticket, response: &str) {
        let message = Bytes::from(response.replace('?', &server_request.0.to_string()));
        let head = Head::read(&message).unwrap();
        self.handle.send(Command::Reply { server_request, reply: Reply::Response { message, head } });
    }

    pub(crate) fn listens(&self, host: &Arc<Host>) {
        let host: Arc<dyn Caller> = host.clone();
        self.context.host_registry.joined(Arc::downgrade(&host));
    }
}
