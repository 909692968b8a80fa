//! All servers by name: what the host side forwards through.

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

use crate::server::{Command, ServerHandle};

/// A std lock around an `Arc`: held for one clone, never across an await. A reload swaps the whole.
#[derive(Debug, Default)]
pub struct Pool {
    roster: RwLock<Arc<Roster>>,
    /// How many have the tools of a server in sight; by name, so that it outlives a reload.
    held: Mutex<BTreeMap<ServerName, usize>>,
}

/// The servers of one configuration.
#[derive(Debug, Default)]
pub struct Roster {
    pub running: BTreeMap<ServerName, ServerHandle>,
    /// Those that cannot be started as they are configured, and why.
    pub broken: BTreeMap<ServerName, Arc<Failure>>,
}

impl Pool {
    pub fn roster(&self) -> Arc<Roster> {
        Arc::clone(&self.roster.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another set of servers in place and gives back the old one.
    pub fn replace(&self, roster: Roster) -> Arc<Roster> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in held.keys().filter_map(|server| roster.running.get(server)) {
            handle.send(Command::Held(true));
        }
        let mut place = self.roster.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, Arc::new(roster))
    }

    /// Tells the server when the first holds it, and when the last lets go.
    fn hold_on(&self, server: &ServerName, change: impl FnOnce(usize) -> usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let before = held.remove(server).unwrap_or_default();
        let now = change(before);
        if now > 0 {
            held.insert(server.clone(), now);
        }
        if let Some(handle) = self.roster().running.get(server).filter(|_| (before > 0) != (now > 0)) {
            handle.send(Command::Held(now > 0));
        }
    }
}

impl Servers for Pool {
    fn forward(&self, server: &ServerName, call: Call) {
        let roster = self.roster();
        if let Some(handle) = roster.running.get(server) {
            return handle.send(Command::Forward(call));
        }
        let error = match roster.broken.get(server) {
            Some(failure) => CallError::Down { server: server.clone(), failure: Arc::clone(failure) },
            None => CallError::Gone(server.clone()),
        };
        call.caller.answered(call.ticket, Answer::Failed(error));
    }

    fn refresh(&self) {
        for handle in self.roster().running.values() {
            handle.refresh();
        }
    }

    fn warm(&self, server: &ServerName, warmed: Warmed) {
        let roster = self.roster();
        match (roster.running.get(server), roster.broken.get(server)) {
            (Some(handle), _) => handle.send(Command::Warm(warmed)),
            (None, Some(failure)) => warmed.tell(Err(Arc::clone(failure))),
            (None, None) => {}
        }
    }

    fn hold(&self, server: &ServerName) {
        self.hold_on(server, |count| count + 1);
    }

    fn release(&self, server: &ServerName) {
        self.hold_on(server, |count| count.saturating_sub(1));
    }

    fn cancel(&self, server: &ServerName, ticket: Ticket, notification: Draft) {
        if let Some(handle) = self.roster().running.get(server) {
            handle.send(Command::Cancel { ticket, notification });
        }
    }

    fn reply(&self, server: &ServerName, server_request: Ticket, reply: Reply) {
        if let Some(handle) = self.roster().running.get(server) {
            handle.send(Command::Reply { server_request, reply });
        }
    }

    fn notify(&self, server: &ServerName, notification: Bytes) {
        if let Some(handle) = self.roster().running.get(server) {
            handle.send(Command::Notify(notification));
        }
    }

    fn roots_changed(&self, notification: Bytes) {
        for handle in self.roster().running.values() {
            handle.send(Command::RootsChanged(notification.clone()));
        }
    }

    fn watch(&self, server: &ServerName, what: SubscriptionTarget) {
        if let Some(handle) = self.roster().running.get(server) {
            handle.send(Command::Watch(what));
        }
    }

    fn unwatch(&self, server: &ServerName, what: SubscriptionTarget) {
        if let Some(handle) = self.roster().running.get(server) {
            handle.send(Command::Unwatch(what));
        }
    }

    fn log_level_changed(&self) {
        for handle in self.roster().running.values() {
            handle.send(Command::LogLevelChanged);
        }
    }

    fn client_capabilities_grew(&self) {
        for handle in self.roster().running.values() {
            handle.send(Command::AudienceGrew);
        }
    }
}
