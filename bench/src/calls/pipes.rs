//! A host over pipes that repeats one call.

use crate::Outcome;
use crate::batch::{Batch, Done};
use crate::calls::case::Case;
use crate::host::Host;
use crate::payload::Payload;
use crate::rounds::OpenRoute;
use crate::sandbox::Sandbox;

pub(crate) struct Pipes<'a> {
    pub(crate) host: Host,
    /// The `params` of the call.
    pub(crate) params: String,
    pub(crate) case: &'a Case,
    pub(crate) payload: &'a Payload,
    /// Dropped after the host: the process must end before its home is removed.
    pub(crate) _sandbox: Sandbox,
}

impl OpenRoute for Pipes<'_> {
    fn pid(&self) -> u32 {
        self.host.pid()
    }

    fn calls(&mut self, calls: usize, full_check: bool) -> Outcome<Done> {
        let batch = Batch {
            params: std::slice::from_ref(&self.params),
            expected: self.payload,
            calls,
            in_flight: self.case.in_flight,
            full_check,
        };
        batch.run(&mut self.host)
    }
}
