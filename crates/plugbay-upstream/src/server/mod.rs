//! One server as an actor: handle, messages, state, and the actor that owns it all.

mod actor;
mod clock;
mod message;
mod opening;
mod request;
mod state;
#[cfg(test)]
pub(crate) mod tests;

use std::{path::PathBuf, sync::Arc};

use plugbay_core::{
    catalog::Dialect, credentials::Credentials, exchange::Tickets, failure::CallError,
    host_registry::HostRegistry, name::ServerName, start::Priority,
};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use message::Command;
pub use message::{Condition, ListTerms, Report, Status};

use crate::{
    http::ServerCredentials,
    link::Launcher,
    observers::Observers,
    slots::{SlotRequest, SlotUser, Slots},
    spec::{HttpSpec, ServerSpec, Transport},
    starts::Starts,
};

/// Makes the credentials of a server behind a URL; `None` if it has only its configured headers.
pub type CredentialsFor = Arc<dyn Fn(&ServerName, &HttpSpec) -> Option<Arc<dyn Credentials>> + Send + Sync>;

/// A handle to the actor of one server. Cheap to clone; [`ServerHandle::stop`] ends the actor.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    pub spec: Arc<ServerSpec>,
    /// The number of this user among those that share the server.
    user: u64,
    commands: mpsc::UnboundedSender<Command>,
    status: watch::Receiver<Status>,
}

/// Everything that a server's actor works with.
#[derive(Clone)]
pub struct ServerContext {
    pub launcher: Launcher,
    pub credentials_for: CredentialsFor,
    pub tickets: Arc<Tickets>,
    /// The queue of starts, with the system's data about them.
    pub starts: Arc<Starts>,
    /// The hosts that can answer server requests, and their capabilities.
    pub host_registry: Arc<HostRegistry>,
    /// The observers of what the server offers and of its [`Status`].
    pub observers: Observers,
    /// The credentials of this instance.
    pub(crate) credentials: Option<Arc<ServerCredentials>>,
    /// For the instance of a session: the slots, one of which it needs to run.
    pub(crate) slots: Option<SlotRequest>,
    /// The file of the session, removed when the last process has ended.
    pub(crate) _file: Option<Arc<OwnFile>>,
}

/// The file of a session that does not come back; removed on drop. The server's actor owns it, so that no
/// process is left that could write it again.
#[derive(Debug)]
pub(crate) struct OwnFile(pub(crate) PathBuf);

impl Drop for OwnFile {
    fn drop(&mut self) {
        // The server may never have created it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl ServerContext {
    pub fn new(
        launcher: Launcher,
        tickets: Arc<Tickets>,
        starts: Arc<Starts>,
        host_registry: Arc<HostRegistry>,
        observers: Observers,
    ) -> Self {
        Self {
            launcher,
            credentials_for: no_credentials(),
            tickets,
            starts,
            host_registry,
            observers,
            credentials: None,
            slots: None,
            _file: None,
        }
    }
}

/// For servers that have only their configured headers.
pub(crate) fn no_credentials() -> CredentialsFor {
    Arc::new(|_, _| None)
}

impl ServerHandle {
    /// Starts the actor, but not yet the server. `known` is the dialect of the last opening.
    pub fn spawn(spec: ServerSpec, known: Option<Dialect>, context: ServerContext) -> Self {
        Self::spawn_in(None, Arc::new(spec), known, context)
    }

    /// The same for an instance that runs only in one of these slots.
    pub(crate) fn spawn_in(
        slots: Option<(Arc<Slots>, SlotUser)>,
        spec: Arc<ServerSpec>,
        known: Option<Dialect>,
        context: ServerContext,
    ) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let slots = slots.map(|(slots, user)| SlotRequest { slots, user, commands: commands.downgrade() });
        let credentials = match &spec.transport {
            Transport::Http(http) => (context.credentials_for)(&spec.name, http).map(ServerCredentials::new),
            Transport::Stdio(_) => None,
        };
        let context = ServerContext { credentials, slots, ..context };
        let (status_sender, status) = watch::channel(Status::default());
        let actor = actor::Actor::new(Arc::clone(&spec), known, context, inbox, status_sender);
        tokio::spawn(actor.run());
        Self { spec, user: 0, commands, status }
    }

    /// The same handle for one of several users.
    pub(crate) fn of_user(&self, user: u64) -> Self {
        Self { user, ..self.clone() }
    }

    /// Sets whether the server must keep running for this user when it is idle.
    pub(crate) fn hold(&self, held: bool) {
        self.send(Command::Hold { user: self.user, held });
    }

    pub fn name(&self) -> &ServerName {
        &self.spec.name
    }

    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Starts the server if it is not up, and lists again. Nobody waits for it.
    pub fn refresh(&self) {
        self.refresh_for(Priority::Behind);
    }

    /// The same, with the urgency of a start.
    pub fn refresh_for(&self, priority: Priority) {
        let _ = self.commands.send(Command::Refresh(priority));
    }

    /// Ends the server and its actor; returns when no process is left.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).is_ok() {
            let _ = stopped.await;
        }
    }

    pub(crate) fn send(&self, command: Command) {
        // The actor outlives every handle, but not a stop. After a stop the call fails here.
        if let Err(mpsc::error::SendError(Command::Forward(call))) = self.commands.send(command) {
            let error = CallError::Gone(self.spec.name.clone());
            call.caller.answered(call.ticket, plugbay_core::exchange::Answer::Failed(error));
        }
    }
}
