//! `plugbay demo`.

use serde_json::Value;

use crate::harness::Harness;

#[test]
fn demo_runs_on_a_fresh_machine_and_leaves_nothing_behind() {
    let harness = Harness::empty();
    let run = harness.run(&["demo"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    for part in [
        "Six servers start",
        "clock   ready",
        "broken  error",
        "cannot connect to the database",
        "total      47",
        "\n  suite         6 ",
        "\n  search        3 ",
        // One more than the servers have: `gateway_status` says why the broken server has none.
        "48 tools listed",
        "2026-03-01T03:30:00-05:00",
        "(after 3 progress notifications)",
        "order 1003 is not paid yet",
        "Did you mean shop__get_order",
        "stderr: shop: rebuilding the index of products | shop: out of memory",
        "CUP-02: 140 in stock",
        "\n  shop__get_order ",
        "the same 48 tools after",
        "mode search: 3 tools listed",
        "shop__track_shipment(shipment: string) - Where a parcel is",
        "S-88: in transit",
        "ADDED",
        "plugbay setup\n",
    ] {
        assert!(run.out.contains(part), "{part:?} is missing in\n{}", run.out);
    }
    assert!(!run.out.contains('\x1b'));
    let left: Vec<_> =
        std::fs::read_dir(harness.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    harness.wait_for_processes();
}

#[test]
fn demo_as_json_holds_the_same() {
    let json = Harness::empty().run(&["demo", "--json"]).json();
    assert_eq!(json["costs"]["servers"][0]["server"], "calc");
    assert_eq!(json["failures"][0]["server"], "broken");
    assert_eq!(json["costs"]["modes"][0]["tools"], 48);
    assert_eq!(json["calls"][0]["answer"], "2026-03-01T03:30:00-05:00");
    assert_eq!((&json["calls"][3]["progress"], &json["calls"][6]["failed"]), (&3.into(), &true.into()));
    assert_eq!((&json["first_start"]["tools"], &json["search_start"]["tools"]), (&48.into(), &3.into()));
    assert_eq!(json["second_start"]["same_tools"], true);
    let median = &json["latency"]["medians"][0];
    let times = ["direct_ms", "plugbay_ms", "added_ms"].map(|key| median[key].as_f64().unwrap());
    assert!(times[1] > 0.0 && (times[1] - times[0]).max(0.0) - times[2] < 0.002, "{median}");
}

/// On a busy machine a single run proves little.
#[test]
fn the_second_start_lists_sooner_than_the_first() {
    let listed = |json: &Value, start: &str| json[start]["listed_ms"].as_f64().expect("a number");
    let is_sooner = |_| {
        let json = Harness::empty().run(&["demo", "--json"]).json();
        listed(&json, "second_start") < listed(&json, "first_start")
    };
    assert!((0..5).any(is_sooner));
}
