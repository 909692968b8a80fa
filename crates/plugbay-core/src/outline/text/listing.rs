//! Lists and trees of files: counts for each folder and each kind of file.

use std::{cmp::Reverse, fmt::Write};

use rustc_hash::FxHashMap;

use super::{
    super::page::{Page, cost, count, counted, foreign},
    Lines,
};

/// How many names are counted separately; the others are counted together.
const NAMES: usize = 1000;
const NAME: usize = 60;
/// The fewest lines of a list.
const LEAST: usize = 8;
const PATH: usize = 300;

/// The number of entries of each kind.
#[derive(Debug, Default)]
pub(in crate::outline) struct Listing {
    files: usize,
    folders: usize,
    by_folder: Counts,
    by_extension: Counts,
    /// The beginning of all paths.
    root: String,
}

#[derive(Debug, Default)]
struct Counts {
    of: FxHashMap<String, usize>,
    others: usize,
}

impl Counts {
    fn add(&mut self, name: &str, number: usize) {
        if let Some(count) = self.of.get_mut(name) {
            *count += number;
        } else if self.of.len() < NAMES {
            self.of.insert(name.to_owned(), number);
        } else {
            self.others += number;
        }
    }

    /// The most frequent ones first, as far as they fit.
    fn line(&self, label: &str, tokens: usize) -> Option<String> {
        let mut all: Vec<(&String, &usize)> = self.of.iter().collect();
        all.sort_by_key(|(name, number)| (Reverse(**number), *name));
        let mut line = label.to_owned();
        let mut shown = 0;
        for (name, number) in &all {
            let mark = if shown == 0 { ' ' } else { ',' };
            let space = if shown == 0 { "" } else { " " };
            let more = format!("{line}{mark}{space}{} {}", foreign(name, NAME), count(**number));
            if cost(&more) + 6 > tokens {
                break;
            }
            (line, shown) = (more, shown + 1);
        }
        let rest = all[shown..].iter().map(|(_, number)| **number).sum::<usize>() + self.others;
        if rest > 0 || shown < all.len() {
            let _ = write!(line, ", others {}", count(rest));
        }
        (shown > 0).then_some(line)
    }
}

impl Listing {
    /// `top` is the outermost folder of an entry, if it is in one.
    pub(in crate::outline) fn note(&mut self, top: Option<&str>, name: &str, is_folder: bool) {
        let folder = |name: &str| format!("{name}/");
        if is_folder {
            self.folders += 1;
            return;
        }
        self.files += 1;
        self.by_folder.add(&top.map_or("./".to_owned(), folder), 1);
        let extension = name.rsplit_once('.').filter(|(stem, end)| !stem.is_empty() && end.len() <= 12);
        match extension {
            Some((_, extension)) => self.by_extension.add(&format!(".{extension}"), 1),
            None => self.by_extension.add("no extension", 1),
        }
    }

    pub(in crate::outline) fn write(&self, page: &mut Page) {
        let folders = counted(self.folders, "folder", "folders");
        let words = counted(self.files, "file", "files");
        let known = if self.folders > 0 { format!("{words}, {folders}") } else { words };
        let below = if self.root.is_empty() {
            String::new()
        } else {
            format!(", all below {}", foreign(&self.root, PATH))
        };
        page.line(&format!("{known}{below}"));
        let room = page.left() / 2;
        let is_flat = self.by_folder.of.len() == 1 && self.by_folder.of.contains_key("./");
        if !is_flat && let Some(line) = self.by_folder.line("files by folder:", room) {
            page.line(&line);
        }
        if let Some(line) = self.by_extension.line("files by extension:", page.left()) {
            page.line(&line);
        }
    }
}

/// Reads a list of files; `None` if the text is none.
pub(super) fn read(text: &str, probe: &[&str]) -> Option<Listing> {
    let lines: Vec<&str> = probe.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let share = |is: fn(&str) -> bool| lines.iter().filter(|line| is(line)).count() * 10 >= lines.len() * 9;
    if lines.len() < LEAST {
        return None;
    }
    if share(|line| marked(line).is_some()) {
        return Some(of_marked(text));
    }
    share(is_path).then(|| of_paths(text)).flatten()
}

/// Reads a line of the filesystem server: `[FILE] name`, with or without a size after it.
fn marked(line: &str) -> Option<(&str, bool)> {
    let (name, is_folder) = match (line.strip_prefix("[FILE] "), line.strip_prefix("[DIR] ")) {
        (Some(name), _) => (name, false),
        (None, name) => (name?, true),
    };
    Some((name.split("  ").next().unwrap_or(name).trim_end(), is_folder))
}

fn of_marked(text: &str) -> Listing {
    let mut listing = Listing::default();
    for (name, is_folder) in text.lines().filter_map(marked) {
        listing.note(None, name, is_folder);
    }
    listing
}

/// Whether a line has separators, and nothing that paths in lists seldom have.
fn is_path(line: &str) -> bool {
    let is_odd = |byte: u8| b"<>\"|*?{}()=,;".contains(&byte) || byte.is_ascii_whitespace();
    line.contains('/') && line.len() <= PATH && !line.contains("//") && !line.trim_end().bytes().any(is_odd)
}

fn of_paths(text: &str) -> Option<Listing> {
    let paths = || text.lines().map(str::trim_end).filter(|line| is_path(line));
    let first = paths().next()?;
    // The common beginning of all paths, up to a separator.
    let common = paths().fold(first.len(), |common, path| {
        let same = path.bytes().zip(first.bytes()).take(common).take_while(|(one, two)| one == two).count();
        common.min(same)
    });
    let root = first[..first.floor_char_boundary(common)].rfind('/').map_or("", |at| &first[..=at]);
    let mut listing = Listing { root: root.to_owned(), ..Listing::default() };
    for path in paths() {
        let path = &path[root.len()..];
        let top = path.split_once('/').map(|(top, _)| top);
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
        listing.note(top.filter(|_| !path.is_empty()), name, path.ends_with('/'));
    }
    Some(listing)
}

pub(super) fn write(page: &mut Page, listing: &Listing, lines: &Lines<'_>, size: &str) {
    page.line(&format!("list of files, {size}, {}", counted(lines.count, "line", "lines")));
    listing.write(page);
    let mut places = vec![1, lines.count / 2, lines.count];
    places.dedup();
    for place in places {
        if let Some(line) = lines.get(place) {
            page.line(&format!("{place}| {}", foreign(line, 160)));
        }
    }
}
