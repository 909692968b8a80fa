//! Tests of filters, read from data files: hostile ones that must end with a clear answer, and ordinary ones
//! that models write.

use std::time::Duration;

use bytes::Bytes;
use libtest_mimic::{Failed, Trial};
use plugbay_sandbox::{Limits, Outcome, Sandbox, SandboxFailure, Settings};
use serde_json::Value;

const HOSTILE: &str = include_str!("hostile.jsonl");
const ORDINARY: &str = include_str!("ordinary.jsonl");

/// Longer than any filter that ends takes, however busy the machine is.
pub(crate) const PLENTY: Duration = Duration::from_secs(120);
/// The deadline of filters that never end.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

pub(crate) fn sandbox() -> Sandbox {
    let program = std::env::current_exe().unwrap();
    Sandbox::new(Settings { jobs: 4, spare: Duration::ZERO, ..Settings::new(program) })
}

pub(crate) fn jq(filter: &str, input: &str, limits: Limits) -> Result<Outcome, SandboxFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(sandbox().jq(filter, Bytes::copy_from_slice(input.as_bytes()), limits))
}

pub(crate) fn trials() -> Vec<Trial> {
    let hostile = entries(HOSTILE).map(|entry| trial("hostile", entry, hostile));
    let ordinary = entries(ORDINARY).map(|entry| trial("ordinary", entry, ordinary));
    let sizes = Trial::test("corpus::has_enough_filters", || {
        assert!(entries(HOSTILE).count() >= 60, "{} hostile filters", entries(HOSTILE).count());
        assert!(entries(ORDINARY).count() >= 40, "{} ordinary filters", entries(ORDINARY).count());
        Ok(())
    });
    hostile.chain(ordinary).chain([sizes]).collect()
}

fn entries(text: &str) -> impl Iterator<Item = Value> + '_ {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
}

fn trial(kind: &str, entry: Value, check: fn(&Value) -> Result<(), Failed>) -> Trial {
    let filter: String = entry["filter"].as_str().unwrap_or_default().chars().take(80).collect();
    Trial::test(format!("{kind} {filter}"), move || check(&entry))
}

/// Runs a hostile filter. `end` says how it must end; of several ways, one must occur.
fn hostile(entry: &Value) -> Result<(), Failed> {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let filter = text("filter").repeat(usize::try_from(entry["times"].as_u64().unwrap_or(1))?);
    let end = text("end");
    let deadline = if end.contains("slow") { SHORT } else { PLENTY };
    let limits = Limits { deadline, memory: 48 * 1024 * 1024, output: 64 * 1024 };
    let input = if entry["input"].is_null() { "null".to_owned() } else { entry["input"].to_string() };
    let result = jq(&filter, &input, limits);
    let (ended, message) = match &result {
        Ok(outcome) if outcome.cut.is_some() => ("cut", String::new()),
        Ok(_) => ("ok", String::new()),
        Err(failure) => (kind(failure), failure.to_string()),
    };
    if let Ok(outcome) = &result {
        assert!(outcome.output.len() <= limits.output, "{} bytes", outcome.output.len());
    }
    if end.split('|').all(|way| way != ended) {
        return Err(format!("ended {ended:?} instead of {end:?}: {message}").into());
    }
    if !message.contains(text("says")) {
        return Err(format!("{message:?} does not say {:?}", text("says")).into());
    }
    Ok(())
}

fn kind(failure: &SandboxFailure) -> &'static str {
    match failure {
        SandboxFailure::Filter(_) => "wrong",
        SandboxFailure::Runtime(_) => "error",
        SandboxFailure::Input(_) => "input",
        SandboxFailure::TooSlow(_) => "slow",
        SandboxFailure::OutOfMemory(_) => "memory",
        SandboxFailure::TooDeep => "deep",
        SandboxFailure::Busy => "busy",
        SandboxFailure::Unavailable(_) => "unavailable",
        SandboxFailure::Crashed(_) => "crashed",
    }
}

/// Runs an ordinary filter, whose output must be these values, as text.
fn ordinary(entry: &Value) -> Result<(), Failed> {
    let filter = entry["filter"].as_str().unwrap_or_default();
    let input = entry["input"].as_str().unwrap_or("null");
    let expected: Vec<&str> =
        entry["output"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let outcome = jq(filter, input, Limits { deadline: PLENTY, ..Limits::default() });
    let outcome = outcome.map_err(|failure| failure.to_string())?;
    let values: Vec<Bytes> = outcome.whole().collect();
    if values == expected { Ok(()) } else { Err(format!("{values:?} instead of {expected:?}").into()) }
}
