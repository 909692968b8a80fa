//! The settings of the audit log.

use std::path::{Path, PathBuf};

use plugbay_telemetry::AuditSettings;

use super::{
    Env,
    document::Document,
    entry::fill,
    files::Origin,
    raw::Audit,
    read::{At, Overlay},
    report::Report,
};

const ROTATE: u64 = 10 * 1024 * 1024;
const KEEP: usize = 5;

/// The audit log in this file, with the usual rotation.
pub fn audit_settings(file: PathBuf) -> AuditSettings {
    AuditSettings { file, rotate: ROTATE, keep: KEEP }
}

/// The settings. A project's file is ignored: a repository must not choose which file plugbay writes.
pub(super) fn settings(
    used: &[(Document, Origin)],
    env: Env<'_>,
    reports: &mut [Report<'_>],
) -> Option<AuditSettings> {
    let (mut settings, mut place) = (Audit::default(), None);
    for (index, (document, origin)) in used.iter().enumerate() {
        let Some(audit) = &document.config.audit else { continue };
        if *origin == Origin::Project {
            if let Some(At { at, .. }) = &audit.file {
                let help = "set it in your own configuration file, or with `plugbay serve --audit FILE`";
                reports[index].warning(*at, "a project cannot set the audit log", help);
            }
            continue;
        }
        if let Some(file) = &audit.file {
            let folder = document.source.path.parent().unwrap_or(Path::new(""));
            place = fill(file, env, &mut reports[index]).map(|file| absolute(&file, folder, env));
        }
        settings = audit.clone().over(settings);
    }
    let rotate = settings.rotate.map_or(ROTATE, |size| size.0 as u64);
    Some(AuditSettings { file: place?, rotate, keep: settings.keep.map_or(KEEP, |count| count.0) })
}

/// The path, relative to the home folder or to `folder` unless it is absolute.
pub(super) fn absolute(file: &str, folder: &Path, env: Env<'_>) -> PathBuf {
    match (file.strip_prefix("~/"), env("HOME")) {
        (Some(below), Some(home)) => Path::new(&home).join(below),
        _ => folder.join(file),
    }
}
