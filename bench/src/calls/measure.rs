//! Runs one case of calls over pipes.

use std::time::Duration;

use serde_json::json;

use crate::Outcome;
use crate::calls::{case::Case, pipes::Pipes};
use crate::payload::{IdPlace, Payload};
use crate::rounds::{Series, alternate};
use crate::sandbox::{Sandbox, Server};
use crate::stub::TOOLS;
use crate::target::{Target, exposed};

const SERVER: &str = "stub";

/// Time limit until a gateway with an empty cache lists all tools.
const LISTING: Duration = Duration::from_secs(10);

pub(crate) fn run(case: &Case, targets: &[Target], rounds: u32, id_last: bool) -> Outcome<Vec<Series>> {
    let id_place = if id_last { IdPlace::Last } else { IdPlace::First };
    let payload = Payload::new(case.kind, case.size.bytes(), id_place);
    let open = |target: &Target| open(target, case, &payload);
    alternate(targets, |target| &target.name, open, case.calls, rounds)
}

fn open<'a>(target: &Target, case: &'a Case, payload: &'a Payload) -> Outcome<Pipes<'a>> {
    let sandbox = Sandbox::new()?;
    let id_last = payload.before.len() > payload.after.len();
    let server = Server::new(SERVER, id_last.then(|| "--id-last".to_owned()));
    let mut host = target.open(&sandbox, &[server])?;
    let listed = host.tools_until(TOOLS, LISTING)?;
    let tool = exposed(&listed, SERVER, case.kind.tool())
        .ok_or_else(|| format!("{} is not in its list", case.kind.tool()))?;
    let params = json!({ "name": tool, "arguments": { "size": case.size.bytes() } }).to_string();
    Ok(Pipes { host, params, case, payload, _sandbox: sandbox })
}
