//! Part `calls`: rounds that alternate between a direct call, the pump and the gateway.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::batch::Done;
use crate::calls::case::{self, Case};
use crate::calls::pipes::Pipes;
use crate::calls::report::{self, Row};
use crate::cores;
use crate::host::Host;
use crate::http::client::{Endpoint, Session};
use crate::http::route::start_stub;
use crate::http::service::Service;
use crate::http::sockets::Sockets;
use crate::payload::{IdPlace, Kind, Payload};
use crate::rivals::Effort;
use crate::rivals::description::Transport;
use crate::rivals::linked::Linked;
use crate::rivals::running::Rival;
use crate::rounds::{OpenRoute, alternate};
use crate::sandbox::{Sandbox, Server};
use crate::target::Target;

const SERVER: &str = "stub";

/// Time limit until the first call succeeds.
const READY: Duration = Duration::from_secs(30);

/// Duration of one route's turn in a round: slow gateways get fewer calls.
const TURN: Duration = Duration::from_millis(60);

enum Route<'a> {
    Direct,
    Pump,
    Rival(&'a Rival),
}

impl Route<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Direct => "direct",
            Self::Pump => "pump",
            Self::Rival(rival) => &rival.about.name,
        }
    }
}

/// Returns a row for each case and route. A case that fails does not end the others.
pub(crate) fn measure(rival: &Rival, transport: Transport, effort: Effort) -> Outcome<Value> {
    let _one_core = cores::keep_one()?;
    let rounds = effort.pick(2, 5);
    let mut rows = Vec::new();
    for case in case::all().into_iter().filter(|case| case.kind == Kind::Text) {
        let measured = match transport {
            Transport::Stdio => over_pipes(rival, case, rounds),
            Transport::Http => over_http(rival, case, rounds),
        };
        match measured {
            Ok(measured) => rows.extend(measured.iter().map(row)),
            Err(error) => rows.push(json!({ "case": label(&case), "failed": error.to_string() })),
        }
    }
    Ok(json!({ "rounds": rounds, "rows": rows }))
}

fn over_pipes(rival: &Rival, mut case: Case, rounds: u32) -> Outcome<Vec<Row>> {
    let payload = Payload::new(case.kind, case.size.bytes(), IdPlace::First);
    case.calls = affordable(&case, |one| pipes(&Route::Rival(rival), one, &payload)?.calls(1, false))?;
    let routes = [Route::Direct, Route::Pump, Route::Rival(rival)];
    let open = |route: &Route<'_>| pipes(route, &case, &payload);
    let series = alternate(&routes, |route| route.name(), open, case.calls, rounds)?;
    Ok(report::rows(&case, &series))
}

fn over_http(rival: &Rival, mut case: Case, rounds: u32) -> Outcome<Vec<Row>> {
    let payload = Payload::new(case.kind, case.size.bytes(), IdPlace::First);
    case.calls = affordable(&case, |one| over_sockets(Some(rival), one, &payload)?.calls(1, false))?;
    let routes = [Route::Direct, Route::Rival(rival)];
    let open = |route: &Route<'_>| {
        let rival = matches!(route, Route::Rival(_)).then_some(rival);
        over_sockets(rival, &case, &payload)
    };
    let series = alternate(&routes, |route| route.name(), open, case.calls, rounds)?;
    Ok(report::rows(&case, &series))
}

/// As many calls of a case as fit into a turn, but at least two for each call in flight.
fn affordable(case: &Case, call: impl Fn(&Case) -> Outcome<Done>) -> Outcome<usize> {
    let done = call(case)?;
    let one = done.latencies.first().copied().unwrap_or(TURN).max(Duration::from_micros(1));
    let fitting = TURN.as_micros() / one.as_micros();
    let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
    Ok(case.calls.min(fitting.max(2 * case.in_flight)))
}

fn pipes<'a>(route: &Route<'_>, case: &'a Case, payload: &'a Payload) -> Outcome<Pipes<'a>> {
    let sandbox = Sandbox::new()?;
    let servers = [Server::new(SERVER, [])];
    let tool = case.kind.tool();
    let arguments = json!({ "size": case.size.bytes() });
    let plain = json!({ "name": tool, "arguments": arguments });
    let (host, params) = match route {
        Route::Direct => (Target::direct().open(&sandbox, &servers)?, plain),
        Route::Pump => (Target::pump().open(&sandbox, &servers)?, plain),
        Route::Rival(rival) => {
            let (mut command, _) = rival.command(Transport::Stdio, &sandbox, &servers)?;
            let mut host = Host::spawn(&mut command, &sandbox)?;
            host.initialize()?;
            let params = rival.about.call(SERVER, tool, &arguments, true);
            let once = |params: &Value| host.call_until_result(params, Duration::ZERO);
            until_ready(once, rival.about.before(SERVER).as_ref(), &params)?;
            (host, params)
        }
    };
    Ok(Pipes { host, params: params.to_string(), case, payload, _sandbox: sandbox })
}

fn sockets<'a>(rival: Option<&Rival>, case: &'a Case, payload: &'a Payload) -> Outcome<Sockets<'a>> {
    let sandbox = Sandbox::new()?;
    let tool = case.kind.tool();
    let arguments = json!({ "size": case.size.bytes() });
    let (front, endpoint, params, before) = if let Some(rival) = rival {
        let servers = [Server::new(SERVER, [])];
        let (mut command, address) = rival.command(Transport::Http, &sandbox, &servers)?;
        let front = Service::start_at(&mut command, &sandbox.path("gateway.txt"), address)?;
        let endpoint = Endpoint { address, path: rival.about.path(SERVER) };
        (front, endpoint, rival.about.call(SERVER, tool, &arguments, true), rival.about.before(SERVER))
    } else {
        let front = start_stub(&sandbox)?;
        let endpoint = Endpoint::usual(front.address);
        (front, endpoint, json!({ "name": tool, "arguments": arguments }), None)
    };
    let mut session = open_session(&endpoint, &front)?;
    let once = |params: &Value| session.call_until_result(params, Duration::ZERO);
    until_ready(once, before.as_ref(), &params)?;
    let connections = (0..case.in_flight).map(|_| session.connect()).collect::<Outcome<_>>()?;
    Ok(Sockets { connections, params: params.to_string(), payload, front, _stub: None, _sandbox: sandbox })
}

/// The route without a gateway, directly to the stub.
fn over_sockets<'a>(
    rival: Option<&'a Rival>,
    case: &'a Case,
    payload: &'a Payload,
) -> Outcome<Box<dyn OpenRoute + 'a>> {
    match rival {
        Some(rival) if rival.about.is_streamed() => {
            Ok(Box::new(Linked::open(rival, SERVER, case, payload, READY)?))
        }
        _ => Ok(Box::new(sockets(rival, case, payload)?)),
    }
}

/// Repeats a call until it succeeds, each time after the call that must come `before`.
fn until_ready(
    mut call: impl FnMut(&Value) -> Outcome<()>,
    before: Option<&Value>,
    params: &Value,
) -> Outcome<()> {
    let began = Instant::now();
    loop {
        if let Some(before) = before {
            let _ = call(before);
        }
        match call(params) {
            Err(_) if began.elapsed() < READY => std::thread::sleep(Duration::from_millis(5)),
            called => return called,
        }
    }
}

/// Retries, because a gateway may listen before it serves.
fn open_session(endpoint: &Endpoint, front: &Service) -> Outcome<Session> {
    let began = Instant::now();
    loop {
        match Session::open(endpoint.clone(), front.group()) {
            Err(_) if began.elapsed() < READY => std::thread::sleep(Duration::from_millis(20)),
            opened => return opened,
        }
    }
}

/// The case's name on the page.
fn label(case: &Case) -> String {
    format!("{} ×{}", case.size.label(), case.in_flight)
}

fn row(row: &Row) -> Value {
    let mut object = report::row_json(row);
    object["case"] = label(&row.case).into();
    object
}
