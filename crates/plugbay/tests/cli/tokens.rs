//! `plugbay tokens` and `plugbay hosts`.

use serde_json::{Value, json};

use crate::harness::{Harness, Run, sample, samples};

#[test]
fn tokens_of_each_mode_are_counted_as_hosts_see_it() {
    let harness = Harness::with(&samples());
    let counted = harness.run(&["tokens", "--server", "notes", "--explain", "--json"]).json();
    let rows: Vec<&Value> = counted["listings"].as_array().unwrap().iter().collect();
    let of = |seen: &str| rows.iter().find(|row| row["seen"] == seen).unwrap_or_else(|| panic!("{counted}"));
    let tokens = |seen: &str| of(seen)["tokens"].as_u64().unwrap();
    assert_eq!(of("search")["tools"], 3);
    assert!(tokens("search") + of("search")["instructions"].as_u64().unwrap() <= 260, "{counted}");
    assert_eq!(of("code")["tools"], 2);
    assert!(tokens("code") + of("code")["instructions"].as_u64().unwrap() <= 260, "{counted}");
    assert_eq!(of("suite")["tools"], 3);
    assert!(tokens("suite") < tokens("all"), "{counted}");
    assert_eq!(of("activate")["tools"], 3);
    assert!(tokens("activate") + of("activate")["instructions"].as_u64().unwrap() <= 350, "{counted}");
    assert_eq!(of("activate, notes on")["tools"], 9);
    assert!(
        tokens("activate, notes on") > tokens("activate") && tokens("activate, notes on") < tokens("all")
    );
    assert_eq!(tokens("activate, notes off again"), tokens("activate"));
    let told = harness.run(&["tokens", "--explain"]).out;
    assert!(
        told.contains("Tokens that the model of an unknown host reads") && told.contains("  20C  WORST\n"),
        "{told}"
    );
}

#[test]
fn tokens_explain_shows_the_modes_that_auto_chooses() {
    let harness = Harness::with(&samples());
    let counted = harness.run(&["tokens", "--explain", "--json"]).json();
    let shown = harness.run(&["hosts", "--json"]).json();
    let choices = |rows: &Value| {
        let choice = |row: &Value| {
            [&row["name"], &row["mode"], &row["why"]].map(|cell| cell.as_str().unwrap().to_owned())
        };
        rows.as_array().unwrap().iter().map(choice).collect::<Vec<_>>()
    };
    assert_eq!(choices(&counted["estimate"]["hosts"]), choices(&shown["hosts"]));
    let estimated = counted["estimate"]["definitions"].as_u64().unwrap();
    let all = &counted["estimate"]["costs"][0];
    let first = all["first"].as_u64().unwrap();
    assert!(all["mode"] == "all" && first >= estimated && first < estimated + 3_000, "{all}");
    let longest = &all["conversations"][2];
    assert_eq!((&longest["turns"], &longest["cached"]), (&json!(20), &json!(false)));
    assert!(longest["tokens"].as_u64().unwrap() > 20 * (8_000 + first), "every request has it: {all}");
    let codex = harness.run(&["tokens", "--explain", "--host", "codex/plain", "--json"]).json();
    assert_eq!(
        (&codex["estimate"]["host"], &codex["estimate"]["request"]),
        (&json!("codex/plain"), &json!(8236))
    );
    assert!(
        harness
            .run(&["tokens", "--explain", "--host", "nobody"])
            .err
            .contains("no profile of a host \"nobody\"")
    );
    let real = counted["listings"][0]["tokens"].as_u64().unwrap();
    assert!(estimated.abs_diff(real) * 5 < real, "an estimate, but a good one: {estimated} for {real}");
}

#[test]
fn host_profiles_are_shown_with_their_modes() {
    let harness = Harness::empty();
    let hosts = json!({
        "gemini-cli": { "pause": "3s", "resultLimit": 1000, "shows": "both" },
        "mine": { "clients": ["my-*"], "defersFrom": 1 },
        "unknown": { "nameLimit": 60 },
    });
    harness.configure(&json!({ "hosts": hosts, "mcpServers": samples() }).to_string());
    harness.run(&["tools"]);
    let shown = harness.run(&["hosts", "--json"]).json();
    let of = |name: &str| {
        let rows = shown["hosts"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{shown}")).clone()
    };
    assert_eq!((&of("gemini-cli")["pauseMs"], &of("gemini-cli")["listsAgain"]), (&json!(3000), &json!(true)));
    assert_eq!(
        (&of("gemini-cli")["resultLimit"], &of("gemini-cli")["shows"]),
        (&json!(1000), &json!("both"))
    );
    assert_eq!(of("unknown")["nameLimit"], 60);
    assert_eq!(of("mine")["why"], "the host keeps tools out of context itself");
    assert!(of("unknown")["why"].as_str().unwrap().contains("the cheapest mode in 5 to 20 turns"), "{shown}");
    let wrong = harness.run(&["serve", "--host", "nobody"]);
    assert!(
        wrong.err.starts_with("error: there is no profile of a host \"nobody\"\n  there are profiles of "),
        "{}",
        wrong.err
    );
}

#[test]
fn the_table_of_tokens_fits_80_columns_whatever_the_server_is_called() {
    let name = "a-server-with-the-longest-name-1";
    let harness = Harness::with(&json!({ name: sample("notes") }));
    let run = Run::of(harness.command(&["tokens"]).env("COLUMNS", "80").output().expect("plugbay runs"));
    let wide = run.out.lines().find(|line| line.chars().count() > 80);
    assert_eq!((run.code, wide), (Some(0), None), "{}", run.out);
    assert!(run.out.contains("\nsuite, introspected and called "), "{}", run.out);
    assert!(
        run.out.contains(&format!("\nintrospected, called, on and off: the server {name}\n")),
        "{}",
        run.out
    );
}
