//! Edits of a host's file: removing plugbay's entry restores the original file, byte for byte.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use plugbay_hosts::{
    edit::{self, OwnEntry},
    known, read,
};

// The first line is the id of a host; with `+` before it, all servers move.
fuzz_target!(|input: &str| {
    let Some((id, text)) = input.split_once('\n') else { return };
    let (moves, id) = id.strip_prefix('+').map_or((false, id), |id| (true, id));
    let Some(host) = known::by_id(id) else { return };
    let own = OwnEntry {
        name: "plugbay".to_owned(),
        command: "plugbay".to_owned(),
        args: vec!["serve".to_owned()],
        env: BTreeMap::new(),
    };
    let Ok(before) = read::read(host, text) else { return };
    if before.found.iter().any(|found| found.entry.name == own.name) {
        return;
    }
    let moved = if moves { before.found.as_slice() } else { &[] };
    let Ok(wired) = edit::wire(host, text, &own, moved) else { return };
    let after = read::read(host, &wired).expect("what was written can be read");
    assert!(after.found.iter().any(|found| found.entry.name == own.name), "plugbay's entry is there");
    assert_eq!(
        edit::wire(host, &wired, &own, moved).as_deref(),
        Ok(wired.as_str()),
        "a second time changes nothing"
    );
    assert_eq!(edit::unwire(host, &wired, &own.name, Some(text)).as_deref(), Ok(text));
    if !moves {
        assert_eq!(edit::unwire(host, &wired, &own.name, None).as_deref(), Ok(text));
    }
});
