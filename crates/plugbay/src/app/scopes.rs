//! The scope of each server of a gateway, and how `plugbay status` shows it.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use plugbay_core::{
    capabilities::ClientCapabilities,
    host_registry::HostRegistry,
    name::ServerName,
    scope::{self, Launch, Scope, ScopeChoice},
};
use plugbay_upstream::spec::{ServerSpec, Transport};

use super::{App, InUse};
use crate::config::ServerSettings;

/// The scope of a server, and how many of its processes run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeStatus {
    pub scope: ScopeChoice,
    pub running: usize,
    /// How many may run, if each session has its own.
    pub limit: Option<usize>,
    /// The folder that it runs for, if each folder has its own.
    pub folder: Option<String>,
    /// Whether it is behind a URL, and so has no process here.
    pub remote: bool,
}

impl App {
    /// The scope of each server that can be started.
    pub fn scopes(&self) -> BTreeMap<ServerName, ScopeStatus> {
        let folder = self.places.folder.to_string_lossy();
        let status = |one: &InUse| ScopeStatus {
            scope: one.scope.clone(),
            running: one.attached.running(),
            limit: (one.scope.scope == Scope::Session).then_some(one.limit),
            folder: (one.scope.scope == Scope::Project).then(|| folder.clone().into_owned()),
            remote: matches!(one.attached.handle().spec.transport, Transport::Http(_)),
        };
        self.lock().iter().map(|(name, one)| (name.clone(), status(one))).collect()
    }
}

/// The scope of a server in this project, with the reason.
pub(super) fn scope_of(server: &ServerSettings, spec: &ServerSpec, project: &Path) -> ScopeChoice {
    let cwd;
    let launch = match &spec.transport {
        Transport::Stdio(stdio) => {
            cwd = stdio.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
            Launch::Command { command: &stdio.command, args: &stdio.args, cwd: cwd.as_deref() }
        }
        Transport::Http(http) if http.remote => Launch::Remote,
        Transport::Http(_) => Launch::Url,
    };
    scope::choose(&launch, server.sharing.scope, &project.to_string_lossy())
}

/// The host registry of a gateway.
pub(super) fn host_registry(many: bool) -> Arc<HostRegistry> {
    let hosts = HostRegistry::default();
    if many {
        // Servers are told all capabilities at once: a legacy server learns them only at `initialize`, so
        // would have to be restarted for the next host.
        hosts.add_capabilities(ClientCapabilities::ALL);
    }
    Arc::new(hosts)
}
