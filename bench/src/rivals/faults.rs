//! Part `faults`: the effects on a host when a server, the host itself or the gateway's process fails.

mod probes;

use std::time::Duration;

use serde_json::{Value, json};

use crate::Outcome;
use crate::payload::Kind;
use crate::rivals::running::{Rival, Running};
use crate::sandbox::{Sandbox, Server};

/// Time limit until the servers answer.
const READY: Duration = Duration::from_secs(30);
/// Time limit for an answer that should come at once.
pub(super) const SOON: Duration = Duration::from_secs(3);

/// The server with the fault, and one that works.
pub(super) const FAULTY: &str = "faulty";
pub(super) const SOUND: &str = "sound";

/// Each probe has its own gateway process, because any of them may end it.
type Probe = fn(&Rival) -> Outcome<Value>;

const PROBES: [(&str, Probe); 9] = [
    ("crash", probes::crash),
    ("garbage", probes::garbage),
    ("hang", probes::hang),
    ("cancel", probes::cancel),
    ("ids", probes::ids),
    ("malformed", probes::malformed),
    ("large", probes::large),
    ("killed", probes::killed),
    ("closed", probes::closed),
];

pub(crate) fn measure(rival: &Rival) -> Value {
    let mut results = json!({});
    for (name, probe) in PROBES {
        results[name] = probe(rival).unwrap_or_else(|error| json!({ "failed": error.to_string() }));
    }
    results
}

/// Checks that the gateway starts and calls both servers.
pub(crate) fn works(rival: &Rival) -> Outcome<()> {
    started(rival, &Sandbox::new()?, &[]).map(drop)
}

/// Starts the gateway with both servers, if it can have two, and waits until they answer.
pub(super) fn started<'a>(rival: &'a Rival, sandbox: &Sandbox, fault: &[&str]) -> Outcome<Running<'a>> {
    let args = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let faulty = Server::new(FAULTY, args(&[&["--faults"], fault].concat()));
    let servers = match rival.about.servers {
        1 => vec![faulty],
        _ => vec![faulty, Server::new(SOUND, args(&[]))],
    };
    let mut running = rival.start(sandbox, &servers, READY)?;
    // Some gateways forward only calls of tools that they have listed.
    running.link.tools(READY)?;
    for server in &servers {
        running.call_until_good(&server.name, Kind::Text.tool(), &json!({ "size": 10 }), READY)?;
    }
    Ok(running)
}

/// Whether a small call of a server succeeds soon.
pub(super) fn answers(running: &mut Running<'_>, server: &str) -> bool {
    running.call(server, Kind::Text.tool(), &json!({ "size": 10 }), SOON).is_good()
}
