//! The declaration of a session's host, and the reports of it.

use std::sync::{Arc, PoisonError};

use plugbay_core::{capabilities::ClientCapabilities, declaration::Declaration, extension::Extensions};

use super::{Session, SessionKind};
use crate::{lists::KnownLists, message::Request};

impl Session {
    /// What the host has declared.
    pub(crate) fn declared(&self) -> Option<Arc<Declaration>> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the host's declaration: the host gets the lists that servers have for such hosts.
    fn declare(&self, capabilities: ClientCapabilities, extensions: &Extensions) {
        let declared = Declaration::new(capabilities, extensions.clone());
        let mut known = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_deref() == Some(&declared) {
            return;
        }
        let declared = Arc::new(declared);
        *known = Some(Arc::clone(&declared));
        drop(known);
        self.host_view.declaration_changed();
        (self.gateway.host_events.declared)(declared);
    }

    /// Notes the capabilities of a modern host, which declares them in each request.
    pub(crate) fn declared_in_request(&self, request: &Request) {
        let (client_capabilities, extensions) = (request.client_capabilities(), request.extensions());
        self.host_view.set_declared(client_capabilities.sampling_tools, extensions.have_apps());
        self.add_capabilities(client_capabilities, &extensions);
        if self.kind == SessionKind::SingleRequest {
            // It got the lists for its kind of host in other sessions.
            let known_lists = KnownLists::all(&self.snapshot());
            self.lock().known_lists = known_lists;
        }
        self.gateway.host_events.opened.notify_one();
    }

    /// Adds the host's capabilities to the host registry. Servers are notified of new ones.
    pub(crate) fn add_capabilities(&self, client_capabilities: ClientCapabilities, extensions: &Extensions) {
        let host_registry = &self.gateway.host_registry;
        if host_registry.add_capabilities(client_capabilities) | host_registry.add_extensions(extensions) {
            self.gateway.servers.client_capabilities_grew();
        }
        self.declare(client_capabilities, extensions);
    }
}
