//! Tests of scripts, read from data files.

use libtest_mimic::{Failed, Trial};
use plugbay_sandbox::{CodeFailure, RunLimits, Script};
use serde_json::Value;

use super::play::{Played, block_on, play, plenty, script};
use crate::corpus::{SHORT, sandbox};

const ORDINARY: &str = include_str!("ordinary.jsonl");
const FAILING: &str = include_str!("failing.jsonl");
const GREEDY: &str = include_str!("greedy.jsonl");
const ESCAPES: &str = include_str!("escapes.jsonl");
const DRY: &str = include_str!("dry.jsonl");
const REACH: &str = include_str!("reach.jsonl");

type Check = fn(&Value) -> Result<(), Failed>;

pub(super) fn trials() -> Vec<Trial> {
    let tables: [(&str, &str, Check, usize); 6] = [
        ("ordinary", ORDINARY, ordinary, 40),
        ("failing", FAILING, failing, 30),
        ("greedy", GREEDY, greedy, 15),
        ("escape", ESCAPES, escape, 60),
        ("dry", DRY, dry, 8),
        ("reach", REACH, reach, 15),
    ];
    let mut trials = Vec::new();
    for (kind, table, check, least) in tables {
        let entries: Vec<Value> = table
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
            .collect();
        let count = entries.len();
        trials.push(Trial::test(format!("code::{kind}::has_enough_scripts"), move || {
            assert!(count >= least, "{count} scripts");
            Ok(())
        }));
        trials.extend(entries.into_iter().map(|entry| {
            let code: String = text(&entry, "code").chars().take(80).collect();
            let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
            Trial::test(format!("code::{kind} {code}"), move || check(&entry))
        }));
    }
    trials
}

fn text<'v>(entry: &'v Value, key: &str) -> &'v str {
    entry[key].as_str().unwrap_or_default()
}

/// The script of an entry. `input` is a JSON value.
fn of(entry: &Value) -> Script {
    let times = entry["times"].as_u64().and_then(|times| usize::try_from(times).ok()).unwrap_or(1);
    let code = [text(entry, "before"), &text(entry, "code").repeat(times), text(entry, "after")].concat();
    let input = if entry["input"].is_null() { String::new() } else { entry["input"].to_string() };
    Script { input: input.into(), ..script(&code) }
}

/// Compares the calls and the text with the entry; an absent key means none.
fn compare(entry: &Value, played: &Played) -> Result<(), Failed> {
    let calls: Vec<&str> =
        entry["calls"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if played.calls != calls {
        return Err(format!("calls {:#?}\ninstead of {calls:#?}\nend {:?}", played.calls, played.end).into());
    }
    if played.text != text(entry, "text") {
        return Err(format!("text {:?} instead of {:?}", played.text, entry["text"]).into());
    }
    Ok(())
}

fn ordinary(entry: &Value) -> Result<(), Failed> {
    let played = play(of(entry), plenty(), false);
    compare(entry, &played)?;
    match &played.end {
        Ok(value) if value == text(entry, "value") => Ok(()),
        end => Err(format!("{end:?} instead of {:?}", entry["value"]).into()),
    }
}

fn dry(entry: &Value) -> Result<(), Failed> {
    let played = play(of(entry), plenty(), true);
    compare(entry, &played)?;
    let end = played.end.unwrap_or_else(|failure| failure.to_string());
    if end == text(entry, "value") {
        Ok(())
    } else {
        Err(format!("{end:?} instead of {:?}", entry["value"]).into())
    }
}

/// Expects a failure. `says` is its whole text.
fn failing(entry: &Value) -> Result<(), Failed> {
    let played = play(of(entry), plenty(), false);
    compare(entry, &played)?;
    let failure = played.end.err().ok_or("it ended well")?;
    if !failure.is_about_the_script() {
        return Err(format!("{failure:?} is not about the script").into());
    }
    let call = match &failure {
        CodeFailure::Thrown { call, .. } => call.map(u64::from),
        _ => None,
    };
    if failure.to_string() != text(entry, "says") || call != entry["call"].as_u64() {
        return Err(
            format!("call {call:?}, {:?}\ninstead of {:?}", failure.to_string(), entry["says"]).into()
        );
    }
    Ok(())
}

/// Expects a limited end. `end` names it; of several ways, one must occur.
fn greedy(entry: &Value) -> Result<(), Failed> {
    let end = text(entry, "end");
    let compute = if end.contains("slow") { SHORT } else { plenty().compute };
    let limits = RunLimits { compute, memory: 48 * 1024 * 1024, output: 64 * 1024, calls: 20 };
    let played = play(of(entry), limits, false);
    let ended = match &played.end {
        Ok(_) => "done",
        Err(failure) => kind(failure),
    };
    if end.split('|').all(|way| way != ended) {
        return Err(format!("ended {ended:?} instead of {end:?}: {:?}", played.end).into());
    }
    assert!(played.text.len() <= limits.output && played.calls.len() <= 20);
    let least = entry["text_bytes"].as_u64().unwrap_or(0);
    if (played.text.len() as u64) < least {
        return Err(format!("only {} bytes of text", played.text.len()).into());
    }
    Ok(())
}

fn kind(failure: &CodeFailure) -> &'static str {
    match failure {
        CodeFailure::Syntax(_) => "syntax",
        CodeFailure::Thrown { .. } => "thrown",
        CodeFailure::TooSlow(_) => "slow",
        CodeFailure::OutOfMemory(_) => "memory",
        CodeFailure::TooDeep => "deep",
        CodeFailure::OutputTooLarge(_) => "output",
        CodeFailure::TooManyCalls(_) => "calls",
        CodeFailure::NotJson(_) => "not json",
        CodeFailure::NeverEnds => "never",
        CodeFailure::TooLong => "long",
        CodeFailure::Busy => "busy",
        CodeFailure::Died(_) => "died",
        CodeFailure::Unavailable(_) => "unavailable",
    }
}

/// Expects `value`, or a failure whose text contains `says`. A script that escaped would say "escaped".
fn escape(entry: &Value) -> Result<(), Failed> {
    let limits = RunLimits { calls: 20, ..plenty() };
    let played = play(of(entry), limits, false);
    let told = format!("{:?} {} {:?}", played.calls, played.text, played.end);
    let values = [&played.text, played.end.as_ref().unwrap_or(&played.text)];
    if values.iter().any(|value| value.contains("escaped")) {
        return Err(told.into());
    }
    match (&played.end, entry["value"].as_str(), entry["says"].as_str()) {
        (Ok(value), Some(expected), None) if value == expected => Ok(()),
        (Err(failure), None, Some(says))
            if failure.is_about_the_script() && failure.to_string().contains(says) =>
        {
            Ok(())
        }
        _ => Err(told.into()),
    }
}

fn reach(entry: &Value) -> Result<(), Failed> {
    let reach = block_on(sandbox().reach(text(entry, "code"))).map_err(|failure| failure.to_string())?;
    let tools: Vec<String> = reach.tools.iter().map(|(server, tool)| format!("{server}/{tool}")).collect();
    let expected: Vec<&str> =
        entry["tools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if tools != expected || reach.is_complete != (entry["complete"] == true) {
        return Err(format!("{reach:?}").into());
    }
    Ok(())
}
