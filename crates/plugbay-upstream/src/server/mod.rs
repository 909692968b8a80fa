//! One server as an actor: a handle to talk to, messages, and the task that owns everything.

mod actor;
mod listing;
mod message;
mod opening;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use plugbay_core::{
    catalog::Dialect, exchange::Tickets, failure::CallError, host_registry::HostRegistry, name::ServerName,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};

pub(crate) use message::Command;
pub use message::{Condition, Report, Status};
pub(crate) use opening::error_text;

use crate::{link::Launcher, spec::ServerSpec};

/// The way to one server. Cheap to clone; the task ends by [`ServerHandle::stop`].
#[derive(Debug, Clone)]
pub struct ServerHandle {
    pub spec: Arc<ServerSpec>,
    commands: mpsc::UnboundedSender<Command>,
    status: watch::Receiver<Status>,
}

/// What all servers share.
#[derive(Clone)]
pub struct Surroundings {
    pub launcher: Launcher,
    pub tickets: Arc<Tickets>,
    /// The hosts that can be asked, and what for.
    pub host_registry: Arc<HostRegistry>,
    pub reports: mpsc::UnboundedSender<Report>,
    /// Told when the [`Status`] of a server has changed.
    pub shown: Arc<Notify>,
}

impl ServerHandle {
    /// Starts the actor, not yet the server. `known` is how the server spoke when last met.
    pub fn spawn(spec: ServerSpec, known: Option<Dialect>, surroundings: Surroundings) -> Self {
        let spec = Arc::new(spec);
        let (commands, inbox) = mpsc::unbounded_channel();
        let (status_sender, status) = watch::channel(Status::default());
        let actor = actor::Actor::new(Arc::clone(&spec), known, surroundings, inbox, status_sender);
        tokio::spawn(actor.run());
        Self { spec, commands, status }
    }

    pub fn name(&self) -> &ServerName {
        &self.spec.name
    }

    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Start if need be, and list again.
    pub fn refresh(&self) {
        let _ = self.commands.send(Command::Refresh);
    }

    /// Ends the server and its task; returns when no process of it is left.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).is_ok() {
            let _ = stopped.await;
        }
    }

    pub(crate) fn send(&self, command: Command) {
        // The task outlives every handle but not a stop; then the call ends here.
        if let Err(mpsc::error::SendError(Command::Forward(call))) = self.commands.send(command) {
            let error = CallError::Gone(self.spec.name.clone());
            call.caller.answered(call.ticket, plugbay_core::exchange::Answer::Failed(error));
        }
    }
}
