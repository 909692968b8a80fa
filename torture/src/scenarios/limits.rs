//! Limits and traps of the system: descriptors, a lock that another process holds, and links in place of
//! drafts.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use plugbay_testkit::{DEADLINE, Host, Script, Signal, Workspace, wait_until};

use crate::{
    scenario::{Outcome, Scenario},
    trial::{self, Trial, mentions},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "descriptor-limit",
        rule: "A soft limit of 64 descriptors on stdio, with 40 servers: plugbay raises it, and serves all",
        run: descriptor_limit,
    },
    Scenario {
        name: "held-lock",
        rule: "Another process holds the lock of the cache: plugbay serves, says so, and caches once the lock is free",
        run: held_lock,
    },
    Scenario {
        name: "linked-draft",
        rule: "Links in the place of drafts, lock and cache files lead no write out of the cache folder",
        run: linked_draft,
    },
];

fn descriptor_limit(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..trial.times(20, 40)).map(|n| format!("s{n}")).collect();
    let servers: Vec<(&str, Script)> = names.iter().map(|name| (name.as_str(), Script::friendly())).collect();
    workspace.write_config(&workspace.config(&servers));
    let mut command = Command::new("sh");
    // Each server needs at least three descriptors.
    command.args(["-c", r#"ulimit -S -n 48; exec "$0" serve --config "$1""#]).arg(&trial.gateway);
    command.arg(workspace.config_path());
    command.current_dir(workspace.path()).env_clear().envs(workspace.environment());
    let host = Host::spawn(&mut command);
    host.initialize();
    let tools: Vec<String> = names.iter().map(|name| format!("{name}__echo")).collect();
    host.await_tools(&tools.iter().map(String::as_str).collect::<Vec<_>>());
    let mut outcome = Outcome::default();
    for tool in &tools {
        host.call(tool, "{}").content_text();
    }
    let limits = fs::read_to_string(format!("/proc/{}/limits", host.pid())).unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let soft = line.split_whitespace().nth(3).and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
    outcome.check(soft > 48, || format!("the limit is still {soft}"));
    let open = fs::read_dir(format!("/proc/{}/fd", host.pid())).map_or(0, Iterator::count);
    outcome.check(open > 48, || format!("only {open} descriptors are open: the limit was not reached"));
    outcome.figure(format!("{} servers, {open} descriptors, limit raised to {soft}", names.len()))
}

fn cached(workspace: &Workspace) -> Vec<PathBuf> {
    let files = workspace.files("cache/plugbay/servers").into_iter();
    files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

fn held_lock(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let config = trial::config(&workspace, &[("s", Script::friendly())]);
    trial.open(&workspace, &config, &["s__echo", "fast__echo"]).finish();
    for file in cached(&workspace) {
        fs::remove_file(file).expect("a cache file");
    }
    let lock = fs::File::open(workspace.path().join("cache/plugbay/servers/.lock")).expect("the lock");
    lock.lock().expect("a lock");
    let host = trial.open(&workspace, &config, &["s__echo", "fast__echo"]);
    host.call("s__echo", "{}").content_text();
    wait_until("a word on the cache", DEADLINE, || {
        mentions(&host.stderr(), &["cannot be written", "lock"]).then_some(())
    });
    let mut outcome = Outcome::default();
    outcome.check(cached(&workspace).is_empty(), || "it was cached in spite of the lock".to_owned());
    drop(lock);
    // A new list causes a new write, if plugbay does not try again by itself.
    workspace.write_script("s", &Script::friendly().tool("later", r#"{"echo":true}"#));
    workspace.server_process("s").signal(Signal::KILL);
    wait_until("the server to be back", DEADLINE, || {
        let answer = host.call("s__echo", "{}");
        (!answer.is_error() && answer.result_value()["isError"] != true).then_some(())
    });
    host.await_tools(&["s__later"]);
    host.finish();
    let count = cached(&workspace).len();
    outcome.check(count >= 1, || "nothing was cached once the lock was free".to_owned());
    outcome.figure(format!("{count} files cached once the lock was free"))
}

fn linked_draft(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let config = trial::config(&workspace, &[("s", Script::friendly())]);
    trial.open(&workspace, &config, &["s__echo", "fast__echo"]).finish();
    let (folder, good) = (workspace.path().join("cache/plugbay/servers"), workspace.path().join("good"));
    fs::write(&good, "good").expect("a file");
    // Every cache file, its lock, and possible names of drafts.
    let mut places = cached(&workspace);
    places.push(folder.join(".lock"));
    let drafts = [".plugbay-draft-", ".plugbay-draft-1", ".tmp"].map(|name| folder.join(name));
    places.extend(drafts);
    places.extend(cached(&workspace).iter().map(|path| path.with_extension("tmp")));
    places.extend(cached(&workspace).iter().map(|path| path.with_extension("json.corrupt")));
    for place in &places {
        let _ = fs::remove_file(place);
        symlink(&good, place).expect("a link");
    }
    let host = trial.open(&workspace, &config, &["s__echo", "fast__echo"]);
    host.call("s__echo", "{}").content_text();
    host.finish();
    let mut outcome = Outcome::default();
    let text = fs::read_to_string(&good).unwrap_or_default();
    outcome.check(text == "good", || format!("the file that the links lead to holds {text:?}"));
    outcome.figure(format!("{} links", places.len()))
}
