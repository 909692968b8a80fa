//! Callers and sessions: the data of one never reaches another.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use plugbay_testkit::{HttpGateway, HttpHost, Script, Workspace};

use crate::{
    callers::{self, ONE, TWO},
    http,
    neighbour::{Neighbour, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "id-collisions",
        rule: "200 hosts (short: 20) with the same ids and canaries of their own: no foreign canary",
        run: id_collisions,
    },
    Scenario {
        name: "session-theft",
        rule: "A session of one caller is closed to another caller and to nobody's token, by POST, GET and DELETE",
        run: session_theft,
    },
    Scenario {
        name: "all-sessions",
        rule: "One caller opens 5,000 sessions (short: 2,200): its oldest give way, another caller keeps its own, gets a new one, and is served",
        run: all_sessions,
    },
    Scenario {
        name: "all-connections",
        rule: "One caller opens 5,000 connections (short: 700) and holds them, of a gateway with 600 descriptors: the oldest idle ones give way, another caller is served and gets a new one",
        run: all_connections,
    },
];

fn id_collisions(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let config = trial::config(&workspace, &[("s", Script::friendly())]);
    let gateway = trial.serve_http(&workspace, &config, &[]);
    let (hosts, calls) = (trial.times(20, 200), 20);
    let foreign: Vec<String> = thread::scope(|scope| {
        let gateway = &gateway;
        let threads: Vec<_> =
            (0..hosts).map(|number| scope.spawn(move || canaries(gateway, number, calls))).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|_| vec!["a host failed".to_owned()]))
            .collect()
    });
    let outcome = Outcome { faults: foreign.into_iter().take(3).collect(), ..Outcome::default() };
    outcome.figure(format!("{hosts} hosts, {} calls", hosts * calls))
}

/// Makes the calls of one host, all with the same ids as every other host. Returns the wrong answers.
fn canaries(gateway: &HttpGateway, number: usize, calls: usize) -> Vec<String> {
    let Some(session) = http::open_session(gateway, &[]) else { return vec!["no session".to_owned()] };
    let mut host = gateway.connect();
    let answers = (0..calls).filter_map(|id| {
        let canary = format!("canary-{number}.{id}.");
        let body = http::legacy_call(
            id,
            if id % 2 == 0 { "s__echo" } else { "fast__echo" },
            &format!(r#"{{"c":"{canary}"}}"#),
        );
        host.post(&[("mcp-session-id", &session)], &body);
        let reply = host.reply();
        let own = reply.body.contains(&canary) && reply.body.contains(&format!("\"id\":{id}"));
        (!own).then(|| format!("host {number} got {}", &reply.body[..reply.body.len().min(120)]))
    });
    answers.collect()
}

fn session_theft(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let gateway = callers::serve(trial, &workspace, &trial::config(&workspace, &[]));
    let session = http::open_session(&gateway, &[("authorization", ONE)]).expect("a session");
    let mut outcome = Outcome::default();
    let thieves: [(&str, Option<&str>); 3] =
        [("other caller", Some(TWO)), ("no token", None), ("wrong token", Some("Bearer x"))];
    for (name, token) in thieves {
        for method in ["POST", "GET", "DELETE"] {
            let mut headers = vec![("mcp-session-id", session.as_str())];
            headers.extend(token.map(|token| ("authorization", token)));
            let mut host = gateway.connect();
            let body =
                if method == "POST" { http::legacy_call(1, "fast__echo", "{}") } else { String::new() };
            host.request(method, &headers, &body);
            let status = host.reply().status;
            outcome.check(matches!(status, 401 | 403 | 404), || format!("{name}, {method}: {status}"));
        }
    }
    let mut host = gateway.connect();
    host.post(
        &[("mcp-session-id", &session), ("authorization", ONE)],
        &http::legacy_call(2, "fast__echo", "{}"),
    );
    outcome.check(host.reply().status == 200, || "the owner has lost its session".to_owned());
    outcome.figure("3 strangers, 3 methods")
}

fn all_sessions(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let gateway = callers::serve(trial, &workspace, &trial::config(&workspace, &[]));
    let mut outcome = Outcome::default();
    // More sessions than one caller may have.
    let wanted = trial.times(2200, 5000);
    let (one, two) = ([("authorization", ONE)], [("authorization", TWO)]);
    let existing = http::open_session(&gateway, &two).expect("a session");
    let (waits, opened) = beside(Neighbour::second_caller(&gateway), || {
        let mut host = gateway.connect();
        (0..wanted).filter_map(|_| http::open_session_on(&mut host, &one)).collect::<Vec<_>>()
    });
    let mut host = gateway.connect();
    let mut status = |session: &str, token: &str| {
        host.post(
            &[("mcp-session-id", session), ("authorization", token)],
            &http::legacy_call(1, "fast__echo", "{}"),
        );
        host.reply().status
    };
    outcome.check(opened.len() == wanted, || format!("{} of {wanted} sessions were opened", opened.len()));
    let statuses = (
        opened.first().map(|first| status(first, ONE)),
        opened.last().map(|last| status(last, ONE)),
        status(&existing, TWO),
    );
    outcome.check(statuses == (Some(404), Some(200), 200), || {
        format!("first and last session of one caller, and the session of another: {statuses:?}")
    });
    let other = http::open_session(&gateway, &two);
    outcome.check(other.is_some(), || "another caller gets no session".to_owned());
    outcome.check(waits.failed == 0, || format!("{} calls of another caller failed", waits.failed));
    outcome.figure(format!("{} of {wanted} sessions opened", opened.len()))
}

fn all_connections(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    // With so few descriptors, one caller can want more than its share.
    let gateway = callers::serve_with(trial, &workspace, &trial::config(&workspace, &[]), Some(600));
    let wanted = trial.times(700, 5000);
    let call = |host: &mut HttpHost, token| {
        // The gateway may close a connection over the limit before it has read the request.
        let answer = catch_unwind(AssertUnwindSafe(|| {
            http::call(host, "fast__echo", "{}", &[("authorization", token)])
        }));
        answer.is_ok_and(|answer| http::is_result(&answer.body))
    };
    let mut outcome = Outcome::default();
    let mut connections = Vec::new();
    let (waits, served) = beside(Neighbour::second_caller(&gateway), || {
        let mut served = 0;
        for _ in 0..wanted {
            let mut host = gateway.connect();
            served += usize::from(call(&mut host, ONE));
            connections.push(host);
        }
        served
    });
    outcome.check(waits.failed == 0, || format!("{} calls of another caller failed", waits.failed));
    outcome.check(call(&mut gateway.connect(), TWO), || "another caller gets no connection".to_owned());
    outcome.check(served > 0, || "the first caller was never served".to_owned());
    let open = connections.iter_mut().filter_map(|host| call(host, ONE).then_some(())).count();
    outcome.check(open < wanted, || "no limit was reached".to_owned());
    outcome.figure(format!("{wanted} connections, {served} served, {open} still open"))
}
