//! All servers by name: what the host side forwards through.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use plugbay_core::{
    exchange::{Answer, Call, Servers, Ticket},
    failure::CallError,
    name::ServerName,
    wire::Draft,
};

use crate::server::{Command, ServerHandle};

/// A std lock around an `Arc`: held for one clone, never across an await. A reload swaps the whole map.
#[derive(Debug, Default)]
pub struct Pool {
    servers: RwLock<Arc<BTreeMap<ServerName, ServerHandle>>>,
}

impl Pool {
    pub fn servers(&self) -> Arc<BTreeMap<ServerName, ServerHandle>> {
        Arc::clone(&self.servers.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another set of servers in place and gives back the old one.
    pub fn replace(
        &self,
        servers: BTreeMap<ServerName, ServerHandle>,
    ) -> Arc<BTreeMap<ServerName, ServerHandle>> {
        let mut place = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, Arc::new(servers))
    }
}

impl Servers for Pool {
    fn forward(&self, server: &ServerName, call: Call) {
        match self.servers().get(server) {
            Some(handle) => handle.send(Command::Forward(call)),
            None => call.caller.answered(call.ticket, Answer::Failed(CallError::Gone(server.clone()))),
        }
    }

    fn cancel(&self, server: &ServerName, ticket: Ticket, notification: Draft) {
        if let Some(handle) = self.servers().get(server) {
            handle.send(Command::Cancel { ticket, notification });
        }
    }
}
