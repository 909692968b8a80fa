//! Long use: memory, descriptors and threads must not grow.

use std::time::{Duration, Instant};

use plugbay_testkit::{DEADLINE, Script, Workspace, wait_until};

use crate::{
    http,
    measure::{Use, mebibytes, use_of},
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "soak-stdio",
        rule: "10 minutes of calls on stdio (short: 10 s): memory, descriptors and threads do not grow",
        run: stdio,
    },
    Scenario {
        name: "soak-http",
        rule: "The same over HTTP, with new connections and sessions",
        run: over_http,
    },
    Scenario {
        name: "soak-daemon",
        rule: "The same through the daemon, with windows that come and go",
        run: daemon,
    },
];

/// How many bytes memory may grow in a third of the run, in addition to a twentieth of it.
const SLACK: u64 = 3 << 20;

/// Runs `work` for the time of the trial and measures the process at intervals.
fn soak(trial: &Trial, pid: u32, mut work: impl FnMut(usize)) -> Outcome {
    let time = Duration::from_secs(if trial.quick { 10 } else { 600 });
    let (start, mut samples, mut rounds) = (Instant::now(), Vec::new(), 0);
    let every = time / 60;
    while start.elapsed() < time {
        work(rounds);
        rounds += 1;
        if start.elapsed() >= every * u32::try_from(samples.len()).unwrap_or(u32::MAX) {
            samples.push(use_of(pid));
        }
    }
    // The first third fills buffers and caches.
    let third = samples.len() / 3;
    let (before, after) = (mean(&samples[third..2 * third]), mean(&samples[2 * third..]));
    let mut outcome = Outcome::default();
    let grown = after.memory.saturating_sub(before.memory);
    outcome.check(grown <= SLACK + before.memory / 20, || {
        format!("memory grew by {} in a third of the time", mebibytes(grown))
    });
    outcome.check(after.descriptors <= before.descriptors + 8, || {
        format!("descriptors: {} → {}", before.descriptors, after.descriptors)
    });
    outcome.check(after.threads <= before.threads + 4, || {
        format!("threads: {} → {}", before.threads, after.threads)
    });
    outcome.figure(format!(
        "{rounds} rounds in {} s: {} → {}, {} → {} descriptors, {} → {} threads",
        time.as_secs(),
        mebibytes(before.memory),
        mebibytes(after.memory),
        before.descriptors,
        after.descriptors,
        before.threads,
        after.threads
    ))
}

fn mean(samples: &[Use]) -> Use {
    let count = samples.len().max(1);
    Use {
        memory: samples.iter().map(|sample| sample.memory).sum::<u64>() / count as u64,
        descriptors: samples.iter().map(|sample| sample.descriptors).sum::<usize>() / count,
        threads: samples.iter().map(|sample| sample.threads).sum::<usize>() / count,
    }
}

fn server() -> Script {
    Script::friendly()
        .tool("fail", r#"{"error":{"code":1,"message":"no"}}"#)
        .tool("big", r#"{"size":200000}"#)
        .tool("slow", r#"{"delay_ms":20}"#)
}

fn stdio(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let host = trial.open(&workspace, &trial::config(&workspace, &[("s", server())]), &["s__big"]);
    soak(trial, host.pid(), |round| {
        for tool in ["s__echo", "s__big", "s__fail", "fast__echo", "s__nothing"] {
            host.call(tool, "{}");
        }
        let slow = host.start_call("s__slow", "{}");
        if round % 2 == 0 {
            host.cancel(slow);
        } else {
            host.expect_response(slow);
        }
        host.list_tools();
        host.forget();
    })
}

fn over_http(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let gateway = trial.serve_http(&workspace, &trial::config(&workspace, &[("s", server())]), &[]);
    soak(trial, gateway.pid(), |round| {
        let mut host = gateway.connect();
        for tool in ["s__echo", "s__big", "s__fail", "fast__echo"] {
            http::call(&mut host, tool, "{}", &[]);
        }
        if round % 5 == 0
            && let Some(session) = http::open_session(&gateway, &[])
        {
            host.post(&[("mcp-session-id", &session)], &http::legacy_call(1, "s__echo", "{}"));
            host.reply();
            host.request("DELETE", &[("mcp-session-id", &session)], "");
            host.reply();
        }
        if round % 3 == 0 {
            // A host that leaves in the middle of a call.
            let mut leaving = gateway.connect();
            let body = http::stateless("tools/call", r#","name":"s__slow","arguments":{}"#);
            leaving.post(&http::modern("tools/call", "s__slow"), &body);
        }
    })
}

fn daemon(trial: &Trial) -> Outcome {
    let workspace = Workspace::new().with_daemon();
    let config = trial::config(&workspace, &[("s", server())]);
    let host = trial.open(&workspace, &config, &["s__big"]);
    let daemon = wait_until("the daemon", DEADLINE, || workspace.daemons().into_iter().next());
    soak(trial, daemon.pid, |round| {
        for tool in ["s__echo", "s__big", "s__fail", "fast__echo"] {
            host.call(tool, "{}");
        }
        if round % 10 == 0 {
            let window = workspace.serve(&trial.gateway);
            window.initialize();
            window.await_tools(&["s__big"]);
            window.call("s__echo", "{}");
            window.finish();
        }
        host.forget();
    })
}
