//! Files that plugbay keeps for internal use.

use std::fs::{self, File};

use super::clinic::Clinic;
use crate::harness::sample;

#[test]
fn a_corrupt_cache_file_is_moved_aside() {
    let clinic = Clinic::of(&sample("calc")).file("cache/plugbay/servers/x.json", "{\"format\":4,");
    let file = clinic.path("cache/plugbay/servers/x.json");
    clinic.mends("corrupt-cache").about("file", &file);
    assert_eq!(fs::read_to_string(file.with_extension("json.corrupt")).unwrap(), "{\"format\":4,");
}

#[test]
fn the_status_file_of_a_gateway_that_no_longer_runs_is_removed() {
    let clinic = Clinic::of(&sample("calc")).file("state/plugbay/running/4194304-1.json", "{}");
    let file = clinic.path("state/plugbay/running/4194304-1.json");
    clinic.mends("stale-lock").about("file", &file);
    assert!(!file.exists());
}

#[test]
fn a_draft_that_was_left_behind_is_removed() {
    let clinic = Clinic::of(&sample("calc")).file("cache/plugbay/servers/.plugbay-draft-AbCdEf", "");
    let draft = clinic.path("cache/plugbay/servers/.plugbay-draft-AbCdEf");
    let writer = File::open(&draft).unwrap();
    writer.lock().unwrap();
    clinic.is_quiet(); // somebody writes it
    drop(writer);
    clinic.mends("stale-lock").about("file", &draft);
    assert!(!draft.exists());
}

#[test]
fn a_lock_that_another_process_holds_is_found() {
    let clinic = Clinic::of(&sample("calc")).file("cache/plugbay/servers/.lock", "");
    let lock = clinic.path("cache/plugbay/servers/.lock");
    let file = File::open(&lock).unwrap();
    file.lock().unwrap();
    clinic.finds("lock-held").about("file", &lock).remedy("fuser");
}
