//! One log file: lines with their time, a size limit, and one older file next to it.
//!
//! Several gateways may append to the same file. Each write opens it again, so that all of them notice when
//! one has moved it away.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::files::own;

/// Size limit. A file that would exceed it is moved away first.
const LIMIT: u64 = 1024 * 1024;

/// Formats each non-blank line as `TIME PID SOURCE TEXT`.
pub(super) fn lines(at: SystemTime, pid: u32, source: &str, text: &[u8]) -> String {
    let at = timestamp(at);
    let mut lines = String::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if !line.trim().is_empty() {
            let _ = writeln!(lines, "{at} {pid} {source} {}", line.trim_end());
        }
    }
    lines
}

pub(super) fn append(path: &Path, text: &[u8]) -> io::Result<()> {
    append_within(path, text, LIMIT)
}

fn append_within(path: &Path, text: &[u8], limit: u64) -> io::Result<()> {
    let mut file = own::append(path)?;
    let length = file.metadata()?.len();
    if length > 0 && length.saturating_add(text.len() as u64) > limit {
        file = rotate(path, &file)?;
    }
    file.write_all(text)
}

/// The file with the lines before those of `path`.
pub(super) fn older(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

/// Moves the file away. It is locked until the new file is open, because two gateways must not both move it.
fn rotate(path: &Path, full: &File) -> io::Result<File> {
    full.lock()?;
    let is_still_there =
        fs::metadata(path).is_ok_and(|now| full.metadata().is_ok_and(|then| then.ino() == now.ino()));
    if is_still_there {
        fs::rename(path, older(path))?;
    }
    let file = own::append(path);
    full.unlock()?;
    file
}

/// Formats a time in UTC with microseconds: `2026-11-17T08:30:05.120000Z`.
fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", since.subsec_micros())
}

/// The date of a day since 1970. Years are counted from March, so that a leap day is the last day of its
/// year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, time::Duration};

    use super::*;

    #[test]
    fn timestamps_of_log_lines_are_utc() {
        let at = |seconds: u64, millis: u64| {
            timestamp(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis))
        };
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_827_696, 7), "2000-02-29T12:34:56.007000Z");
        assert_eq!(at(1_772_323_199, 999), "2026-02-28T23:59:59.999000Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000000Z");
    }

    #[test]
    fn a_full_log_file_is_moved_away_and_nothing_is_lost() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("logs/servers/db.log");
        for text in ["one\n", "two\n", "three\n"] {
            append_within(&path, text.as_bytes(), 9).unwrap();
        }
        assert_eq!(fs::read_to_string(older(&path)).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
    }

    /// Each gateway has its own handle. The lines of all of them survive every move.
    #[test]
    fn gateways_that_share_a_log_file_move_it_away_once() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("db.log");
        let line = "x".repeat(99) + "\n";
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| append_within(&path, line.as_bytes(), 30_000).unwrap()));
            }
        });
        let length = |path: &Path| fs::metadata(path).unwrap().len();
        assert_eq!(length(&path) + length(&older(&path)), 40_000);
    }
}
