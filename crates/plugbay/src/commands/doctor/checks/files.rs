//! Checks of the files that plugbay keeps for itself.

use std::path::PathBuf;

use super::super::{
    examination::Examination,
    finding::{Code, Finding, Subject},
    fix::Fix,
};

pub fn check(examination: &Examination) -> Vec<Finding> {
    let cache = &examination.cache;
    let corrupt = cache.damaged.iter().map(corrupt);
    let left = cache
        .left_behind
        .iter()
        .map(|file| stale(file, "A write to the cache was interrupted, and its draft was left behind."));
    let gone = examination
        .left_behind
        .iter()
        .map(|file| stale(file, "The gateway of this status file no longer runs."));
    corrupt.chain(left).chain(gone).chain(cache.locked.as_ref().map(held)).collect()
}

fn corrupt(file: &PathBuf) -> Finding {
    let message = "This cache file is damaged, so the first list waits for its server.";
    let remedy = "move it aside; plugbay writes a new one when the server next starts";
    Finding::new(Code::CorruptCache, Subject::File(file.clone()), message, remedy)
        .fixed_by(Fix::MoveAside { file: file.clone() })
}

fn stale(file: &PathBuf, message: &str) -> Finding {
    Finding::new(Code::StaleLock, Subject::File(file.clone()), message, "remove it")
        .fixed_by(Fix::RemoveFile { file: file.clone() })
}

fn held(file: &PathBuf) -> Finding {
    let message = "Another process holds the lock of the cache, so plugbay cannot write to it.";
    let remedy = format!("find the process with `fuser {}` and end it", file.display());
    Finding::new(Code::LockHeld, Subject::File(file.clone()), message, remedy)
}
