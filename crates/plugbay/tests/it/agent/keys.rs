//! The key of a model, from the system's keychain.

use std::{env, fs, path::Path};

use plugbay_testkit::{Host, write_program};
use serde_json::json;

use super::{Harness, SECRET, told, want};
use crate::{dialect::OPENAI, gateway};

/// Writes a program that prints the key unless it is locked, and logs its arguments.
fn key_program(folder: &Path, name: &str) {
    let program = folder.join(name);
    let folder = folder.display();
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {folder}/log\n\
         if [ -e {folder}/locked ]; then echo 'it is locked' >&2; exit 1; fi\necho {SECRET}\n"
    );
    write_program(&program, &script);
}

#[test]
fn the_key_of_a_model_comes_from_the_keychain() {
    let dialect = OPENAI;
    let harness = Harness::new(dialect, [dialect.says("Hello."), dialect.says("Again.")]);
    let tools = harness.workspace.path().join("tools");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("locked"), "").unwrap();
    for name in ["secret-tool", "security"] {
        key_program(&tools, name);
    }
    let (url, keychain) = (harness.endpoint.url(), "my-key");
    let model = json!({ "provider": "openai", "model": "m", "baseUrl": url, "keychain": keychain });
    harness.workspace.write_config(&harness.config(&json!({ "model": model })));
    let path = format!("{}:{}", tools.display(), env::var("PATH").unwrap());
    let host = Host::spawn(harness.workspace.command(&gateway()).env("PATH", path));
    host.initialize();
    host.await_tools(&["natural_language", "s__read"]);
    assert!(!tools.join("log").exists(), "nobody has needed it yet");
    let (why, _, failed) = told(&want(&host, "x"));
    assert!(failed && why.contains("there is no key for it: `sec") && why.contains("it is locked"), "{why}");
    fs::remove_file(tools.join("locked")).unwrap();
    for expected in ["Hello.", "Again."] {
        assert_eq!(told(&want(&host, "x")).0, expected);
        assert_eq!(harness.asked().header("authorization"), Some(&*format!("Bearer {SECRET}")));
    }
    let asked = fs::read_to_string(tools.join("log")).unwrap();
    assert_eq!(asked.lines().filter(|line| line.ends_with(" my-key")).count(), 2, "{asked}");
    let ended = host.finish();
    assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
}
