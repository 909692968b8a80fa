//! All servers by name. The host side forwards its calls through this.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use bytes::Bytes;
use plugbay_core::{
    exchange::{Answer, Call, Reply, Servers, SubscriptionTarget, Ticket, Warmed},
    failure::{CallError, Failure},
    name::ServerName,
    wire::Draft,
};

use crate::{
    server::{Command, Condition, ServerHandle},
    session_pool::SessionGroup,
};

/// All servers of the gateway. A reload replaces the whole set.
#[derive(Debug, Default)]
pub struct Pool {
    // A std lock around an `Arc`: held for one clone, never across an await.
    servers: RwLock<Arc<ServerSet>>,
    /// How many host views show the tools of a server. Kept by name, so that it outlives a reload.
    held: Mutex<BTreeMap<ServerName, usize>>,
}

/// The servers of one configuration.
#[derive(Debug, Default)]
pub struct ServerSet {
    pub handles: BTreeMap<ServerName, ServerHandle>,
    /// Servers that give each session an instance of its own; the handle of such a server only lists.
    pub per_session: BTreeMap<ServerName, Arc<SessionGroup>>,
    /// Servers whose configuration makes a start impossible, with the reasons.
    pub invalid: BTreeMap<ServerName, Arc<Failure>>,
}

impl Pool {
    pub fn servers(&self) -> Arc<ServerSet> {
        Arc::clone(&self.servers.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the servers and returns the old ones.
    pub fn replace(&self, servers: ServerSet) -> Arc<ServerSet> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in held.keys().filter_map(|server| servers.lasting(server)) {
            handle.hold(true);
        }
        let mut place = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, Arc::new(servers))
    }

    /// Notifies the server when its first holder comes and when its last one leaves.
    fn change_holders(&self, server: &ServerName, change: impl FnOnce(usize) -> usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let before = held.remove(server).unwrap_or_default();
        let now = change(before);
        if now > 0 {
            held.insert(server.clone(), now);
        }
        if let Some(handle) = self.servers().lasting(server).filter(|_| (before > 0) != (now > 0)) {
            handle.hold(now > 0);
        }
    }

    /// Sends a command; if the server is gone, it is dropped.
    pub(crate) fn send(&self, server: &ServerName, command: Command) {
        if let Some(handle) = self.servers().handles.get(server) {
            handle.send(command);
        }
    }
}

impl ServerSet {
    /// A server that hosts use. One that only lists for sessions is not kept running.
    fn lasting(&self, server: &ServerName) -> Option<&ServerHandle> {
        self.handles.get(server).filter(|_| !self.per_session.contains_key(server))
    }
}

impl Servers for Pool {
    fn forward(&self, server: &ServerName, call: Call) {
        let servers = self.servers();
        if let Some(handle) = servers.handles.get(server) {
            return handle.send(Command::Forward(call));
        }
        let error = match servers.invalid.get(server) {
            Some(failure) => CallError::Down { server: server.clone(), failure: Arc::clone(failure) },
            None => CallError::Gone(server.clone()),
        };
        call.caller.answered(call.ticket, Answer::Failed(error));
    }

    fn refresh(&self, server: &ServerName) {
        if let Some(handle) = self.servers().handles.get(server) {
            handle.refresh();
        }
    }

    fn is_idle(&self, server: &ServerName) -> bool {
        let is_idle = |handle: &ServerHandle| handle.status().borrow().condition == Condition::Idle;
        self.servers().handles.get(server).is_some_and(is_idle)
    }

    fn warm(&self, server: &ServerName, warmed: Warmed) {
        let servers = self.servers();
        match (servers.handles.get(server), servers.invalid.get(server)) {
            (Some(handle), _) => handle.send(Command::Warm(warmed)),
            (None, Some(failure)) => warmed.tell(Err(Arc::clone(failure))),
            (None, None) => {}
        }
    }

    fn hold(&self, server: &ServerName) {
        self.change_holders(server, |count| count + 1);
    }

    fn release(&self, server: &ServerName) {
        self.change_holders(server, |count| count.saturating_sub(1));
    }

    fn cancel(&self, server: &ServerName, ticket: Ticket, notification: Draft) {
        self.send(server, Command::Cancel { ticket, notification });
    }

    fn reply(&self, server: &ServerName, server_request: Ticket, reply: Reply) {
        self.send(server, Command::Reply { server_request, reply });
    }

    fn notify(&self, server: &ServerName, notification: Bytes) {
        self.send(server, Command::Notify(notification));
    }

    fn roots_changed(&self, notification: Bytes) {
        for handle in self.servers().handles.values() {
            handle.send(Command::RootsChanged(notification.clone()));
        }
    }

    fn watch(&self, server: &ServerName, what: SubscriptionTarget) {
        self.send(server, Command::Subscribe(what));
    }

    fn unwatch(&self, server: &ServerName, what: SubscriptionTarget) {
        self.send(server, Command::Unsubscribe(what));
    }

    fn log_level_changed(&self) {
        for handle in self.servers().handles.values() {
            handle.send(Command::LogLevelChanged);
        }
    }

    fn client_capabilities_grew(&self) {
        for handle in self.servers().handles.values() {
            handle.send(Command::ClientCapabilitiesGrew);
        }
    }
}
