//! The routes from a driver over HTTP to the stub.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::args::Settings;
use crate::calls::case::Case;
use crate::http::{
    client::{Endpoint, Session},
    service::Service,
    sockets::Sockets,
};
use crate::payload::{IdPlace, Payload};
use crate::rounds::{Series, alternate};
use crate::sandbox::{Sandbox, Server};
use crate::stub::TOOLS;
use crate::target::exposed;
use crate::{Outcome, gateway};

const SERVER: &str = "stub";
const ANY_PORT: &str = "127.0.0.1:0";

/// Time limit until a gateway with an empty cache lists all tools.
const LISTING: Duration = Duration::from_secs(10);

pub(crate) struct Route {
    name: &'static str,
    /// `None` for a direct call.
    gateway: Option<Gateway>,
}

struct Gateway {
    binary: PathBuf,
    mode: Option<String>,
    server_over: Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Stdio,
    Http,
}

impl Route {
    /// All routes that the settings include, in the order of the report.
    pub(crate) fn all(settings: &Settings) -> Outcome<Vec<Self>> {
        let mut routes = Vec::new();
        if settings.wants("direct") {
            routes.push(Self { name: "direct", gateway: None });
        }
        for (name, server_over) in [("to-stdio", Over::Stdio), ("to-http", Over::Http)] {
            if settings.wants(name) {
                let binary = gateway::find(settings.gateway.as_deref())?;
                let gateway = Gateway { binary, mode: settings.mode.clone(), server_over };
                routes.push(Self { name, gateway: Some(gateway) });
            }
        }
        Ok(routes)
    }
}

pub(crate) fn run(case: &Case, routes: &[Route], rounds: u32) -> Outcome<Vec<Series>> {
    let payload = Payload::new(case.kind, case.size.bytes(), IdPlace::First);
    let open = |route: &Route| open(route, case, &payload);
    alternate(routes, |route| route.name, open, case.calls, rounds)
}

fn open<'a>(route: &Route, case: &'a Case, payload: &'a Payload) -> Outcome<Sockets<'a>> {
    let sandbox = Sandbox::new()?;
    let (front, stub) = match &route.gateway {
        None => (start_stub(&sandbox)?, None),
        Some(gateway) => gateway.start(&sandbox)?,
    };
    let mut session = Session::open(Endpoint::usual(front.address), front.group())?;
    let listed = session.tools_until(TOOLS, LISTING)?;
    let tool = exposed(&listed, SERVER, case.kind.tool());
    let tool = tool.ok_or_else(|| format!("{} is not in its list", case.kind.tool()))?.to_owned();
    let params = json!({ "name": tool, "arguments": { "size": case.size.bytes() } }).to_string();
    let connections = (0..case.in_flight).map(|_| session.connect()).collect::<Outcome<_>>()?;
    Ok(Sockets { connections, params, payload, front, _stub: stub, _sandbox: sandbox })
}

impl Gateway {
    /// Starts the process, and the stub behind it if that is not its child.
    fn start(&self, sandbox: &Sandbox) -> Outcome<(Service, Option<Service>)> {
        let (server, stub) = match self.server_over {
            Over::Stdio => (Server::new(SERVER, []), None),
            Over::Http => {
                let stub = start_stub(sandbox)?;
                (Server::at(SERVER, format!("http://{}/mcp", stub.address)), Some(stub))
            }
        };
        let mut command = Command::new(&self.binary);
        // Outside of any project with its own config file.
        command.current_dir(sandbox.path("home"));
        command.args(["serve", "--http", ANY_PORT, "--config"]);
        command.arg(sandbox.config(&[server], self.mode.as_deref())?);
        sandbox.confine(&mut command);
        Ok((Service::start(&mut command, &sandbox.path("gateway.txt"))?, stub))
    }
}

/// The stub itself, over HTTP.
pub(crate) fn start_stub(sandbox: &Sandbox) -> Outcome<Service> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["stub", "--http", ANY_PORT]);
    Service::start(&mut command, &sandbox.path("stub.txt"))
}
