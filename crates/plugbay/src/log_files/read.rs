//! Reads log files: their last lines, and new lines as they come.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use plugbay_core::name::ServerName;
use serde::Serialize;

use super::{LogName, file::older};
use crate::files::own;

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// In UTC.
    pub time: String,
    /// Absent for a line that a gateway logs about itself.
    pub server: Option<String>,
    /// The process id of the gateway.
    pub gateway: u32,
    /// `stderr` or `plugbay`.
    pub source: String,
    /// The raw text: not safe to print.
    pub text: String,
}

/// The servers that have a log.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let server = |(log, _)| match log {
        LogName::Server(name) => Some(name.to_string()),
        LogName::Gateway => None,
    };
    Ok(logs(folder, None)?.into_iter().filter_map(server).collect())
}

/// The log of one server, or all logs with their paths.
fn logs(folder: &Path, server: Option<&str>) -> io::Result<Vec<(LogName, PathBuf)>> {
    if let Some(server) = server {
        let name = ServerName::parse(server).map_err(io::Error::other)?;
        let log = LogName::Server(name);
        return Ok(vec![(log.clone(), log.path(folder))]);
    }
    let entries = match fs::read_dir(folder.join("servers")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        entries => entries?.flatten().map(|entry| entry.path()).collect(),
    };
    let server = |path: &PathBuf| {
        let stem = path.extension().filter(|extension| *extension == "log").and(path.file_stem())?;
        Some(LogName::Server(ServerName::parse(stem.to_str()?).ok()?))
    };
    let mut logs: Vec<LogName> = entries.iter().filter_map(server).chain([LogName::Gateway]).collect();
    logs.sort();
    Ok(logs.into_iter().map(|log| (log.clone(), log.path(folder))).collect())
}

/// The complete lines of a file from an offset on, and the offset after them. An absent file has none.
fn read_from(path: &Path, offset: u64) -> io::Result<(String, u64)> {
    let mut bytes = Vec::new();
    match own::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((String::new(), offset)),
        file => {
            let mut file = file?;
            file.seek(SeekFrom::Start(offset))?;
            file.read_to_end(&mut bytes)?;
        }
    }
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
    Ok((String::from_utf8_lossy(&bytes).into_owned(), offset + bytes.len() as u64))
}

fn parse(log: &LogName, text: &str) -> Vec<Line> {
    let server = match log {
        LogName::Gateway => None,
        LogName::Server(name) => Some(name.to_string()),
    };
    let line = |line: &str| {
        let mut parts = line.splitn(4, ' ');
        let (time, gateway, source) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        let text = parts.next().unwrap_or_default();
        let [time, source, text] = [time, source, text].map(str::to_owned);
        Some(Line { time, server: server.clone(), gateway, source, text })
    };
    text.lines().filter_map(line).collect()
}

/// Follows log files.
pub struct Follower {
    folder: PathBuf,
    server: Option<String>,
    read: BTreeMap<PathBuf, Mark>,
}

/// The position up to which a file was read.
#[derive(Debug, Clone, Copy)]
struct Mark {
    inode: u64,
    offset: u64,
}

impl Follower {
    /// Returns the last lines of one server's log, or of all logs, the oldest first. The follower goes on after them.
    pub fn open(folder: &Path, server: Option<&str>, count: usize) -> io::Result<(Vec<Line>, Self)> {
        let (folder, server) = (folder.to_owned(), server.map(str::to_owned));
        let mut follower = Self { folder, server, read: BTreeMap::new() };
        let mut lines = follower.news()?;
        for (log, path) in logs(&follower.folder, follower.server.as_deref())? {
            let (read, old) = (follower.read.get(&path), older(&path));
            // If it was moved away since, it was already read under its other name.
            if read.is_none_or(|mark| inode(&old) != Some(mark.inode)) {
                lines.extend(parse(&log, &read_from(&old, 0)?.0));
            }
        }
        sort(&mut lines);
        let skipped = lines.len().saturating_sub(count);
        Ok((lines.split_off(skipped), follower))
    }

    /// The files to watch, including those that do not exist yet.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        Ok(logs(&self.folder, self.server.as_deref())?.into_iter().map(|(_, path)| path).collect())
    }

    /// The folder in which logs of new servers appear.
    pub fn folder(&self) -> PathBuf {
        self.folder.join("servers")
    }

    /// The new lines since the last call.
    pub fn news(&mut self) -> io::Result<Vec<Line>> {
        let mut lines = Vec::new();
        for (log, path) in logs(&self.folder, self.server.as_deref())? {
            let Some(inode) = inode(&path) else { continue };
            let mark = self.read.get(&path).copied();
            let mut offset = mark.map_or(0, |mark| mark.offset);
            if let Some(mark) = mark.filter(|mark| mark.inode != inode) {
                // The file was moved away: first the lines that were appended to it before.
                if self::inode(&older(&path)) == Some(mark.inode) {
                    lines.extend(parse(&log, &read_from(&older(&path), mark.offset)?.0));
                }
                offset = 0;
            }
            let (text, offset) = read_from(&path, offset)?;
            lines.extend(parse(&log, &text));
            self.read.insert(path, Mark { inode, offset });
        }
        sort(&mut lines);
        Ok(lines)
    }
}

/// Sorts lines by time. Times have a fixed format, so they sort as text; lines with equal times keep their
/// order.
fn sort(lines: &mut [Line]) {
    lines.sort_by(|one, other| one.time.cmp(&other.time));
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(folder: &Path, server: Option<&str>, count: usize) -> io::Result<Vec<Line>> {
        Ok(Follower::open(folder, server, count)?.0)
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|line| line.text).collect()
    }

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn the_last_lines_of_all_logs_are_in_the_order_of_their_times() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "servers/a.log.old", "2026-01-01T00:00:01.000Z 7 stderr one\nnonsense\n");
        write(root.path(), "servers/a.log", "2026-01-01T00:00:03.000Z 7 stderr three  words\nhalf a li");
        write(root.path(), "servers/b.log", "2026-01-01T00:00:02.000Z 7 stderr two\n");
        write(root.path(), "gateway.log", "2026-01-01T00:00:04.000Z 7 plugbay four\n");
        assert_eq!(texts(tail(root.path(), None, 9).unwrap()), ["one", "two", "three  words", "four"]);
        assert_eq!(texts(tail(root.path(), None, 2).unwrap()), ["three  words", "four"]);
        assert_eq!(texts(tail(root.path(), Some("a"), 9).unwrap()), ["one", "three  words"]);
        assert_eq!(texts(tail(root.path(), Some("c"), 9).unwrap()), [""; 0]);
        assert_eq!(names(root.path()).unwrap(), ["a", "b"]);
        assert!(tail(root.path(), Some("../a"), 9).is_err());
    }

    #[test]
    fn a_followed_log_that_is_moved_away_loses_no_line() {
        let root = tempfile::tempdir().unwrap();
        let line = |number: u32| format!("2026-01-01T00:00:0{number}.000Z 7 stderr {number}\n");
        let path = write(root.path(), "servers/a.log", &line(1));
        let (lines, mut follower) = Follower::open(root.path(), None, 9).unwrap();
        assert_eq!(texts(lines), ["1"]);
        assert!(follower.news().unwrap().is_empty());
        fs::write(&path, [line(1), line(2)].concat()).unwrap();
        assert_eq!(texts(follower.news().unwrap()), ["2"]);
        fs::write(&path, [line(1), line(2), line(3)].concat()).unwrap();
        fs::rename(&path, older(&path)).unwrap();
        fs::write(&path, line(4)).unwrap();
        write(root.path(), "servers/b.log", &line(5));
        assert_eq!(texts(follower.news().unwrap()), ["3", "4", "5"]);
        assert!(follower.news().unwrap().is_empty());
    }
}
