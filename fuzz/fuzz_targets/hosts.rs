//! Files of hosts in JSON, TOML and YAML: every host's reader, and the reader of any file.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plugbay_hosts::{known, own, read};

// The first line is the id of a host, or any text.
fuzz_target!(|input: &str| {
    let (id, text) = input.split_once('\n').unwrap_or(("", input));
    let host = known::by_id(id).unwrap_or(&known::all()[0]);
    let files = ["a.json", "a.toml", "a.yaml", "a"].map(|file| read::read_any(Path::new(file), text));
    for reading in files.into_iter().chain([read::read(host, text)]).flatten() {
        for found in &reading.found {
            let _ = own::value(&found.entry);
        }
    }
});
