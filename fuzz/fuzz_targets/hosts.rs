//! Files of hosts in JSON, TOML and YAML: a server stays the same after plugbay has written and read its
//! entry.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plugbay_hosts::{Entry, Launch, jsonc, known, own, read};

// The first line is the id of a host, or any text.
fuzz_target!(|input: &str| {
    let (id, text) = input.split_once('\n').unwrap_or(("", input));
    let host = known::by_id(id).unwrap_or(&known::all()[0]);
    let files = ["a.json", "a.toml", "a.yaml", "a"].map(|file| read::read_any(Path::new(file), text));
    for reading in files.into_iter().chain([read::read(host, text)]).flatten() {
        for found in &reading.found {
            check(&found.entry);
        }
    }
});

fn check(entry: &Entry) {
    let written = jsonc::set("{}", &["mcpServers", "a"], own::value(entry)).expect("an entry can be written");
    let again = read::read_any(Path::new("a.json"), &written).expect("what was written can be read");
    let [again] = &again.found[..] else { panic!("{:?} in {written}", again.problems) };
    // In plugbay's format, a variable of this name is a folder.
    if written.contains("userHome") {
        return;
    }
    match (&entry.launch, &again.entry.launch) {
        (Launch::Remote(one), Launch::Remote(other)) => {
            assert_eq!((&one.url, one.kind, &one.headers), (&other.url, other.kind, &other.headers));
        }
        (one, other) => assert_eq!(one, other),
    }
    assert_eq!(entry.disabled, again.entry.disabled);
}
