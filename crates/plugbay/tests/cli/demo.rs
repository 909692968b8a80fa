//! `plugbay demo`.

use plugbay_testkit::{DEADLINE, wait_until};
use serde_json::Value;

use crate::world::World;

#[test]
fn runs_on_a_fresh_machine_and_leaves_nothing_behind() {
    let world = World::empty();
    let run = world.run(&["demo"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    for part in [
        "Four servers start",
        "clock   ready",
        "broken  error",
        "cannot connect to the database",
        "19 tools listed",
        "2026-03-01T03:30:00-05:00",
        "division by zero",
        "Did you mean calc__evaluate",
        "total      19",
        "calc__evaluate",
        "the same 19 tools listed",
        "config/plugbay/config.jsonc",
        "plugbay serve",
    ] {
        assert!(run.out.contains(part), "{part:?} is missing in\n{}", run.out);
    }
    assert!(!run.out.contains('\x1b'));
    let left: Vec<_> = std::fs::read_dir(world.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    // The guard goes last, a moment after the program that it watched.
    wait_until("the guard to end", DEADLINE, || world.processes().is_empty().then_some(()));
}

#[test]
fn json_holds_the_same() {
    let json = World::empty().run(&["demo", "--json"]).json();
    assert_eq!(json["costs"]["servers"][0]["server"], "calc");
    assert_eq!(json["failures"][0]["server"], "broken");
    assert_eq!(json["calls"][3]["answer"], "42");
    assert_eq!(json["second_start"]["same_tools"], true);
    assert!(json["latency"]["medians"][0]["plugbay_ms"].as_f64().unwrap() > 0.0);
}

/// On a busy machine a single run tells little.
#[test]
fn the_second_start_lists_sooner_than_the_first() {
    let listed = |json: &Value, start: &str| json[start]["listed_ms"].as_f64().expect("a number");
    let is_sooner = |_| {
        let json = World::empty().run(&["demo", "--json"]).json();
        listed(&json, "second_start") < listed(&json, "first_start")
    };
    assert!((0..5).any(is_sooner));
}
