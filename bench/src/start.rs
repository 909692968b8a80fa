//! Section `start`: the time from the spawn until the tools are listed.

use std::fs::File;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::args::Settings;
use crate::host::Host;
use crate::sandbox::{Sandbox, Server};
use crate::stats::{median, millis};
use crate::stub::TOOLS;
use crate::table::{Table, number};
use crate::target::Target;
use crate::{Outcome, output};

const SERVERS: usize = 5;
const BAR_MS: f64 = 10.0;

/// Time limit for an incomplete list to become complete.
const WHOLE_LIMIT: Duration = Duration::from_secs(6);

/// A gateway may wait its full limit for a server that has never connected, so a few spawns are enough.
const SPAWNS_UNKNOWN: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    Cold,
    Warm,
    WarmOneSlow,
    WarmOneSilent,
    WarmOneNeverSeen,
}

impl Situation {
    const ALL: [Self; 5] =
        [Self::Cold, Self::Warm, Self::WarmOneSlow, Self::WarmOneSilent, Self::WarmOneNeverSeen];

    fn label(self) -> &'static str {
        match self {
            Self::Cold => "cold cache",
            Self::Warm => "warm cache",
            Self::WarmOneSlow => "warm, one server needs 3 s",
            Self::WarmOneSilent => "warm, one server no longer answers",
            Self::WarmOneNeverSeen => "warm, one server never answered",
        }
    }

    /// The fault of the last server. With `--when` it works while the cache is filled.
    fn fault(self, when: &str) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Cold | Self::Warm => &[],
            Self::WarmOneSlow => &["--start-delay-ms", "3000", "--when", when],
            Self::WarmOneSilent => &["--silent", "--when", when],
            Self::WarmOneNeverSeen => &["--silent"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn tools(self) -> usize {
        if self == Self::WarmOneNeverSeen { (SERVERS - 1) * TOOLS } else { SERVERS * TOOLS }
    }

    fn spawns(self, wanted: u32) -> u32 {
        if self == Self::WarmOneNeverSeen { wanted.min(SPAWNS_UNKNOWN) } else { wanted }
    }
}

struct Row {
    target: String,
    situation: &'static str,
    /// Time until the first answer to `tools/list`, and the smallest number of tools in it.
    first_ms: Option<f64>,
    first_tools: usize,
    /// Time until an answer had all tools.
    whole_ms: Option<f64>,
    expected: usize,
    /// Whether there is a limit: only for plugbay with a warm cache.
    judged: bool,
}

impl Row {
    fn passes(&self) -> bool {
        self.first_tools >= self.expected && self.first_ms.is_some_and(|ms| ms <= BAR_MS)
    }
}

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let spawns = settings.rounds.unwrap_or(if settings.quick { 3 } else { 11 });
    let mut rows = Vec::new();
    if settings.wants("direct") {
        rows.push(direct(spawns)?);
    }
    for target in Target::gateways(settings)? {
        for situation in Situation::ALL {
            output::progress(&format!("{}: {} …", target.name, situation.label()));
            let row = measure(&target, situation, spawns).map_err(|error| target.failed(&*error))?;
            rows.push(row);
        }
    }
    output::show(&if settings.is_json() { json(&rows).to_string() } else { text(&rows) });
    Ok(())
}

struct Start {
    first: Duration,
    tools: usize,
    whole: Option<Duration>,
}

fn measure(target: &Target, situation: Situation, spawns: u32) -> Outcome<Row> {
    let mut sandbox = Sandbox::new()?;
    if situation != Situation::Cold {
        fill_cache(target, situation, &sandbox)?;
    }
    let mut starts = Vec::new();
    for _ in 0..situation.spawns(spawns) {
        if situation == Situation::Cold {
            sandbox = Sandbox::new()?;
        }
        starts.push(once(target, situation, &sandbox)?);
    }
    Ok(Row {
        judged: target.name == "plugbay" && situation != Situation::Cold,
        expected: situation.tools(),
        ..row(&target.name, situation.label(), &starts)
    })
}

/// One run in which every server works, ended like a host ends it; after that the fault is active.
fn fill_cache(target: &Target, situation: Situation, sandbox: &Sandbox) -> Outcome<()> {
    let mut host = target.open(sandbox, &servers(situation, sandbox))?;
    host.tools_until(situation.tools(), Duration::from_secs(60))?;
    // A cache may be written shortly after the list is answered.
    std::thread::sleep(Duration::from_millis(300));
    drop(host);
    File::create(sandbox.path("faulty"))?;
    Ok(())
}

fn once(target: &Target, situation: Situation, sandbox: &Sandbox) -> Outcome<Start> {
    let mut command = target.command(sandbox, &servers(situation, sandbox))?;
    let began = Instant::now();
    let mut host = Host::spawn(&mut command, sandbox)?;
    host.initialize()?;
    let tools = host.tools()?.len();
    let first = began.elapsed();
    let whole = if tools >= situation.tools() {
        Some(first)
    } else {
        host.tools_until(situation.tools(), WHOLE_LIMIT).ok().map(|_| began.elapsed())
    };
    Ok(Start { first, tools, whole })
}

fn servers(situation: Situation, sandbox: &Sandbox) -> Vec<Server> {
    let when = sandbox.path("faulty").display().to_string();
    let args = |number| if number == SERVERS { situation.fault(&when) } else { Vec::new() };
    (1..=SERVERS).map(|number| Server::new(format!("s{number:02}"), args(number))).collect()
}

/// A host that starts five servers itself, all at once, for comparison.
fn direct(spawns: u32) -> Outcome<Row> {
    output::progress("direct …");
    let sandbox = Sandbox::new()?;
    let words = Server::new("stub", []).words()?;
    let mut starts = Vec::new();
    for _ in 0..spawns {
        let began = Instant::now();
        let mut hosts = Vec::new();
        for _ in 0..SERVERS {
            let mut command = std::process::Command::new(&words[0]);
            hosts.push(Host::spawn(command.args(&words[1..]), &sandbox)?);
        }
        let mut tools = 0;
        for host in &mut hosts {
            host.initialize()?;
            tools += host.tools()?.len();
        }
        let first = began.elapsed();
        starts.push(Start { first, tools, whole: Some(first) });
    }
    Ok(row("direct", "five servers, no gateway", &starts))
}

fn row(target: &str, situation: &'static str, starts: &[Start]) -> Row {
    let whole: Option<Vec<f64>> = starts.iter().map(|start| start.whole.map(millis)).collect();
    Row {
        target: target.to_owned(),
        situation,
        first_ms: median(&starts.iter().map(|start| millis(start.first)).collect::<Vec<_>>()),
        first_tools: starts.iter().map(|start| start.tools).min().unwrap_or(0),
        whole_ms: whole.and_then(|whole| median(&whole)),
        expected: SERVERS * TOOLS,
        judged: false,
    }
}

fn text(rows: &[Row]) -> String {
    let mut table = Table::new(2, ["route", "situation", "listed ms", "tools", "of", "whole list ms", "bar"]);
    for row in rows {
        let verdict = match (row.judged, row.passes()) {
            (false, _) => "",
            (true, true) => "pass",
            (true, false) => "FAIL",
        };
        table.row([
            row.target.clone(),
            row.situation.to_owned(),
            number(row.first_ms),
            row.first_tools.to_string(),
            row.expected.to_string(),
            number(row.whole_ms),
            verdict.to_owned(),
        ]);
    }
    format!(
        "{}bar: the whole list within {BAR_MS} ms of the spawn, warm, whatever the servers do\n",
        table.render()
    )
}

fn json(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "route": row.target,
            "situation": row.situation,
            "listed_ms": row.first_ms,
            "tools": row.first_tools,
            "expected_tools": row.expected,
            "whole_list_ms": row.whole_ms,
            "pass": row.judged.then(|| row.passes()),
        })
    };
    json!({ "section": "start", "bar_ms": BAR_MS, "rows": rows.iter().map(row).collect::<Vec<_>>() })
}
