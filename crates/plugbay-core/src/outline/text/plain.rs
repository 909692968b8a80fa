//! Plain text and logs: the length, the levels, the first and the last lines.

use memchr::memmem;

use super::{
    super::page::{Page, cost, count, counted, foreign},
    Lines,
};

/// Levels of a log, in words that stand alone.
const LEVELS: [&str; 6] = ["FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
/// How many of the first lines are read, and how many of them must have a level.
const LOG: (usize, usize) = (8, 4);
/// The most characters of a line.
const LINE: usize = 200;
const MOST_LINES: usize = 40;

pub(super) fn write(page: &mut Page, lines: &Lines<'_>, size: &str) {
    let words = counted(lines.count, "line", "lines");
    page.line(&format!("text, {size}, {words}"));
    if is_log(lines) {
        page.line(&format!("levels: {}", levels(lines.text)));
    }
    if lines.count <= 2 {
        return write_long(page, lines);
    }
    // A third of the room is for the end.
    let tail = fitting(lines, page.left() / 3);
    let tail_cost: usize = tail.iter().map(|line| cost(line)).sum();
    let room = page.left().saturating_sub(tail_cost + 2);
    let number = |line: &String| line.split('|').next().and_then(|number| number.parse().ok());
    let first_of_tail = tail.first().and_then(number).unwrap_or(lines.count + 1);
    let mut head = Page::new(room);
    let mut shown = 0;
    let first = lines.from(1).take(MOST_LINES).take_while(|(number, _)| *number < first_of_tail);
    for (number, line) in first.filter(|(_, line)| !is_blank(line)) {
        if !head.line(&numbered(number, line)) {
            break;
        }
        shown = number;
    }
    let head = head.finish();
    for line in head.lines() {
        page.line(line);
    }
    if shown + 1 < first_of_tail {
        page.line("…");
    }
    page.lines(&tail);
}

/// The last lines that fit.
fn fitting(lines: &Lines<'_>, tokens: usize) -> Vec<String> {
    let first = lines.count.saturating_sub(MOST_LINES / 3).max(lines.count / 2) + 1;
    let mut last: Vec<String> = lines
        .from(first)
        .filter(|(_, line)| !is_blank(line))
        .map(|(number, line)| numbered(number, line))
        .collect();
    while last.iter().map(|line| cost(line)).sum::<usize>() > tokens {
        last.remove(0);
    }
    last
}

/// Whether a line is blank: such lines are left out.
fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn numbered(number: usize, line: &str) -> String {
    format!("{number}| {}", foreign(line, LINE))
}

/// Writes one or two long lines, with their first and last characters.
fn write_long(page: &mut Page, lines: &Lines<'_>) {
    for (number, line) in lines.from(1) {
        let room = page.left() / 2 / (lines.count + 1 - number).max(1);
        // At worst a token has few characters.
        let limit = [room * 3, room * 2, room, room / 2]
            .into_iter()
            .find(|limit| cost(&foreign(line, *limit)) < room);
        let Some(limit) = limit else { return };
        page.line(&format!("{number}| {}", foreign(line, limit)));
        let end = &line[line.floor_char_boundary(line.len().saturating_sub(limit / 2))..];
        if line.len() > limit * 2 {
            page.line(&format!("{number} ends: …{}", foreign(end, limit)));
        }
    }
}

fn is_log(lines: &Lines<'_>) -> bool {
    let has_level = |line: &str| LEVELS.iter().any(|level| has_word(line, level));
    lines.from(1).take(LOG.0).filter(|(_, line)| has_level(&line[..line.floor_char_boundary(120)])).count()
        >= LOG.1
}

fn has_word(line: &str, word: &str) -> bool {
    line.find(word).is_some_and(|at| is_word(line.as_bytes(), at, word.len()))
}

/// Whether a level stands as a word of its own. Some programs write `WARNING`.
fn is_word(text: &[u8], at: usize, length: usize) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let behind = &text[at + length..];
    let behind = behind.strip_prefix(b"ING").unwrap_or(behind);
    !is_letter(at.checked_sub(1).and_then(|at| text.get(at))) && !is_letter(behind.first())
}

/// How often each level occurs, the most severe first.
fn levels(text: &str) -> String {
    let text = text.as_bytes();
    let times =
        |level: &str| memmem::find_iter(text, level).filter(|at| is_word(text, *at, level.len())).count();
    let counts = LEVELS.iter().map(|level| (level, times(level)));
    let shown: Vec<String> = counts
        .filter(|(_, times)| *times > 0)
        .map(|(level, times)| format!("{level} {}", count(times)))
        .collect();
    shown.join(", ")
}
