//! `plugbay call`.

use std::fs;

use serde_json::json;

use crate::harness::{Harness, program, sample, samples};

#[test]
fn call_arguments_are_accepted_in_every_form() {
    let harness = Harness::with(&samples());
    harness.run(&["call", "calc.evaluate", "expression=(17 + 4) * 2"]).check(0, "42\n", "");
    harness.run(&["call", "calc__evaluate", r#"{ "expression": "6 * 7" }"#]).check(0, "42\n", "");
    let input = "{\n  \"expression\": \"40 + 2\"\n}\n";
    harness.run_with_input(&["call", "calc.evaluate", "-"], input).check(0, "42\n", "");
    fs::write(harness.path().join("sum.txt"), "21 * 2").unwrap();
    harness.run(&["call", "calc.evaluate", "expression=@sum.txt"]).check(0, "42\n", "");
    harness.run(&["call", "calc.factorize", "number=6"]).check(0, "6 = 2 × 3\n", "");
    harness.run(&["call", "calc.convert_base", "number=101010", "from=2", "to:=10"]).check(0, "42\n", "");
    harness.run(&["call", "clock.weekday", "date=2026-03-01", "--timeout", "100s"]).check(
        0,
        "2026-03-01 is a Sunday, day 60 of the year, ISO week 2026-W09\n",
        "",
    );
    harness.wait_for_processes();
}

#[test]
fn call_json_is_the_result_as_the_server_wrote_it() {
    let harness = Harness::with(&samples());
    let run = harness.run(&["call", "--json", "calc.evaluate", "expression=1"]);
    run.check(0, "{\"content\":[{\"text\":\"1\",\"type\":\"text\"}]}\n", "");
    let run = harness.run(&["call", "calc.evaluate", "expression=1/0", "--json"]);
    run.check(1, "{\"content\":[{\"text\":\"division by zero\",\"type\":\"text\"}],\"isError\":true}\n", "");
}

#[test]
fn a_jq_filter_is_applied_to_the_value_of_a_result() {
    let harness = Harness::with(&samples());
    harness.run(&["call", "calc.evaluate", "expression=1", "--jq", "., . + 1"]).check(0, "1\n2\n", "");
    let weekday = ["call", "clock.weekday", "date=2026-03-01", "--jq", "split(\" \") | .[0], length"];
    harness.run(&weekday).check(0, "\"2026-03-01\"\n12\n", "");
    harness.run(&[&weekday[..], &["--raw"]].concat()).check(0, "2026-03-01\n12\n", "");
    harness.run(&[&weekday[..], &["--json"]].concat()).check(0, "\"2026-03-01\"\n12\n", "");
    let failed = "error: the jq filter failed: cannot index 1 with \"a\"\n";
    harness.run(&["call", "calc.evaluate", "expression=1", "--jq", ".a"]).check(1, "", failed);
    harness.wait_for_processes();
}

#[test]
fn a_wrong_jq_filter_is_told_before_the_tool_is_called() {
    let harness = Harness::with(&samples());
    let wrong = "error: the jq filter is wrong: there is no function env (line 1, column 1): a filter sees only its \
                 input, no environment variables\n";
    harness.run(&["call", "notes.add", "title=x", "text=x", "--jq", "env.HOME"]).check(2, "", wrong);
    let error = "error: calc.evaluate: division by zero\n";
    harness.run(&["call", "calc.evaluate", "expression=1/0", "--jq", ".a"]).check(1, "", error);
}

#[test]
fn a_tool_result_with_is_error_fails_the_command() {
    let harness = Harness::with(&samples());
    let run = harness.run(&["call", "notes.delete", "id=4"]);
    run.check(1, "", "error: notes.delete: there is no note 4\n");
}

#[test]
fn a_server_in_the_place_of_a_tool_gets_the_names_of_its_tools() {
    let harness = Harness::with(&samples());
    let error = "error: clock is a server; name one of its tools: clock.TOOL\n";
    let unknown = format!("{error}  `plugbay tools --server clock` lists its tools\n");
    harness.run(&["call", "clock"]).check(2, "", &unknown);
    assert_eq!(harness.run(&["list"]).code, Some(0));
    let run = harness.run(&["call", "clock"]);
    assert!(run.err.starts_with(&format!("{error}  its tools are ")), "{}", run.err);
    assert!(run.err.contains("weekday"), "{}", run.err);
}

#[test]
fn unknown_tool_names_get_near_ones() {
    let harness = Harness::with(&samples());
    let run = harness.run(&["call", "calc.evalute", "expression=1"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(
        run.err.starts_with("error: calc has no tool \"evalute\"\n  did you mean calc.evaluate"),
        "{}",
        run.err
    );
    let expected =
        "error: there is no server \"clac\"\n  did you mean calc?\n  configured: calc, clock, notes\n";
    harness.run(&["call", "clac.evaluate"]).check(1, "", expected);
    // The server is in the cache by now, so a tool without its server can be found.
    let run = harness.run(&["call", "evaluate"]);
    run.check(
        2,
        "",
        "error: \"evaluate\" names neither a server nor a tool\n  did you mean calc.evaluate?\n",
    );
}

#[test]
fn the_call_command_follows_allow_and_deny() {
    let servers = json!({
        "calc": {
            "command": program(), "args": ["__sample", "calc"],
            "plugbay": { "deny": ["factorize"], "rename": { "evaluate": "compute" } },
        },
        "bad": sample("broken"),
        "off": { "command": "x", "disabled": true },
    });
    let harness = Harness::with(&servers);
    harness.run(&["call", "calc.compute", "expression=1"]).check(0, "1\n", "");
    harness.run(&["call", "calc.evaluate", "expression=1"]).check(0, "1\n", "");
    let run = harness.run(&["call", "calc.factorize", "number=4"]);
    assert!(run.err.starts_with("error: the configuration hides the tool \"factorize\" of calc\n"));
    let off = "error: server off is disabled in the configuration\n  `plugbay enable off` uses it again\n";
    harness.run(&["call", "off.x"]).check(1, "", off);
    let run = harness.run(&["call", "bad.x"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.starts_with("error: server bad does not work\n  exit code 3"), "{}", run.err);
}

#[test]
fn command_line_errors_and_failures_have_different_exit_codes() {
    let harness = Harness::with(&samples());
    for arguments in [
        &["call"][..],
        &["call", "calc.evaluate", "expression"],
        &["call", "calc.evaluate", "{\"expression\":"],
        &["call", "calc.evaluate", "expression=1", "expression=2"],
        &["call", "calc.factorize", "number=six"],
        &["call", "calc.evaluate", "expression=1", "--timeout", "soon"],
    ] {
        let run = harness.run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.err.starts_with("error: "), "{}", run.err);
    }
}

#[test]
fn a_call_of_a_server_that_crashes_without_a_word_names_the_doctor() {
    let harness = Harness::with(&json!({ "shop": { "command": "sh", "args": ["-c", "exit 4"] } }));
    let expected = "error: server shop does not work\n  exit code 4 before it answered\n  \
                    `plugbay doctor shop` looks for the cause\n";
    harness.run(&["call", "shop.x"]).check(1, "", expected);
}
