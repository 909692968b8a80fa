//! Unified diffs: the files, and how many lines each gained and lost.

use super::{
    super::page::{Page, cost, count, counted, foreign},
    Lines,
};

const PATH: usize = 120;

#[derive(Debug)]
pub(super) struct File {
    path: String,
    line: usize,
    added: usize,
    removed: usize,
}

/// Reads a diff; `None` if the text is none.
pub(super) fn read(text: &str, probe: &[&str]) -> Option<Vec<File>> {
    let has_files = probe.windows(2).any(|pair| pair[0].starts_with("--- ") && pair[1].starts_with("+++ "));
    if !has_files || !probe.iter().any(|line| hunk(line).is_some()) {
        return None;
    }
    let mut files: Vec<File> = Vec::new();
    // Lines of the old and of the new file that the open hunk still has.
    let (mut old, mut new) = (0usize, 0usize);
    for (at, line) in text.lines().enumerate() {
        if old + new > 0
            && let Some(file) = files.last_mut()
        {
            match line.as_bytes().first() {
                Some(b'+') => (file.added, new) = (file.added + 1, new.saturating_sub(1)),
                Some(b'-') => (file.removed, old) = (file.removed + 1, old.saturating_sub(1)),
                Some(b'\\') => {}
                _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            }
        } else if let Some(path) = line.strip_prefix("diff --git ") {
            let path = path.split(" b/").last().unwrap_or(path);
            files.push(File { path: foreign(path, PATH), line: at + 1, added: 0, removed: 0 });
        } else if let Some(path) = line.strip_prefix("+++ ") {
            name(&mut files, path, at);
        } else if let Some(lengths) = hunk(line) {
            (old, new) = lengths;
        }
    }
    Some(files)
}

/// Names a file, and adds it if no line of its own came before: `---` is the line above.
fn name(files: &mut Vec<File>, path: &str, at: usize) {
    let path = path.strip_prefix("b/").unwrap_or(path);
    let path = path.split('\t').next().unwrap_or(path);
    let is_named = files.last().is_some_and(|last| {
        path == "/dev/null" || last.path == foreign(path, PATH) && last.added + last.removed == 0
    });
    if !is_named {
        files.push(File { path: foreign(path, PATH), line: at, added: 0, removed: 0 });
    }
}

/// The lengths in `@@ -1,2 +3,4 @@`.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let length = |range: &str| range.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok());
    let old = length(words.next()?)?;
    let new = length(words.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

pub(super) fn write(page: &mut Page, files: &[File], lines: &Lines<'_>, size: &str) {
    let sum = |of: fn(&File) -> usize| count(files.iter().map(of).sum());
    page.line(&format!(
        "diff, {size}, {}, {}, +{} -{}",
        counted(lines.count, "line", "lines"),
        counted(files.len(), "file", "files"),
        sum(|file| file.added),
        sum(|file| file.removed),
    ));
    let line =
        |file: &File| format!("{}| {} +{} -{}", file.line, file.path, count(file.added), count(file.removed));
    let all: usize = files.iter().map(|file| cost(&line(file))).sum();
    let mut room = if all <= page.left() { all } else { page.left().saturating_sub(12) };
    for (place, file) in files.iter().enumerate() {
        let line = line(file);
        if cost(&line) > room || !page.line(&line) {
            page.line(&format!("… {} more files", files.len() - place));
            return;
        }
        room -= cost(&line);
    }
}
