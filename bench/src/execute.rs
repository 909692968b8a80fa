//! Section `execute`: the cost of a call through `execute_tool`, compared with the same call in `all` mode.

mod report;

use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Settings;
use crate::calls::{
    case::{self, Case, Size},
    pipes::Pipes,
};
use crate::conditions::Conditions;
use crate::payload::{IdPlace, Kind, Payload};
use crate::rounds::{Series, alternate};
use crate::sandbox::{Sandbox, Server};
use crate::stub::{LEDGER_OPTION, LEDGER_TOOL, TOOLS, ledger_arguments};
use crate::target::{Target, exposed};
use crate::{Outcome, gateway, output};

/// The routes that go through plugbay, by the mode in its configuration.
const ALL_MODE: &str = "all";
const EXECUTE_TOOL: &str = "execute_tool";

const SERVER: &str = "stub";

/// Time limit until a gateway with an empty cache lists all tools, or calls one.
const READY: Duration = Duration::from_secs(10);

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let targets = targets(settings)?;
    let (conditions, rows) = Conditions::during(settings, |rounds| {
        let mut rows = Vec::new();
        for case in cases().filter(|case| settings.wants_case(&case.label())) {
            output::progress(&format!("{} …", case.label()));
            rows.extend(report::rows(&case, &measure(&case, &targets, rounds)?));
        }
        Ok(rows)
    })?;
    output::show(&if settings.is_json() {
        report::json(&conditions, &rows).to_string()
    } else {
        report::text(&conditions, &rows)
    });
    Ok(())
}

/// The cases. A larger result would be all copying, which is the same in both modes.
fn cases() -> impl Iterator<Item = Case> {
    case::all().into_iter().filter(|case| case.kind == Kind::Text && case.size != Size::Large)
}

fn targets(settings: &Settings) -> Outcome<Vec<Target>> {
    let mut targets = Vec::new();
    if settings.wants("direct") {
        targets.push(Target::direct());
    }
    if settings.wants("pump") {
        targets.push(Target::pump());
    }
    for (name, mode) in [(ALL_MODE, "all"), (EXECUTE_TOOL, "search")] {
        if settings.wants(name) {
            let binary = gateway::find(settings.gateway.as_deref())?;
            targets.push(Target::plugbay(name, binary, Some(mode.to_owned())));
        }
    }
    Ok(targets)
}

fn measure(case: &Case, targets: &[Target], rounds: u32) -> Outcome<Vec<Series>> {
    let payload = Payload::new(case.kind, case.size.bytes(), IdPlace::First);
    let open = |target: &Target| open(target, case, &payload);
    alternate(targets, |target| &target.name, open, case.calls, rounds)
}

fn open<'a>(target: &Target, case: &'a Case, payload: &'a Payload) -> Outcome<Pipes<'a>> {
    let sandbox = Sandbox::new()?;
    let server = Server::new(SERVER, [LEDGER_OPTION.to_owned()]);
    let mut host = target.open(&sandbox, &[server])?;
    let arguments = ledger_arguments(case.size.bytes());
    let params = if target.name == EXECUTE_TOOL {
        let params = execute_params(&arguments);
        // Search mode lists no tool of the server, so a call shows whether it is ready.
        host.call_until_result(&params, READY)?;
        params
    } else {
        let listed = host.tools_until(TOOLS, READY)?;
        let tool = exposed(&listed, SERVER, LEDGER_TOOL).ok_or("the ledger tool is not listed")?;
        json!({ "name": tool, "arguments": arguments })
    };
    Ok(Pipes { host, params: params.to_string(), case, payload, _sandbox: sandbox })
}

fn execute_params(arguments: &Value) -> Value {
    let inner = json!({ "name": format!("{SERVER}__{LEDGER_TOOL}"), "arguments": arguments });
    json!({ "name": EXECUTE_TOOL, "arguments": inner })
}
