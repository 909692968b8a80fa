//! A running `plugbay serve` in a test's folder.

use std::process::{Child, Stdio};

use plugbay_testkit::{DEADLINE, wait_until};
use serde_json::Value;

use crate::harness::Harness;

/// A running gateway; it ends with its input, on drop.
pub struct Gateway<'a> {
    harness: &'a Harness,
    child: Child,
}

impl<'a> Gateway<'a> {
    #[track_caller]
    pub fn start(harness: &'a Harness) -> Self {
        let mut command = harness.command(&["serve"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { harness, child: command.spawn().expect("plugbay serves") }
    }

    /// Waits until `plugbay status` shows this gateway in the wanted state.
    #[track_caller]
    pub fn await_status(&self, fits: impl Fn(&Value) -> bool) {
        wait_until("a status of the gateway", DEADLINE, || {
            let gateways = self.harness.run(&["status", "--json"]).json()["gateways"].take();
            gateways.as_array()?.iter().find(|gateway| fits(gateway)).map(|_| ())
        });
    }

    /// Closes its input and waits for its end.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Drop for Gateway<'_> {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
