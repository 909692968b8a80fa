//! The era of a server: every way in which it may answer the opening.

use std::collections::HashMap;

use plugbay_core::{
    catalog::Dialect,
    era::{Era, MODERN_VERSION, VERSION_KEY},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    SECOND,
    harness::{Harness, Setup, silent},
    peer::Peer,
};

use Step::{Answer, Exit, Hear, Refuse, Say, Wait};

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

#[derive(Debug, Clone, Copy)]
enum Step {
    Hear(&'static str),
    /// A result for the request of this method.
    Answer(&'static str),
    Refuse(&'static str),
    Say(&'static str),
    Wait(u32),
    /// The server exits; the script continues with the next launch.
    Exit,
}

/// Plays the script. Returns the server's end, unless the server exits in the last step.
async fn perform(harness: &mut Harness, script: &[Step]) -> Option<Peer> {
    let mut running: Option<Peer> = None;
    let mut heard: HashMap<&str, Value> = HashMap::new();
    for step in script {
        let mut peer = match running.take() {
            Some(peer) => peer,
            None => harness.launched().await,
        };
        match *step {
            Hear(method) => drop(heard.insert(method, peer.expect(method).await)),
            Answer(method) => peer.answer(&heard[method], json!({ "capabilities": { "tools": {} } })).await,
            Refuse(method) => peer.refuse(&heard[method], "no, thanks").await,
            Say(line) => peer.say(line).await,
            Wait(seconds) => sleep(seconds * SECOND).await,
            Exit => continue,
        }
        running = Some(peer);
    }
    running
}

/// The era that is determined for a server with this behaviour, and whether the next start tries again.
async fn era_of(known: Option<Dialect>, script: &[Step]) -> (Era, bool) {
    let mut harness = Harness::new(Setup { known, ..Setup::default() });
    harness.call("tool");
    let mut peer = perform(&mut harness, script).await.expect("a running server");
    let message = peer.next().await.expect("it is of use");
    let (era, list) = match message["method"].as_str() {
        Some("notifications/initialized") => (Era::Legacy, peer.expect("tools/list").await),
        _ => (Era::Modern, message),
    };
    assert_eq!(list["method"], "tools/list", "{script:?}");
    if era == Era::Modern {
        let listen = peer.expect("subscriptions/listen").await;
        assert_eq!(listen["params"]["notifications"], json!({ "toolsListChanged": true }));
    }
    // The call came from a legacy host: a modern server gets all that it needs, next to the token.
    let request = peer.expect_call("tool").await;
    for message in [&list, &request] {
        let version = message["params"]["_meta"][VERSION_KEY].as_str();
        assert_eq!(version, (era == Era::Modern).then_some(MODERN_VERSION), "{message}");
    }
    assert_eq!(harness.handle.status().borrow().era, Some(era));
    peer.answer(&list, json!({ "tools": [] })).await;
    let dialect = harness.offer().await.dialect;
    assert_eq!(dialect.era, era);
    (era, dialect.asked_in_vain.is_none())
}

type Case<'a> = (&'a str, Option<Dialect>, &'a [Step], (Era, bool));

#[tokio::test(start_paused = true)]
async fn the_era_of_each_kind_of_server_is_recognised() {
    let null_error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#;
    let (legacy, modern) = (Some(Era::Legacy.into()), Some(Era::Modern.into()));
    // A server that answered `server/discover` gets it again at the next start. Any other does not, for a
    // while.
    let (renewable, resting) = ((Era::Legacy, true), (Era::Legacy, false));
    let long_ago = Some(Dialect { asked_in_vain: Some(20_000), ..Era::Legacy.into() });
    let cases: &[Case<'_>] = &[
        ("modern", None, &[Hear(DISCOVER), Answer(DISCOVER)], (Era::Modern, true)),
        ("modern after noise", None, &[Hear(DISCOVER), Say("hello"), Answer(DISCOVER)], (Era::Modern, true)),
        (
            "an error",
            None,
            &[Hear(DISCOVER), Refuse(DISCOVER), Hear(INITIALIZE), Answer(INITIALIZE)],
            renewable,
        ),
        (
            "an error to nobody",
            None,
            &[Hear(DISCOVER), Say(null_error), Hear(INITIALIZE), Answer(INITIALIZE)],
            renewable,
        ),
        ("silence", None, &[Hear(DISCOVER), Hear(INITIALIZE), Answer(INITIALIZE)], resting),
        ("exit", None, &[Hear(DISCOVER), Exit, Hear(INITIALIZE), Answer(INITIALIZE)], resting),
        ("exit unheard", None, &[Exit, Hear(INITIALIZE), Answer(INITIALIZE)], resting),
        (
            "modern, late",
            None,
            &[Hear(DISCOVER), Wait(3), Hear(INITIALIZE), Answer(DISCOVER)],
            (Era::Modern, true),
        ),
        (
            "modern, late, and it says so",
            None,
            &[Hear(DISCOVER), Wait(3), Hear(INITIALIZE), Answer(DISCOVER), Refuse(INITIALIZE)],
            (Era::Modern, true),
        ),
        (
            "both, late",
            None,
            &[Hear(DISCOVER), Wait(3), Hear(INITIALIZE), Answer(DISCOVER), Answer(INITIALIZE)],
            renewable,
        ),
        (
            "legacy, and a late refusal",
            None,
            &[Hear(DISCOVER), Wait(3), Hear(INITIALIZE), Refuse(DISCOVER), Wait(20), Answer(INITIALIZE)],
            renewable,
        ),
        (
            "known as legacy",
            legacy,
            &[Hear(DISCOVER), Refuse(DISCOVER), Hear(INITIALIZE), Wait(20), Answer(INITIALIZE)],
            renewable,
        ),
        ("legacy once", legacy, &[Hear(DISCOVER), Answer(DISCOVER)], (Era::Modern, true)),
        ("known for its silence", Some(silent()), &[Hear(INITIALIZE), Wait(29), Answer(INITIALIZE)], resting),
        (
            "silent once",
            Some(silent()),
            &[Hear(INITIALIZE), Refuse(INITIALIZE), Hear(DISCOVER), Answer(DISCOVER)],
            (Era::Modern, true),
        ),
        ("silent long ago", long_ago, &[Hear(DISCOVER), Answer(DISCOVER)], (Era::Modern, true)),
        (
            "silent long ago, and still",
            long_ago,
            &[Hear(DISCOVER), Hear(INITIALIZE), Answer(INITIALIZE)],
            resting,
        ),
        ("known as modern", modern, &[Hear(DISCOVER), Answer(DISCOVER)], (Era::Modern, true)),
        (
            "modern once",
            modern,
            &[Hear(DISCOVER), Refuse(DISCOVER), Hear(INITIALIZE), Answer(INITIALIZE)],
            renewable,
        ),
    ];
    for (what, known, script, expected) in cases {
        assert_eq!(era_of(*known, script).await, *expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_opening_is_reported_with_its_reason() {
    let refused = "refused to be initialised: no, thanks";
    let gone = "closed its output before it answered";
    let legacy = Some(Era::Legacy.into());
    let cases: &[(Option<Dialect>, &[Step], &str)] = &[
        (None, &[Hear(DISCOVER), Refuse(DISCOVER), Hear(INITIALIZE), Refuse(INITIALIZE)], refused),
        (Some(silent()), &[Hear(INITIALIZE), Refuse(INITIALIZE), Hear(DISCOVER), Refuse(DISCOVER)], refused),
        (legacy, &[Hear(DISCOVER), Refuse(DISCOVER), Hear(INITIALIZE), Refuse(INITIALIZE)], refused),
        (None, &[Hear(DISCOVER), Refuse(DISCOVER), Hear(INITIALIZE), Exit], gone),
        (None, &[Hear(DISCOVER), Exit, Hear(INITIALIZE), Exit], gone),
        (Some(silent()), &[Hear(INITIALIZE), Exit], gone),
        (None, &[Hear(DISCOVER), Hear(INITIALIZE)], "did not answer within 30 s of its start"),
    ];
    for (known, script, words) in cases {
        let mut harness = Harness::new(Setup { known: *known, ..Setup::default() });
        let call = harness.call("tool");
        let _running = perform(&mut harness, script).await;
        let end = harness.calls.end(call).await;
        assert!(end.contains(words), "{script:?}: {end}");
    }
}
