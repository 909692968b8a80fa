//! `plugbay add` and `plugbay add-json`.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use serde_json::{Value, json};

use crate::harness::{Harness, Run, program, sample};

fn add(harness: &Harness, words: &[&str], sample: &str) -> Run {
    harness.run(&[&["add"], words, &["--", program(), "__sample", sample]].concat())
}

/// The servers that plugbay uses, by name.
fn servers(harness: &Harness) -> Vec<String> {
    let list = harness.run(&["list", "--json"]);
    let rows = if list.out.is_empty() { json!([]) } else { list.json()["servers"].clone() };
    rows.as_array().into_iter().flatten().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_server_is_tried_and_then_added_to_a_new_file_of_its_owner() {
    let harness = Harness::empty();
    let run = add(&harness, &["calc", "-e", "API_KEY=hunter2-hunter2"], "calc");
    let file = harness.user_file();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("  calc__evaluate") && run.out.contains("\n  6 tools "), "{}", run.out);
    assert!(run.out.ends_with(&format!("\n\nadded calc to {}\n", file.display())), "{}", run.out);
    let note = "note: env API_KEY of calc looks like a secret, and the file holds it as it is; '${API_KEY}'";
    assert!(run.err.starts_with(note) && !run.err.contains("hunter2"), "{}", run.err);
    let expected = format!(
        "{{\n  \"mcpServers\": {{\n    \"calc\": {{\n      \"command\": \"{}\",\n      \"args\": [\"__sample\", \"calc\"],\n      \
         \"env\": {{\n        \"API_KEY\": \"hunter2-hunter2\"\n      }}\n    }}\n  }}\n}}\n",
        program()
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert_eq!(servers(&harness), ["calc"]);
    harness.wait_for_processes();
}

#[test]
fn an_added_server_leaves_comments_order_and_a_symbolic_link_as_they_are() {
    let harness = Harness::empty();
    let text = "// mine\n{\n  \"mode\": \"all\", // always\n  \"mcpServers\": {\n    // the first\n    \"z\": { \"command\": \"x\", \"disabled\": true },\n  },\n}\n";
    let dotfile = harness.path().join("dotfiles.jsonc");
    fs::write(&dotfile, text).unwrap();
    fs::create_dir_all(harness.user_file().parent().unwrap()).unwrap();
    symlink(&dotfile, harness.user_file()).unwrap();
    assert_eq!(add(&harness, &["a"], "clock").code, Some(0));
    assert!(fs::symlink_metadata(harness.user_file()).unwrap().is_symlink());
    let written = fs::read_to_string(&dotfile).unwrap();
    let (before, after) = text.split_once("  },\n}\n").map(|(before, _)| (before, "  },\n}\n")).unwrap();
    assert!(written.starts_with(before) && written.ends_with(after), "{written}");
    assert_eq!(harness.run(&["remove", "a"]).code, Some(0));
    assert_eq!(fs::read_to_string(&dotfile).unwrap(), text, "to add and to remove is to change nothing");
}

#[test]
fn a_server_that_does_not_start_is_not_written_unless_it_is_not_checked() {
    let harness = Harness::empty();
    let run = add(&harness, &["bad"], "broken");
    let file = harness.user_file();
    assert_eq!((run.code, file.exists()), (Some(1), false));
    assert!(run.out.contains("\n  exit code 3 before it answered\n  stderr  broken:"), "{}", run.out);
    let end = format!(
        "not written to {}: bad\n--no-check writes an entry without starting its server\n",
        file.display()
    );
    assert!(run.out.ends_with(&end), "{}", run.out);
    let unset = harness.run(&["add", "x", "-e", "T=${NOT_SET}", "--", program(), "__sample", "calc"]);
    assert_eq!(unset.code, Some(1));
    assert!(unset.out.contains("the variable `NOT_SET` is not set\n  try     set it"), "{}", unset.out);
    let secret =
        harness.run(&["add", "x", "-e", "API_KEY=s3cr3t-value", "--", program(), "__sample", "broken"]);
    assert_eq!((secret.code, secret.err.as_str()), (Some(1), ""), "no note on a file that was not written");
    for flag in ["--no-check", "--force"] {
        let run = add(&harness, &[flag, &flag[2..]], "broken");
        assert_eq!((run.code, run.out.lines().count()), (Some(0), 3), "{run:?}");
    }
    assert_eq!(servers(&harness), ["force", "no-check"]);
}

#[test]
fn an_existing_server_is_changed_only_by_an_update_which_merges() {
    let harness = Harness::empty();
    let text = format!(
        "{{ \"mcpServers\": {{ \"Calc\": {{ \"cmd\": \"{}\", \"args\": [\"__sample\", \"clock\"], // why\n \"environment\": {{ \"A\": \"1\", \"B\": \"2\" }} }} }} }}",
        program()
    );
    harness.configure(&text);
    let run = add(&harness, &["calc", "-e", "B=hunter2"], "calc");
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.contains(" has a server calc already\n"), "{}", run.err);
    assert!(run.err.contains("\n    - args: [\"__sample\",\"clock\"]\n"), "{}", run.err);
    assert!(run.err.contains("\n    + environment.B: … (another value)\n"), "{}", run.err);
    assert!(run.err.contains("--update makes these changes") && !run.err.contains("hunter2"), "{}", run.err);
    assert_eq!(fs::read_to_string(harness.user_file()).unwrap(), text);

    let run = add(&harness, &["calc", "--update", "-e", "B=hunter2", "C=3"], "calc");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("\nupdated Calc in ") && !run.out.contains("hunter2"), "{}", run.out);
    let written = fs::read_to_string(harness.user_file()).unwrap();
    assert!(
        written.contains("// why") && !written.contains("\"env\"") && !written.contains("clock"),
        "{written}"
    );
    assert!(["\"A\": \"1\"", "\"B\": \"hunter2\"", "\"C\": \"3\""].iter().all(|part| written.contains(part)));

    let again = harness.run(&["add", "calc", "--update", "-e", "C=3"]);
    assert!(again.out.ends_with(&format!("Calc: nothing to change in {}\n", harness.user_file().display())));
    assert_eq!((again.code, fs::read_to_string(harness.user_file()).unwrap()), (Some(0), written));
}

#[test]
fn an_update_from_a_program_to_an_address_takes_the_program_away() {
    let harness = Harness::with(
        &json!({ "s": { "command": "x", "args": ["y"], "env": { "A": "1" }, "plugbay": { "idle": "never" } } }),
    );
    let run =
        harness.run(&["add", "s", "https://h.example/mcp?key=hunter2", "--update", "--no-check", "--json"]);
    assert_eq!(run.json()["servers"][0]["launch"], json!(["https://h.example/mcp?…"]), "{run:?}");
    let written: Value = serde_json::from_str(&fs::read_to_string(harness.user_file()).unwrap()).unwrap();
    let expected = json!({ "url": "https://h.example/mcp?key=hunter2", "plugbay": { "idle": "never" } });
    assert_eq!(written["mcpServers"]["s"], expected);
}

#[test]
fn a_broken_configuration_file_is_shown_and_not_touched() {
    let harness = Harness::empty();
    harness.configure("{\n  \"mcpServers\": {\n    oops\n");
    let run = add(&harness, &["calc"], "calc");
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.starts_with("error: ") && run.err.contains("config.jsonc:3:5\n"), "{}", run.err);
    assert!(
        run.err.ends_with("nothing was changed\n  fix the problem above, then try again\n"),
        "{}",
        run.err
    );
    assert_eq!(fs::read_to_string(harness.user_file()).unwrap(), "{\n  \"mcpServers\": {\n    oops\n");
}

#[test]
fn a_project_file_is_approved_by_who_writes_it_and_never_with_what_others_wrote() {
    let harness = Harness::empty();
    fs::create_dir_all(harness.path().join(".git")).unwrap();
    let file = harness.path().join(".plugbay.jsonc");
    let run = add(&harness, &["-s", "project", "notes"], "notes");
    assert!(run.out.ends_with(&format!("added notes to {}\n", file.display())), "{run:?}");
    assert_eq!(servers(&harness), ["notes"], "it is approved");
    assert_eq!(add(&harness, &["-s", "project", "calc"], "calc").code, Some(0));
    assert_eq!(servers(&harness), ["calc", "notes"]);

    let foreign = fs::read_to_string(&file).unwrap().replace("__sample", "__evil");
    fs::write(&file, &foreign).unwrap();
    let run = add(&harness, &["-s", "project", "clock"], "clock");
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains(".plugbay.jsonc is not approved\n"), "{}", run.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), foreign);
    let run = harness.run(&["disable", "notes", "--scope", "project"]);
    assert!(run.code == Some(0) && run.err.contains("is not approved; `plugbay approve`"), "{run:?}");
    assert!(servers(&harness).is_empty());
}

#[test]
fn an_added_server_comes_with_notes_about_its_surroundings() {
    let harness = Harness::with(&json!({ "other": sample("calc") }));
    let run = add(&harness, &["--scope", "local", "calc", "--trust"], "calc");
    assert_eq!(run.code, Some(0));
    for note in ["--trust has no effect", "plugbay has no scope `local`", "other starts the same program"] {
        assert!(run.err.contains(&format!("note: {note}")), "{note}\n{}", run.err);
    }
    fs::write(harness.path().join("server.js"), "").unwrap();
    let run = harness.run(&["add", "js", "--no-check", "--", "node", "server.js"]);
    assert!(run.err.starts_with("note: server.js is relative"), "{}", run.err);
    let run = harness.run(&["add", "key", "--no-check", "-e", "API_KEY=YOUR_KEY", "--", "x"]);
    assert!(run.err.starts_with("note: env API_KEY of key looks like a placeholder"), "{}", run.err);
}

#[test]
fn servers_are_added_from_pasted_json_and_from_stdin() {
    let harness = Harness::empty();
    let snippet = json!({ "mcpServers": { "calc": sample("calc"), "sad": sample("broken") } }).to_string();
    let run = harness.run(&["add-json", &snippet, "--json"]);
    assert_eq!(run.code, Some(1), "one of them does not start");
    let report = run.json();
    let changes: Vec<_> = report["servers"].as_array().unwrap().iter().map(|row| &row["change"]).collect();
    assert_eq!(changes, ["added", "failed"]);
    assert_eq!(report["servers"][0]["offer"]["tools"].as_array().unwrap().len(), 6);
    assert_eq!(report["servers"][1]["reason"], "exit code 3 before it answered");
    assert_eq!(servers(&harness), ["calc"]);

    let run = harness.run_with_input(&["add-json", "clock", "-"], &sample("clock").to_string());
    assert_eq!((run.code, servers(&harness)), (Some(0), vec!["calc".to_owned(), "clock".to_owned()]));
    let odd = json!({ "command": program(), "args": ["__sample", "notes"], "comand": 1 }).to_string();
    let run = harness.run(&["add-json", "notes", &odd]);
    assert!(run.code == Some(0) && run.err.starts_with("warning: unknown key `comand`"), "{run:?}");
    let run = harness.run(&["add-json", "off", r#"{"command": "x", "disabled": true}"#]);
    assert_eq!(run.code, Some(0), "a disabled server is not tried");
    harness.run(&["add-json", "{"]).check(
        2,
        "",
        "error: this is not JSON: Unterminated object on line 1 column 1\n",
    );
}

#[test]
fn a_named_configuration_file_is_created_and_changed() {
    let harness = Harness::empty();
    let run = add(&harness, &["calc", "--config", "own.jsonc"], "calc");
    assert!(run.out.ends_with("/own.jsonc\n") && harness.path().join("own.jsonc").exists(), "{run:?}");
    assert!(!harness.user_file().exists());
    assert_eq!(harness.run(&["--config", "own.jsonc", "remove", "calc"]).code, Some(0));
    let run = harness.run(&["--config", "own.jsonc", "remove", "calc", "-s", "user"]);
    run.check(2, "", "error: --config names the file already; leave --scope out\n");
}

#[test]
fn a_line_that_says_too_little_is_answered_with_the_forms_of_a_line() {
    let harness = Harness::empty();
    let expected = "error: how is x reached?
  a program: plugbay add x -- COMMAND [ARGUMENT]…
  an address: plugbay add x https://HOST/mcp
";
    harness.run(&["add", "x"]).check(2, "", expected);
    let expected =
        "error: the server name \"my server\" contains ' '; use letters, digits, '-' and single '_'
  for example: my-server
";
    harness.run(&["add", "my server", "--", "x"]).check(2, "", expected);
    assert!(!harness.user_file().exists());
}
