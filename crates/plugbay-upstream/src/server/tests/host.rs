//! A scripted host: it records everything that the actor sends it, and answers when the test says so.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    exchange::{Answer, Call, Caller, Reply, ServerNotification, ServerRequest, ServerRequestError, Ticket},
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
#[derive(Debug)]
pub(super) struct Host {
    refuses: Option<ServerRequestError>,
    holder: Option<[u8; 32]>,
    events: watch::Sender<Vec<HostEvent>>,
    read: Mutex<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostEvent {
    /// A server request: its number, the call that carries it, and its text.
    Request(Ticket, Option<Ticket>, String),
    Withdrawn(Ticket, String),
    Completed(String),
    /// A notification of the server, or progress.
    Notification(String),
    Answered(Ticket, String),
}

impl Host {
    pub(super) fn new(refuses: Option<ServerRequestError>) -> Arc<Self> {
        Arc::new(Self { refuses, holder: None, events: watch::Sender::default(), read: Mutex::default() })
    }

    /// One of the requests of a host.
    pub(super) fn held_by(holder: Option<u8>) -> Arc<Self> {
        let holder = holder.map(|holder| [holder; 32]);
        Arc::new(Self { refuses: None, holder, events: watch::Sender::default(), read: Mutex::default() })
    }

    fn record(&self, event: HostEvent) {
        self.events.send_modify(|all| all.push(event));
    }

    pub(super) async fn next_event(&self) -> HostEvent {
        let mut read = *self.read.lock().unwrap();
        let mut events = self.events.subscribe();
        let next = soon("an event", events.wait_for(|all| all.len() > read)).await.unwrap()[read].clone();
        read += 1;
        *self.read.lock().unwrap() = read;
        next
    }

    pub(super) async fn next_request(&self) -> (Ticket, Option<Ticket>, String) {
        match self.next_event().await {
            HostEvent::Request(number, during, text) => (number, during, text),
            other => panic!("{other:?} instead of a server request"),
        }
    }

    /// How many events have come.
    pub(super) fn received(&self) -> usize {
        self.events.borrow().len()
    }

    pub(super) fn expect_nothing_more(&self) {
        let all = self.events.borrow();
        assert_eq!(all[*self.read.lock().unwrap()..], [], "unexpected");
    }
}

impl Caller for Host {
    fn answered(&self, ticket: Ticket, answer: Answer) {
        self.record(HostEvent::Answered(ticket, text_of(&answer)));
    }

    fn holder(&self) -> Option<[u8; 32]> {
        self.holder
    }

    fn progressed(&self, ticket: Ticket, _: Bytes, _: Span) {
        self.record(HostEvent::Notification(format!("progress of {}", ticket.0)));
    }

    fn told(&self, _: Option<Ticket>, server_notification: &ServerNotification) {
        self.record(HostEvent::Notification(
            String::from_utf8(server_notification.message.to_vec()).unwrap(),
        ));
    }

    fn client_capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { form: true, roots: true, roots_changes: true, ..ClientCapabilities::NONE }
    }

    fn asked(&self, during: Option<Ticket>, server_request: ServerRequest) -> Result<(), ServerRequestError> {
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
    pub(super) fn call_by(&self, host: &Arc<Host>, tool: &str) -> Ticket {
        self.call_with_role(host, tool, TaskRole::None)
    }

    /// A call with a role in an MCP task.
    pub(super) fn call_with_role(&self, host: &Arc<Host>, tool: &str, task_role: TaskRole) -> Ticket {
        let ticket = self.context.tickets.next();
        let call = self.calls.call(ticket, tool, None);
        self.handle.send(Command::Forward(Call { caller: host.clone(), task_role, ..call }));
        ticket
    }

    pub(super) fn reply(&self, server_request: Ticket, response: &str) {
        let message = Bytes::from(response.replace('?', &server_request.0.to_string()));
        let head = Head::read(&message).unwrap();
        self.handle.send(Command::Reply { server_request, reply: Reply::Response { message, head } });
    }

    pub(super) fn listens(&self, host: &Arc<Host>) {
        let host: Arc<dyn Caller> = host.clone();
        self.context.host_registry.joined(Arc::downgrade(&host));
    }
}
