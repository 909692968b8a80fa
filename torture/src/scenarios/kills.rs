//! Killing, stopping and ending processes: servers, and the gateway itself.

use std::{
    fs,
    time::{Duration, Instant},
};

use plugbay_testkit::{DEADLINE, Host, Process, Script, Signal, Workspace, patience, wait_until};
use serde_json::{Value, json};

use crate::{
    dice::Dice,
    http,
    measure::milliseconds,
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "server-kill",
        rule: "A server killed in mid-call: one reply within 1 s, other servers undisturbed, back within 2 s",
        run: server_kill,
    },
    Scenario {
        name: "gateway-kill",
        rule: "`kill -9` of the gateway, also in mid-write: no process after 5 s, no corrupt file, no draft after the next start",
        run: gateway_kill,
    },
    Scenario {
        name: "kill-setsid",
        rule: "A child that left its group by `setsid` ends within 5 s of `kill -9` of the gateway",
        run: kill_setsid,
    },
    Scenario {
        name: "server-stop",
        rule: "A stopped server (SIGSTOP): the deadline is met within 5%, other servers are served, it works again after SIGCONT",
        run: server_stop,
    },
    Scenario {
        name: "terminate-http",
        rule: "SIGTERM under load over HTTP: no accepted call is lost, the end comes within 30 s",
        run: terminate_http,
    },
    Scenario {
        name: "terminate-stdio",
        rule: "SIGTERM under load on stdio: no accepted call is lost that ends within the drain",
        run: terminate_stdio,
    },
    Scenario {
        name: "drain",
        rule: "SIGTERM on stdio with `drain` of 60 s and 300 ms: a call of 3.5 s is answered in the first, and the second ends without a call of 5 minutes",
        run: drain,
    },
    Scenario {
        name: "guard-kill",
        rule: "`kill -9` of the guard, and of the gateway once it has another, with servers that ignore everything: no process after 5 s",
        run: guard_kill,
    },
];

/// Starts a call of `delay` milliseconds on stdio and ends the gateway by SIGTERM. Returns whether the call
/// was answered.
fn answered_in_drain(trial: &Trial, drain: &str, delay: u32) -> (bool, Duration) {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("slow", format!(r#"{{"delay_ms":{delay}}}"#));
    let config = trial::config(&workspace, &[("s", script)]).top("drain", json!(drain));
    let mut host = trial.open(&workspace, &config, &["s__slow"]).with_deadline(DEADLINE);
    let call = host.start_call("s__slow", "{}").to_string();
    workspace.await_log("s", r#""name":"slow""#, 1);
    let start = Instant::now();
    host.signal(Signal::TERM);
    let ended = host.wait_for_exit();
    let mut replies = ended.messages.iter().filter(|m| m.is_response() && m.id() == Some(&call));
    let answered = replies.any(|reply| !reply.is_error() && http::is_result(reply.text()));
    (answered, start.elapsed())
}

fn drain(trial: &Trial) -> Outcome {
    let mut outcome = Outcome::default();
    // First longer than the default of 2 s, then shorter.
    let (answered, _) = answered_in_drain(trial, "60s", 3500);
    outcome.check(answered, || "a call of 3.5 s was lost in a drain of 60 s".to_owned());
    let (answered, took) = answered_in_drain(trial, "300ms", 300_000);
    outcome.check(!answered, || "a call of 5 minutes was answered in a drain of 300 ms".to_owned());
    outcome.check(took < Duration::from_secs(100), || format!("the end took {took:?}"));
    outcome.check_time(trial, took, 3 * SECOND, || format!("the end took {took:?} in a drain of 300 ms"));
    outcome.figure(format!("3.5 s within 60 s; the end after {} of 300 ms", milliseconds(took)))
}

fn guard_kill(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let script = Script::friendly().set("children", 1).set("ignore_term", true).set("ignore_eof", true);
    let config = trial::config(&workspace, &[("s", script)]);
    let mut host = trial.open(&workspace, &config, &["s__echo", "fast__echo"]);
    host.call("s__echo", "{}").content_text();
    let is_guard = |process: &Process| process.command.contains("__guard");
    let guard = wait_until("the guard", DEADLINE, || host.descendants().into_iter().find(is_guard));
    let servers: Vec<Process> = host.descendants().into_iter().filter(|process| !is_guard(process)).collect();
    let mut outcome = Outcome::default();
    outcome.check(servers.len() >= 2, || "there are no servers".to_owned());
    guard.signal(Signal::KILL);
    // Killing both at the same moment would leave orphans, because no process is left to end them.
    wait_until("another guard", DEADLINE, || {
        let found = host.descendants().into_iter().find(is_guard)?;
        (found.pid != guard.pid).then_some(())
    });
    host.signal(Signal::KILL);
    host.wait_for_exit();
    let killed = Instant::now();
    let left = || servers.iter().filter(|process| process.is_alive()).count();
    while left() > 0 && killed.elapsed() < patience(20 * SECOND) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let (took, left) = (killed.elapsed(), left());
    outcome.check(left == 0, || format!("{left} of {} processes are alive after {took:?}", servers.len()));
    outcome.check_time(trial, took, 5 * SECOND, || format!("a process lived {took:?} longer"));
    outcome.figure(format!("{} processes gone after {}", servers.len() - left, milliseconds(took)))
}

fn server_kill(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("hang", r#"{"hang":true}"#);
    let host =
        trial.open(&workspace, &trial::config(&workspace, &[("s", script)]), &["s__hang", "fast__echo"]);
    let mut outcome = Outcome::default();
    let (mut ended, mut back) = (Duration::ZERO, Duration::ZERO);
    for round in 1..=trial.times(20, 500) {
        let call = host.start_call("s__hang", "{}");
        workspace.await_log("s", r#""name":"hang""#, round);
        let killed = Instant::now();
        workspace.server_process("s").signal(Signal::KILL);
        host.call("fast__echo", "{}").content_text();
        host.expect_response(call);
        ended = ended.max(killed.elapsed());
        // A server that has just failed may pause for a moment; until it is back, its calls fail and say so.
        wait_until("the server to be back", DEADLINE, || {
            let answer = host.call("s__echo", "{}");
            (!answer.is_error() && answer.result_value()["isError"] != true).then_some(())
        });
        back = back.max(killed.elapsed());
        let replies = host.messages().iter().filter(|m| m.id() == Some(&call.to_string())).count();
        outcome.check(replies == 1, || format!("{replies} replies to call {call}"));
    }
    outcome.check_time(trial, ended, SECOND, || format!("a call ended {ended:?} after the kill"));
    outcome.check_time(trial, back, 2 * SECOND, || format!("the server was back after {back:?}"));
    outcome.figure(format!("longest end {}, back after {}", milliseconds(ended), milliseconds(back)))
}

fn gateway_kill(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let script = Script::friendly().set("children", 1).set("ignore_term", true).set("tools", 40);
    let servers: Vec<(&str, Script)> = ["a", "b", "c"].map(|name| (name, script.clone())).to_vec();
    workspace.write_config(&workspace.config(&servers));
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(trial.seed));
    let mut longest = Duration::ZERO;
    let rounds = trial.times(10, 200);
    for round in 0..rounds {
        // New content for the cache in each round, so that it is being written while the gateway is killed.
        let script = script.clone().set("instructions", Value::from(format!("{round} ").repeat(200_000)));
        for (name, _) in &servers {
            workspace.write_script(name, &script);
        }
        let listed = || servers.iter().map(|(name, _)| workspace.count_log(name, "listed")).sum::<usize>();
        let before = listed();
        let mut host = workspace.serve(&trial.gateway);
        let _ = host.request(
            "initialize",
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}"#,
        );
        // Kills at a random moment between the start and the last list, or a little later.
        let wanted = dice.roll(servers.len() + 1);
        let begun = Instant::now();
        while listed() < before + wanted && begun.elapsed() < patience(3 * SECOND) {
            std::thread::park_timeout(Duration::from_millis(2));
        }
        std::thread::park_timeout(Duration::from_micros(dice.roll(40_000) as u64));
        host.signal(Signal::KILL);
        host.wait_for_exit();
        let killed = Instant::now();
        wait_until("all processes to end", DEADLINE, || workspace.processes().is_empty().then_some(()));
        longest = longest.max(killed.elapsed());
        let corrupt = corrupt(&workspace);
        outcome.check(corrupt.is_empty(), || format!("round {round}: corrupt {corrupt:?}"));
    }
    outcome.check_time(trial, longest, 5 * SECOND, || format!("a process lived {longest:?} longer"));
    let host = workspace.serve(&trial.gateway);
    host.initialize();
    host.await_tools(&["a__tool_0", "b__tool_0", "c__tool_0"]);
    host.finish();
    let drafts: Vec<_> = workspace.files("cache").into_iter().filter(|path| !is_known(path)).collect();
    outcome.check(drafts.is_empty(), || format!("{} drafts left: {:?}", drafts.len(), drafts.first()));
    outcome.figure(format!("{rounds} kills, all processes gone after {}", milliseconds(longest)))
}

/// Cache files whose format line or the head after it is not JSON, and files that plugbay has moved aside.
fn corrupt(workspace: &Workspace) -> Vec<std::path::PathBuf> {
    let is_corrupt = |path: &std::path::PathBuf| {
        let content = fs::read(path).unwrap_or_default();
        let values = serde_json::Deserializer::from_slice(&content).into_iter::<Value>();
        match path.extension().and_then(std::ffi::OsStr::to_str) {
            Some("json") => values.take(2).flatten().count() < 2,
            extension => extension == Some("corrupt"),
        }
    };
    workspace.files("cache").into_iter().filter(is_corrupt).collect()
}

/// Whether a file in the cache folder is meant to stay.
fn is_known(path: &std::path::Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ends = path.extension().is_some_and(|extension| extension == "json" || extension == "log");
    name == ".lock" || ends && !name.starts_with('.')
}

fn kill_setsid(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let entry = trial::stub(&workspace, "s", &[("setsid", "")]);
    let config = trial::config(&workspace, &[]).entry("s", entry);
    let mut host = trial.open(&workspace, &config, &["s__raw"]);
    host.call("s__raw", "{}");
    let child = workspace.path().join("s/child");
    let find = || -> Option<Process> {
        workspace.processes().into_iter().find(|process| process.command.contains(&*child.to_string_lossy()))
    };
    let process = wait_until("the child", DEADLINE, find);
    host.signal(Signal::KILL);
    host.wait_for_exit();
    let (killed, mut outcome) = (Instant::now(), Outcome::default());
    // A child that is alive after a minute is not a question of speed.
    while process.is_alive() && killed.elapsed() < patience(60 * SECOND) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let took = killed.elapsed();
    outcome.check(!process.is_alive(), || format!("the child is still alive after {took:?}"));
    outcome.check_time(trial, took, 5 * SECOND, || format!("the child lived {took:?} longer"));
    outcome.figure(format!("gone after {}", milliseconds(took)))
}

fn server_stop(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let config =
        trial::config(&workspace, &[("s", Script::friendly())]).options("s", json!({ "timeout": "2s" }));
    let host = trial.open(&workspace, &config, &["s__echo", "fast__echo"]);
    host.call("s__echo", "{}").content_text();
    let (process, mut outcome) = (workspace.server_process("s"), Outcome::default());
    process.stop();
    let start = Instant::now();
    let call = host.start_call("s__echo", "{}");
    host.call("fast__echo", "{}").content_text();
    let served = start.elapsed();
    let ended = host.expect_response(call);
    let took = start.elapsed();
    process.resume();
    outcome.check(trial::mentions(ended.text(), &["within", "time"]), || format!("{ended:?}"));
    outcome.check(took >= 2 * SECOND, || format!("ended before the deadline, after {took:?}"));
    outcome.check(served < took, || format!("another server answered only after {served:?}"));
    outcome.check_time(trial, took, Duration::from_millis(2100), || format!("ended after {took:?}"));
    outcome.check_time(trial, served, SECOND, || format!("another server answered after {served:?}"));
    wait_until("the server to work again", DEADLINE, || {
        let answer = host.call("s__echo", "{}");
        (!answer.is_error() && answer.result_value()["isError"] != true).then_some(())
    });
    outcome.figure(format!("deadline of 2 s met after {}", milliseconds(took)))
}

fn terminate_http(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("slow", r#"{"delay_ms":1500}"#);
    let config = trial::config(&workspace, &[("s", script)]);
    let mut gateway = trial.serve_http(&workspace, &config, &[]);
    let count = 32;
    let mut hosts: Vec<_> = (0..count).map(|_| gateway.connect()).collect();
    for host in &mut hosts {
        let body = http::stateless("tools/call", r#","name":"s__slow","arguments":{}"#);
        host.post(&http::modern("tools/call", "s__slow"), &body);
    }
    workspace.await_log("s", r#""name":"slow""#, count);
    let start = Instant::now();
    gateway.terminate();
    let answered = hosts.into_iter().filter_map(|mut host| {
        let reply = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.reply()));
        reply.ok().filter(|reply| http::is_result(&reply.body))
    });
    let answered = answered.count();
    gateway.ended();
    let took = start.elapsed();
    let mut outcome = Outcome::default();
    outcome.check(answered == count, || format!("{} of {count} calls were lost", count - answered));
    outcome.check_time(trial, took, 30 * SECOND, || format!("the end took {took:?}"));
    outcome.figure(format!("{answered} of {count} answered, end after {}", milliseconds(took)))
}

fn terminate_stdio(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("slow", r#"{"delay_ms":500}"#);
    let config = trial::config(&workspace, &[("s", script)]);
    let mut host: Host = trial.open(&workspace, &config, &["s__slow"]);
    let calls: Vec<u64> = (0..3).map(|_| host.start_call("s__slow", "{}")).collect();
    workspace.await_log("s", r#""name":"slow""#, calls.len());
    host.signal(Signal::TERM);
    let ended = host.wait_for_exit();
    let answered = calls.iter().filter(|call| {
        let id = call.to_string();
        let mut replies = ended.messages.iter().filter(|m| m.is_response() && m.id() == Some(&id));
        replies.any(|reply| !reply.is_error() && http::is_result(reply.text()))
    });
    let (answered, mut outcome) = (answered.count(), Outcome::default());
    outcome.check(answered == calls.len(), || format!("{} calls got no reply", calls.len() - answered));
    outcome.figure(format!("{answered} of {} answered", calls.len()))
}
