//! Section `daemon`: the cost of the bridge and the daemon, compared with `plugbay serve --no-daemon`, alone
//! and behind a pump.

mod report;
mod running;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use self::running::RunningDaemon;
use crate::args::Settings;
use crate::batch::Done;
use crate::calls::{
    case::{self, Case, Size},
    pipes::Pipes,
};
use crate::conditions::Conditions;
use crate::host::Host;
use crate::payload::{IdPlace, Kind, Payload};
use crate::process;
use crate::rounds::{OpenRoute, Series, alternate};
use crate::sandbox::{Sandbox, Server};
use crate::stats::{median, millis};
use crate::stub::TOOLS;
use crate::target::{Target, exposed};
use crate::{Outcome, gateway, output};

const PLAIN: &str = "plain";
/// The lower bound: a process between host and gateway that only copies bytes.
const PUMPED: &str = "pumped";
const DAEMON: &str = "daemon";
const SERVER: &str = "stub";
const SERVERS: usize = 5;

/// Time limit until a gateway with an empty cache lists all tools.
const LISTING: Duration = Duration::from_secs(30);

/// The figures of windows that open while the daemon is running.
struct Windows {
    /// Time from the spawn until the tools are listed.
    first_list_ms: Option<f64>,
    /// Memory of a bridge that no other process shares.
    private_kib: Option<u64>,
}

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let binary = gateway::find(settings.gateway.as_deref())?;
    let targets = [
        Target::plugbay(PLAIN, binary.clone(), Some("all".to_owned())),
        Target::pumped(PUMPED, binary.clone()),
        Target::daemon(DAEMON, binary.clone()),
    ];
    let (conditions, (rows, windows)) = Conditions::during(settings, |rounds| {
        let mut rows = Vec::new();
        for case in cases().filter(|case| settings.wants_case(&case.label())) {
            output::progress(&format!("{} …", case.label()));
            rows.extend(report::rows(&case, &measure(&case, &targets, &binary, rounds)?));
        }
        output::progress("windows …");
        Ok((rows, windows(&targets[2], &binary, rounds)?))
    })?;
    output::show(&if settings.is_json() {
        report::json(&conditions, &rows, &windows).to_string()
    } else {
        report::text(&conditions, &rows, &windows)
    });
    Ok(())
}

fn cases() -> impl Iterator<Item = Case> {
    case::all().into_iter().filter(|case| case.kind == Kind::Text && case.size != Size::Large)
}

fn measure(case: &Case, targets: &[Target], binary: &Path, rounds: u32) -> Outcome<Vec<Series>> {
    let payload = Payload::new(case.kind, case.size.bytes(), IdPlace::First);
    let open = |target: &Target| open(target, binary, case, &payload);
    alternate(targets, |target| &target.name, open, case.calls, rounds)
}

/// A host over pipes, and the daemon behind its bridge.
struct Window<'a> {
    /// Dropped first: it must end before its home is removed.
    daemon: Option<RunningDaemon>,
    pipes: Pipes<'a>,
}

impl OpenRoute for Window<'_> {
    fn pid(&self) -> u32 {
        self.pipes.pid()
    }

    fn beside(&self) -> Option<u32> {
        self.daemon.as_ref().map(|daemon| daemon.pid)
    }

    fn calls(&mut self, calls: usize, full_check: bool) -> Outcome<Done> {
        self.pipes.calls(calls, full_check)
    }
}

fn open<'a>(target: &Target, binary: &Path, case: &'a Case, payload: &'a Payload) -> Outcome<Window<'a>> {
    let sandbox = Sandbox::new()?;
    let mut host = target.open(&sandbox, &[Server::new(SERVER, [])])?;
    let daemon = target.has_daemon().then(|| RunningDaemon::find(binary, &sandbox)).transpose()?;
    let listed = host.tools_until(TOOLS, LISTING)?;
    let tool = exposed(&listed, SERVER, case.kind.tool()).ok_or("the tool is not listed")?;
    let params = json!({ "name": tool, "arguments": { "size": case.size.bytes() } }).to_string();
    Ok(Window { daemon, pipes: Pipes { host, params, case, payload, _sandbox: sandbox } })
}

/// Opens windows, one after another, while one stays open.
fn windows(target: &Target, binary: &Path, spawns: u32) -> Outcome<Windows> {
    let sandbox = Sandbox::new()?;
    let servers: Vec<Server> = (1..=SERVERS).map(|number| Server::new(format!("s{number:02}"), [])).collect();
    let mut first = target.open(&sandbox, &servers)?;
    let _daemon = RunningDaemon::find(binary, &sandbox)?;
    first.tools_until(SERVERS * TOOLS, LISTING)?;
    let (mut times, mut private) = (Vec::new(), None);
    for _ in 0..spawns {
        let mut command = target.command(&sandbox, &servers)?;
        let began = Instant::now();
        let mut host = Host::spawn(&mut command, &sandbox)?;
        host.initialize()?;
        let tools = host.tools()?.len();
        times.push(millis(began.elapsed()));
        if tools < SERVERS * TOOLS {
            return Err(format!("the first list of a window has {tools} tools").into());
        }
        private = private.max(process::private(host.pid()));
    }
    Ok(Windows { first_list_ms: median(&times), private_kib: private })
}
