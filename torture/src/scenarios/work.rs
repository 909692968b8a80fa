//! One message must not stop everything else: requests of a host, while another caller is measured.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use plugbay_testkit::{DEADLINE, HttpGateway, Workspace, wait_until};
use serde_json::json;

use super::{
    generator::{self, Attack, Recipe, Request},
    streams::rest,
};
use crate::{
    dice::Dice,
    http,
    measure::{milliseconds, spread},
    neighbour::{Neighbour, Waits, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "generated-requests",
        rule: "No generated request of a host of at most 16 MB holds up another caller for more than 50 ms; half of them are variants of the worst so far",
        run: generated_requests,
    },
    Scenario { name: "known-requests", rule: "The same for the requests that once did", run: known_requests },
];

const LIMIT: Duration = Duration::from_millis(50);
/// If another caller waits longer than this while nothing happens, the machine is too busy for a verdict.
const BUSY: Duration = Duration::from_millis(25);
/// After a wait longer than this, the gateway is restarted.
const RESTART: Duration = Duration::from_secs(5);
/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many of the worst recipes are varied.
const WORST: usize = 8;

/// A gateway in search mode, with the tools that the requests use.
pub(super) struct Stage {
    pub(super) workspace: Workspace,
    pub(super) gateway: HttpGateway,
    session: String,
}

impl Stage {
    pub(super) fn new(trial: &Trial, files: &[(&str, &str)]) -> Self {
        let workspace = Workspace::new();
        let entry = trial::stub(&workspace, "s", files);
        let config = trial::config(&workspace, &[]).entry("s", entry).top("mode", json!("search"));
        let gateway = trial.serve_http(&workspace, &config, &[]);
        let session = http::open_session(&gateway, &[]).expect("a session");
        let stage = Self { workspace, gateway, session };
        stage.await_tool("s__next");
        stage
    }

    fn for_requests(trial: &Trial) -> Self {
        let stage = Self::new(trial, &[("tools.json", &generator::tools())]);
        stage.await_tool("s__wide");
        stage
    }

    /// Waits until a tool is in the catalog. The time does not matter, only that the tool was not left out.
    pub(super) fn await_tool(&self, name: &str) {
        let mut host = self.gateway.connect_for(PATIENCE);
        let arguments = json!({ "name": name }).to_string();
        wait_until(&format!("the tool {name}"), DEADLINE, || {
            let found = http::call(&mut host, "describe_tool", &arguments, &[]);
            found.body.contains("inputSchema").then_some(())
        });
    }

    /// Sends a request in the session of this stage. Returns the body of the answer; `Err` if there is none.
    pub(super) fn request(&self, method: &str, params: &str) -> Result<String, ()> {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        let session = [("mcp-session-id", self.session.as_str())];
        let headers = if method == "initialize" { &[][..] } else { &session[..] };
        let mut host = self.gateway.connect_for(PATIENCE);
        let reply = catch_unwind(AssertUnwindSafe(|| {
            host.post(headers, &body);
            host.reply()
        }));
        let reply = reply.map_err(|_| ())?;
        Ok(if reply.status == 413 { "too long".to_owned() } else { reply.body })
    }

    fn send(&self, request: &Request) -> Result<String, ()> {
        match request {
            Request::Method(method, params) => self.request(method, params),
            Request::Tool(tool, arguments) => {
                let mut host = self.gateway.connect_for(PATIENCE);
                let reply = catch_unwind(AssertUnwindSafe(|| http::call(&mut host, tool, arguments, &[])))
                    .map_err(|_| ())?;
                Ok(if reply.status == 413 { "too long".to_owned() } else { reply.body })
            }
        }
    }
}

/// The waits of another caller, recorded for each message.
pub(super) struct Ledger {
    pub(super) outcome: Outcome,
    calm: Duration,
    worst: (Duration, String),
    /// The longest processor time of the event loop during one call of the other caller.
    longest_work: (Duration, String),
    count: usize,
    failed: usize,
    unanswered: usize,
    too_long: usize,
}

impl Ledger {
    /// Measures another caller while nothing happens. `Err`: the machine is too busy for a verdict in the
    /// long form.
    pub(super) fn open(trial: &Trial, gateway: &HttpGateway) -> Result<Self, Outcome> {
        let measure = || spread(&beside(Neighbour::over_http(gateway), || rest(500)).0.times).1;
        let calm = (0..3).map(|_| measure()).find(|calm| trial.quick || *calm <= BUSY);
        let Some(calm) = calm else { return Err(Outcome::not_run("the machine is busy")) };
        let none = (Duration::ZERO, String::new());
        Ok(Self {
            outcome: Outcome::default(),
            calm,
            worst: none.clone(),
            longest_work: none,
            count: 0,
            failed: 0,
            unanswered: 0,
            too_long: 0,
        })
    }

    /// Records one message: the waits during it, and the answer if the message was a request.
    pub(super) fn note(
        &mut self,
        trial: &Trial,
        recipe: String,
        waits: &Waits,
        answer: Result<&str, ()>,
    ) -> Duration {
        let wait = spread(&waits.times).1;
        self.count += 1;
        self.failed += waits.failed;
        match answer {
            Ok(body) if is_too_long(body) => self.too_long += 1,
            Ok(_) => {}
            Err(()) => {
                self.unanswered += 1;
                self.outcome.check(false, || format!("{recipe}: no answer"));
            }
        }
        self.outcome
            .check_time(trial, wait, LIMIT + self.calm, || format!("{recipe}: {}", milliseconds(wait)));
        if waits.loop_time > self.longest_work.0 {
            self.longest_work = (waits.loop_time, recipe.clone());
        }
        if std::env::var_os("TORTURE_TRACE").is_some() {
            crate::output::complain(&format!(
                "{:>7} {:>7} {recipe}",
                wait.as_millis(),
                waits.loop_time.as_millis()
            ));
        }
        if wait > self.worst.0 {
            self.worst = (wait, recipe);
        }
        wait
    }

    pub(super) fn close(mut self) -> Outcome {
        let (failed, worked) = (self.failed, self.count - self.unanswered - self.too_long);
        self.outcome.check(failed == 0, || format!("{failed} calls of another caller failed"));
        self.outcome.check(2 * worked >= self.count && worked > 0, || {
            format!("only {worked} of {} messages were worked on", self.count)
        });
        self.outcome.faults.truncate(8);
        self.outcome.not_judged.truncate(2);
        self.outcome.figure(format!(
            "{} messages, {worked} worked on, {} rejected by length; longest wait {} ({}), {} without; longest work of the loop meanwhile {} ({})",
            self.count,
            self.too_long,
            milliseconds(self.worst.0),
            self.worst.1,
            milliseconds(self.calm),
            milliseconds(self.longest_work.0),
            self.longest_work.1
        ))
    }
}

fn is_too_long(body: &str) -> bool {
    let start = &body[..body.floor_char_boundary(2000)];
    ["too long", "too large", "longer than", "the limit is", "has more than"]
        .iter()
        .any(|words| start.contains(words))
}

/// Sends a request and measures another caller during it.
fn play(trial: &Trial, stage: &mut Stage, ledger: &mut Ledger, attack: Attack) -> Duration {
    let (waits, answer) = beside(Neighbour::over_http(&stage.gateway), || stage.send(&attack.request));
    let wait = ledger.note(trial, attack.recipe, &waits, answer.as_deref().map_err(|&()| ()));
    if wait > RESTART {
        // The gateway may go on working for minutes, and the next request must be measured alone.
        *stage = Stage::for_requests(trial);
    }
    wait
}

fn generated_requests(trial: &Trial) -> Outcome {
    let mut stage = Stage::for_requests(trial);
    let mut ledger = match Ledger::open(trial, &stage.gateway) {
        Ok(ledger) => ledger,
        Err(outcome) => return outcome,
    };
    let (mut dice, mut worst) = (Dice::new(trial.seed), Vec::<(Duration, Recipe)>::new());
    let most = if trial.quick { 1 << 20 } else { 14 << 20 };
    let end = Instant::now() + Duration::from_secs(if trial.quick { 20 } else { 900 });
    for round in 0..trial.times(60, 800) {
        if Instant::now() > end {
            break;
        }
        let recipes: Vec<Recipe> = worst.iter().map(|(_, recipe)| recipe.clone()).collect();
        let recipe = if round % 2 == 0 || recipes.is_empty() {
            Recipe::draw(&mut dice, most)
        } else {
            Recipe::mutated(&mut dice, &recipes, most)
        };
        let wait = play(trial, &mut stage, &mut ledger, recipe.attack());
        worst.push((wait, recipe));
        worst.sort_by_key(|(wait, _)| std::cmp::Reverse(*wait));
        worst.truncate(WORST);
    }
    ledger.close()
}

fn known_requests(trial: &Trial) -> Outcome {
    let mut stage = Stage::for_requests(trial);
    let mut ledger = match Ledger::open(trial, &stage.gateway) {
        Ok(ledger) => ledger,
        Err(outcome) => return outcome,
    };
    for attack in generator::known(trial.quick) {
        play(trial, &mut stage, &mut ledger, attack);
    }
    ledger.close()
}
