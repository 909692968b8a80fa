//! A host over HTTP that repeats one call on each of its connections.

use crate::Outcome;
use crate::batch::Done;
use crate::http::{batch::Batch, client::Connection, service::Service};
use crate::payload::Payload;
use crate::rounds::OpenRoute;
use crate::sandbox::Sandbox;

pub(crate) struct Sockets<'a> {
    pub(crate) connections: Vec<Connection>,
    /// The `params` of the call.
    pub(crate) params: String,
    pub(crate) payload: &'a Payload,
    /// The process that the driver talks to: the gateway, or the stub itself.
    pub(crate) front: Service,
    /// The stub behind a gateway, if it is not the gateway's own child.
    pub(crate) _stub: Option<Service>,
    /// Dropped last: the processes must end before their home is removed.
    pub(crate) _sandbox: Sandbox,
}

impl OpenRoute for Sockets<'_> {
    fn pid(&self) -> u32 {
        self.front.pid()
    }

    fn calls(&mut self, calls: usize, full_check: bool) -> Outcome<Done> {
        let batch = Batch { params: &self.params, expected: self.payload, calls, full_check };
        batch.run(&mut self.connections, self.front.group())
    }
}
