//! Hostile servers, hosts, files and signals against a real plugbay. Each scenario ends with a verdict and a
//! figure.

mod args;
mod callers;
mod dice;
mod http;
mod measure;
mod neighbour;
mod output;
mod report;
mod scenario;
mod scenarios;
mod stub;
mod trial;

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use args::{Settings, Wanted};
use plugbay_testkit::keep_workspaces;
use report::Row;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use scenario::{Outcome, Scenario, Verdict};
use trial::Trial;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == stub::FLAG) {
        stub::run(args.get(1).map_or(".", String::as_str));
        return ExitCode::SUCCESS;
    }
    match Settings::parse(&args) {
        Ok(Wanted::Help) => output::show(args::HELP),
        Ok(Wanted::List) => {
            for scenario in scenarios::all() {
                output::show(&format!("{:20} {}", scenario.name, scenario.rule));
            }
        }
        Ok(Wanted::Run(settings)) => return run(&settings),
        Err(problem) => {
            output::complain(&problem);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(settings: &Settings) -> ExitCode {
    let gateway = match trial::gateway(settings.gateway.as_deref()) {
        Ok(gateway) => gateway,
        Err(problem) => {
            output::complain(&problem);
            return ExitCode::FAILURE;
        }
    };
    raise_descriptor_limit();
    let trial = Trial { gateway, quick: settings.quick, seed: settings.seed };
    // A failed check of the testkit is a panic; its message becomes the reason in the table.
    std::panic::set_hook(Box::new(|_| {}));
    let mut rows = Vec::new();
    for scenario in scenarios::all().into_iter().filter(|scenario| settings.wants(scenario)) {
        let row = play(scenario, &trial);
        output::complain(&report::line(&row));
        rows.push(row);
    }
    output::show(&report::render(&rows, settings));
    if rows.iter().any(|row| row.verdict == Verdict::Broken) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn play(scenario: Scenario, trial: &Trial) -> Row {
    let (start, before) = (Instant::now(), folders());
    keep_workspaces(false);
    let mut outcome = catch_unwind(AssertUnwindSafe(|| (scenario.run)(trial)))
        .unwrap_or_else(|panic| Outcome::broken(&words(&*panic)));
    if outcome.verdict() == Verdict::Broken {
        outcome.faults.extend(folders().difference(&before).map(|kept| format!("see {}", kept.display())));
    }
    Row::new(scenario, outcome, start.elapsed())
}

/// The folders of scenarios that this process has kept for inspection.
fn folders() -> BTreeSet<PathBuf> {
    let own = format!("plugbay-test-{}-", std::process::id());
    let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).map(|e| e.path()).collect()
}

/// Raises the limit of descriptors as far as the system allows, because scenarios open thousands of
/// connections.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
