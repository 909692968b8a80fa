//! Runs one case of calls over pipes.

use std::time::Duration;

use crate::Outcome;
use crate::batch::{Batch, Done};
use crate::calls::case::Case;
use crate::host::Host;
use crate::payload::{IdPlace, Payload};
use crate::rounds::{OpenRoute, Series, alternate};
use crate::sandbox::{Sandbox, Server};
use crate::stub::TOOLS;
use crate::target::{Target, exposed};

const SERVER: &str = "stub";

/// Until a gateway with an empty cache lists all tools.
const LISTING: Duration = Duration::from_secs(10);

pub(crate) fn run(case: &Case, targets: &[Target], rounds: u32, id_last: bool) -> Outcome<Vec<Series>> {
    let id_place = if id_last { IdPlace::Last } else { IdPlace::First };
    let payload = Payload::new(case.kind, case.size.bytes(), id_place);
    let open = |target: &Target| Pipes::open(target, case, &payload);
    alternate(targets, |target| &target.name, open, case.calls, rounds)
}

struct Pipes<'a> {
    host: Host,
    tool: String,
    case: &'a Case,
    payload: &'a Payload,
    /// After the host: the process ends before its home is removed.
    _sandbox: Sandbox,
}

impl<'a> Pipes<'a> {
    fn open(target: &Target, case: &'a Case, payload: &'a Payload) -> Outcome<Self> {
        let sandbox = Sandbox::new()?;
        let id_last = payload.before.len() > payload.after.len();
        let server = Server::new(SERVER, id_last.then(|| "--id-last".to_owned()));
        let mut host = target.open(&sandbox, &[server])?;
        let listed = host.tools_until(TOOLS, LISTING)?;
        let tool = exposed(&listed, SERVER, case.kind.tool())
            .ok_or_else(|| format!("{} is not in its list", case.kind.tool()))?
            .to_owned();
        Ok(Self { host, tool, case, payload, _sandbox: sandbox })
    }
}

impl OpenRoute for Pipes<'_> {
    fn pid(&self) -> u32 {
        self.host.pid()
    }

    fn calls(&mut self, calls: usize, full_check: bool) -> Outcome<Done> {
        let batch = Batch {
            tools: std::slice::from_ref(&self.tool),
            size: self.case.size.bytes(),
            expected: self.payload,
            calls,
            in_flight: self.case.in_flight,
            full_check,
        };
        batch.run(&mut self.host)
    }
}
