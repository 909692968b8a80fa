//! Part `start`: the time from the spawn until the list is answered, and until a call of a working server is.

use std::fs::File;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::payload::Kind;
use crate::rivals::Effort;
use crate::rivals::running::Rival;
use crate::sandbox::{Sandbox, Server};
use crate::stats::{median, millis};
use crate::stub::TOOLS;

const SERVERS: usize = 5;

/// Time limit for a list or a call.
const LIMIT: Duration = Duration::from_secs(12);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    Cold,
    Warm,
    OneSlow,
    OneSilent,
}

impl Situation {
    const ALL: [Self; 4] = [Self::Cold, Self::Warm, Self::OneSlow, Self::OneSilent];

    fn label(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::OneSlow => "one server needs 3 s",
            Self::OneSilent => "one server never answers",
        }
    }

    /// The fault of the last server. With `--when` it works in the run that warms up.
    fn fault(self, when: &str) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Cold | Self::Warm => &[],
            Self::OneSlow => &["--start-delay-ms", "3000", "--when", when],
            Self::OneSilent => &["--silent"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// The number of servers that ever answer.
    fn working(self) -> usize {
        if self == Self::OneSilent { SERVERS - 1 } else { SERVERS }
    }

    fn spawns(self, effort: Effort) -> u32 {
        match self {
            Self::Cold | Self::Warm => effort.pick(1, 5),
            Self::OneSlow => effort.pick(1, 2),
            Self::OneSilent => 1,
        }
    }
}

struct Start {
    listed: Duration,
    tools: usize,
    called: Option<Duration>,
}

/// Returns a row for each situation; one that fails does not end the others.
pub(crate) fn measure(rival: &Rival, effort: Effort) -> Outcome<Value> {
    if rival.about.servers < SERVERS {
        return Err(format!("holds at most {} server", rival.about.servers).into());
    }
    let mut rows = Vec::new();
    for situation in Situation::ALL {
        let row = situation_row(rival, situation, effort);
        rows.push(
            row.unwrap_or_else(
                |error| json!({ "situation": situation.label(), "failed": error.to_string() }),
            ),
        );
    }
    Ok(json!({ "servers": SERVERS, "limit_s": LIMIT.as_secs(), "rows": rows }))
}

fn situation_row(rival: &Rival, situation: Situation, effort: Effort) -> Outcome<Value> {
    let mut sandbox = Sandbox::new()?;
    if situation != Situation::Cold {
        // One run in which the servers work, ended like a host ends it; after that the fault is active.
        let mut servers = servers(situation, &sandbox);
        servers.truncate(situation.working());
        once(rival, Situation::Warm, &sandbox, &servers)?;
        std::thread::sleep(Duration::from_millis(300));
        File::create(sandbox.path("faulty"))?;
    }
    let mut starts = Vec::new();
    for _ in 0..situation.spawns(effort) {
        if situation == Situation::Cold {
            sandbox = Sandbox::new()?;
        }
        starts.push(once(rival, situation, &sandbox, &servers(situation, &sandbox))?);
    }
    let called: Option<Vec<f64>> = starts.iter().map(|start| start.called.map(millis)).collect();
    Ok(json!({
        "situation": situation.label(),
        "listed_ms": median(&starts.iter().map(|start| millis(start.listed)).collect::<Vec<_>>()),
        "tools": starts.iter().map(|start| start.tools).min(),
        "expected_tools": rival.about.listed.with(situation.working(), TOOLS),
        "called_ms": called.and_then(|called| median(&called)),
    }))
}

fn once(rival: &Rival, situation: Situation, sandbox: &Sandbox, servers: &[Server]) -> Outcome<Start> {
    let began = Instant::now();
    let mut running = rival.start(sandbox, servers, LIMIT)?;
    let tools = running.link.tools(LIMIT)?.len();
    let listed = began.elapsed();
    let limit = if situation == Situation::OneSilent { Duration::from_secs(5) } else { LIMIT };
    let called = running.call_until_good(&servers[0].name, Kind::Text.tool(), &json!({ "size": 100 }), limit);
    Ok(Start { listed, tools, called: called.is_ok().then(|| began.elapsed()) })
}

fn servers(situation: Situation, sandbox: &Sandbox) -> Vec<Server> {
    let when = sandbox.path("faulty").display().to_string();
    let args = |number| if number == SERVERS { situation.fault(&when) } else { Vec::new() };
    (1..=SERVERS).map(|number| Server::new(format!("s{number:02}"), args(number))).collect()
}
