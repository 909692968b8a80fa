//! Checks of plugbay's own internal files.

use std::path::Path;

use super::super::{
    examination::Examination,
    finding::{Code, Finding, Subject},
    fix::Fix,
};

pub fn check(examination: &Examination) -> Vec<Finding> {
    let cache = &examination.cache;
    let corrupt = cache.damaged.iter().map(|file| corrupt(file));
    let left = cache
        .left_behind
        .iter()
        .map(|file| stale(file, "A write to the cache was interrupted, and its draft was left behind."));
    let gone = examination
        .left_behind
        .iter()
        .map(|file| stale(file, "The gateway of this status file no longer runs."));
    corrupt.chain(left).chain(gone).chain(cache.locked.as_deref().map(held)).collect()
}

fn corrupt(file: &Path) -> Finding {
    let message = "This cache file is damaged, so the first list waits for its server.";
    let remedy = "move it aside; plugbay writes a new one when the server next starts";
    Finding::new(Code::CorruptCache, Subject::File(file.to_owned()), message, remedy)
        .fixed_by(Fix::MoveAside { file: file.to_owned() })
}

fn stale(file: &Path, message: &str) -> Finding {
    Finding::new(Code::StaleLock, Subject::File(file.to_owned()), message, "remove it")
        .fixed_by(Fix::RemoveFile { file: file.to_owned() })
}

fn held(file: &Path) -> Finding {
    let message = "Another process holds the lock of the cache, so plugbay cannot write to it.";
    let remedy = format!("find the process with `fuser {}` and end it", file.display());
    Finding::new(Code::LockHeld, Subject::File(file.to_owned()), message, remedy)
}
