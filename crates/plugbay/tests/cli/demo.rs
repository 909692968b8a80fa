//! `plugbay demo`.

use std::{thread, time::Duration};

use crate::harness::Harness;

#[test]
fn the_demo_runs_on_a_fresh_machine_and_leaves_nothing_behind() {
    let harness = Harness::empty();
    let run = harness.run(&["demo"]);
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
    let left: Vec<_> =
        std::fs::read_dir(harness.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    // The guard goes last, a moment after the program that it watched.
    for _ in 0..100 {
        if harness.processes().is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("{:?}", harness.processes());
}

#[test]
fn the_list_as_json_has_the_same_states() {
    let json = Harness::empty().run(&["demo", "--json"]).json();
    assert_eq!(json["costs"]["servers"][0]["server"], "calc");
    assert_eq!(json["failures"][0]["server"], "broken");
    assert_eq!(json["calls"][3]["answer"], "42");
    assert_eq!(json["second_start"]["same_tools"], true);
    assert!(json["latency"]["medians"][0]["plugbay_ms"].as_f64().unwrap() > 0.0);
    assert!(json["second_start"]["listed_ms"].as_f64() < json["first_start"]["listed_ms"].as_f64());
}
