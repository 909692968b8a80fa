//! Callers and sessions: what is of one never reaches another.

use std::thread;

use plugbay_testkit::{HttpGateway, Script, Workspace};

use crate::{
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
        rule: "One caller opens 5,000 sessions (short: 600): another caller still gets one, and is served",
        run: all_sessions,
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

/// Calls of one host, all with the ids that every other host uses: the wrong answers.
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

/// A gateway for the callers `one` and `two`.
fn two_callers(trial: &Trial, workspace: &Workspace) -> HttpGateway {
    let tokens = workspace.path().join("tokens");
    std::fs::write(&tokens, "token-of-caller-number-one-0123456789\ntoken-of-caller-number-two-0123456789\n")
        .expect("tokens");
    let config = trial::config(workspace, &[]);
    let options = ["--token-file", &tokens.to_string_lossy()];
    trial.serve_http_as(workspace, &config, &options, &[("authorization", ONE)])
}

const ONE: &str = "Bearer token-of-caller-number-one-0123456789";
const TWO: &str = "Bearer token-of-caller-number-two-0123456789";

fn session_theft(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let gateway = two_callers(trial, &workspace);
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
    let gateway = two_callers(trial, &workspace);
    let mut outcome = Outcome::default();
    let wanted = trial.times(600, 5000);
    let (waits, opened) = beside(Neighbour::over_http(&gateway, TWO.strip_prefix("Bearer ")), || {
        let mut host = gateway.connect();
        let sessions = (0..wanted).filter(|_| {
            host.post(&[("authorization", ONE)], http::INITIALIZE);
            host.reply().status == 200
        });
        sessions.count()
    });
    let other = http::open_session(&gateway, &[("authorization", TWO)]);
    outcome.check(other.is_some(), || format!("after {opened} sessions of one caller another gets none"));
    outcome.check(waits.failed == 0, || format!("{} calls of another caller failed", waits.failed));
    outcome.figure(format!(
        "{opened} of {wanted} sessions opened; another caller got {}",
        if other.is_some() { "one" } else { "none" }
    ))
}
