//! Hosts over HTTP that read slowly, or send only half a request.

use std::{io::Write, net::TcpStream, time::Duration};

use plugbay_testkit::{HttpGateway, HttpHost, Script, Workspace};

use super::streams::rest;
use crate::{
    callers, http,
    measure::{mebibytes, milliseconds, peak, spread},
    neighbour::{Neighbour, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "slow-readers",
        rule: "1,000 hosts that do not read their answers (short: 50): other callers' p99 at most twice as long, or 5 ms more",
        run: slow_readers,
    },
    Scenario {
        name: "half-open",
        rule: "500 half-sent requests: other callers' p99 at most twice as long, or 5 ms more",
        run: half_open,
    },
    Scenario {
        name: "unread-answers",
        rule: "Hosts that ask for 480 MB and read nothing: memory stays below 512 MiB, other callers are served",
        run: unread_answers,
    },
];

/// Compares the waits of another caller before and during `work`.
fn compare(trial: &Trial, gateway: &HttpGateway, work: impl FnOnce() -> String) -> Outcome {
    let time = if trial.quick { 600 } else { 3000 };
    let calm = beside(Neighbour::over_http(gateway), || rest(time)).0;
    let figure = work();
    let waits = beside(Neighbour::over_http(gateway), || rest(time)).0;
    let ((before, _), (during, longest)) = (spread(&calm.times), spread(&waits.times));
    let limit = (2 * before).max(before + Duration::from_millis(5));
    let mut outcome = Outcome::default();
    let failed = calm.failed + waits.failed;
    outcome.check(failed == 0, || format!("{failed} calls of another caller failed"));
    outcome.check_time(trial, during, limit, || format!("p99 was {before:?} and became {during:?}"));
    outcome.figure(format!(
        "{figure}: p99 {} → {}, longest {}",
        milliseconds(before),
        milliseconds(during),
        milliseconds(longest)
    ))
}

fn slow_readers(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let big = Script::friendly().tool("big", r#"{"size":1000000}"#);
    let gateway = trial.serve_http(&workspace, &trial::config(&workspace, &[("s", big)]), &[]);
    let count = trial.times(50, 1000);
    let mut readers = Vec::new();
    compare(trial, &gateway, || {
        for _ in 0..count {
            let mut host = gateway.connect_slow();
            let body = http::stateless("tools/call", r#","name":"s__big","arguments":{}"#);
            host.post(&http::modern("tools/call", "s__big"), &body);
            readers.push(host);
        }
        // From here on the gateway has their answers, but can write no more of them.
        readers.iter_mut().for_each(HttpHost::begins);
        format!("{count} slow readers")
    })
}

fn half_open(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let gateway = trial.serve_http(&workspace, &trial::config(&workspace, &[]), &[]);
    let mut streams = Vec::new();
    compare(trial, &gateway, || {
        for number in 0..500 {
            let mut stream = TcpStream::connect(gateway.address()).expect("the gateway listens");
            let part = [
                "POST /mcp HT",
                "POST /mcp HTTP/1.1\r\nhost: a\r\n",
                "POST /mcp HTTP/1.1\r\ncontent-length: 1000\r\n\r\n{",
            ];
            let _ = stream.write_all(part[number % part.len()].as_bytes());
            streams.push(stream);
        }
        format!("{} half-open connections", streams.len())
    })
}

fn unread_answers(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let big = Script::friendly().tool("big", r#"{"size":8000000}"#);
    let gateway = callers::serve(trial, &workspace, &trial::config(&workspace, &[("s", big)]));
    let pid = gateway.pid();
    let mut hosts = Vec::new();
    let (waits, ()) = beside(Neighbour::second_caller(&gateway), || {
        for _ in 0..trial.times(8, 60) {
            let mut host = gateway.connect_slow();
            let body = http::stateless("tools/call", r#","name":"s__big","arguments":{}"#);
            let mut headers = http::modern("tools/call", "s__big");
            headers.push(("authorization", callers::ONE));
            host.post(&headers, &body);
            host.begins();
            hosts.push(host);
        }
    });
    let (most, mut outcome) = (peak(pid), Outcome::default());
    outcome.check(most <= 512 << 20, || format!("memory rose to {}", mebibytes(most)));
    outcome.check(waits.failed == 0, || format!("{} calls of another caller failed", waits.failed));
    outcome.figure(format!(
        "{} hosts, {} MB unread: at most {} in use",
        hosts.len(),
        hosts.len() * 8,
        mebibytes(most)
    ))
}
