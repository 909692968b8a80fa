//! One server as an actor: handle, messages, state, and the actor that owns it all.

mod actor;
mod clock;
mod message;
mod opening;
mod request;
mod state;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use plugbay_core::{
    catalog::Dialect, exchange::Tickets, failure::CallError, host_registry::HostRegistry, name::ServerName,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};

pub(crate) use message::Command;
pub use message::{Condition, Report, Status};

use crate::{link::Launcher, spec::ServerSpec};

/// A handle to the actor of one server. Cheap to clone; [`ServerHandle::stop`] ends the actor.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    pub spec: Arc<ServerSpec>,
    commands: mpsc::UnboundedSender<Command>,
    status: watch::Receiver<Status>,
}

/// What all servers share.
#[derive(Clone)]
pub struct ServerContext {
    pub launcher: Launcher,
    pub tickets: Arc<Tickets>,
    /// The hosts that can answer server requests, and their capabilities.
    pub host_registry: Arc<HostRegistry>,
    pub reports: mpsc::UnboundedSender<Report>,
    /// Notified when the [`Status`] of a server has changed.
    pub status_changed: Arc<Notify>,
}

impl ServerHandle {
    /// Starts the actor, not yet the server. `known` is the dialect of the last opening.
    pub fn spawn(spec: ServerSpec, known: Option<Dialect>, context: ServerContext) -> Self {
        let spec = Arc::new(spec);
        let (commands, inbox) = mpsc::unbounded_channel();
        let (status_sender, status) = watch::channel(Status::default());
        let actor = actor::Actor::new(Arc::clone(&spec), known, context, inbox, status_sender);
        tokio::spawn(actor.run());
        Self { spec, commands, status }
    }

    pub fn name(&self) -> &ServerName {
        &self.spec.name
    }

    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Starts the server if it is not up, and lists again.
    pub fn refresh(&self) {
        let _ = self.commands.send(Command::Refresh);
    }

    /// Ends the server and its actor; returns when no process is left.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).is_ok() {
            let _ = stopped.await;
        }
    }

    pub(crate) fn send(&self, command: Command) {
        // The actor outlives every handle but not a stop; then the call ends here.
        if let Err(mpsc::error::SendError(Command::Forward(call))) = self.commands.send(command) {
            let error = CallError::Gone(self.spec.name.clone());
            call.caller.answered(call.ticket, plugbay_core::exchange::Answer::Failed(error));
        }
    }
}
