//! `plugbay run`.

use std::fs;

use crate::harness::{Harness, samples};

#[test]
fn a_script_calls_tools_and_prints_what_it_returns() {
    let harness = Harness::with(&samples());
    let script = "\
        const days: string[] = await Promise.all(input.dates.map((date) => tools.clock.weekday({ date })));\n\
        console.log(days.length, 'days');\n\
        days.map((day) => day.split(' ')[3].replace(',', ''))\n";
    fs::write(harness.path().join("days.ts"), script).unwrap();
    let input = r#"{"dates": ["2026-03-01", "2026-03-01"]}"#;
    harness.run(&["run", "days.ts", "--input", input]).check(0, "2 days\n[\"Sunday\",\"Sunday\"]\n", "");
    let line = "await tools.calc.evaluate({ expression: '6 * 7' })";
    harness.run_with_input(&["run", "-"], line).check(0, "42\n", "");
    harness.wait_for_processes();
}

#[test]
fn a_dry_run_prints_the_calls_and_makes_none() {
    let harness = Harness::with(&samples());
    let line = "const note = await tools.notes.add({ title: 'a', text: 'b' }); await tools.notes.delete({ id: note.id })";
    let run = harness.run_with_input(&["run", "-", "--dry-run"], line);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    assert!(
        run.out.contains("1. notes__add {\"title\":\"a\",\"text\":\"b\"}: fits its schema"),
        "{}",
        run.out
    );
    assert!(run.out.contains("2. notes__delete"), "{}", run.out);
    assert!(!harness.run(&["call", "notes.list"]).out.contains("\na"), "nothing was added");
}

#[test]
fn a_script_that_fails_fails_the_command() {
    let harness = Harness::with(&samples());
    let run = harness.run_with_input(&["run", "-"], "await tools.calc.evaluate({ expression: '1/0' })");
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.starts_with("error: stdin: ") && run.err.contains("division by zero"), "{}", run.err);
    let run = harness.run_with_input(&["run", "-"], "let let = 1");
    assert!(run.code == Some(1) && run.err.contains("line 1"), "{}", run.err);
    let run = harness.run(&["run", "nothing.js"]);
    assert!(run.code == Some(1) && run.err.contains("nothing.js cannot be read"), "{}", run.err);
    let run = harness.run_with_input(&["run", "-", "--input", "{"], "1");
    assert!(run.code == Some(2) && run.err.contains("--input is not JSON"), "{}", run.err);
}
