//! Markdown and HTML: headings with the numbers of their lines.

use memchr::{memchr, memmem};

use super::{
    super::page::{Page, cost, counted, foreign},
    Lines,
};

/// How many headings are kept.
const MOST: usize = 2000;
/// The most characters of a heading.
const HEADING: usize = 100;
/// The most bytes of HTML of a heading.
const ELEMENT: usize = 2000;

#[derive(Debug)]
pub(super) struct Heading {
    line: usize,
    level: usize,
    text: String,
    /// A blank line, or nothing, is before it.
    stands_apart: bool,
}

/// Whether some line has the form of a heading of the second level: a quick check.
pub(super) fn may_be_markdown(text: &str) -> bool {
    text.starts_with("## ") || memmem::find(text.as_bytes(), b"\n## ").is_some()
}

/// Headings that begin with `#`, outside of code.
pub(super) fn markdown(text: &str) -> Vec<Heading> {
    let mut headings = Vec::new();
    let (mut fence, mut before_is_blank) = (None, true);
    for (at, line) in text.lines().enumerate() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (mark, fence) {
            (Some(mark), None) => fence = Some(mark),
            (Some(mark), Some(open)) if mark == open => fence = None,
            _ => {}
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if fence.is_none() && (1..=6).contains(&level) && line[level..].starts_with(' ') {
            let text = foreign(line[level..].trim(), HEADING);
            headings.push(Heading { line: at + 1, level, text, stands_apart: before_is_blank });
            if headings.len() == MOST {
                break;
            }
        }
        before_is_blank = line.trim().is_empty();
    }
    headings
}

/// Whether headings are those of Markdown: comments of programs begin with `#` too, but seldom have levels and
/// blank lines before them.
pub(super) fn is_markdown(headings: &[Heading]) -> bool {
    let apart = headings.iter().filter(|heading| heading.stands_apart).count();
    headings.len() >= 2
        && headings.iter().any(|heading| heading.level == 2)
        && apart * 10 >= headings.len() * 9
}

pub(super) fn write_markdown(page: &mut Page, headings: &[Heading], lines: &Lines<'_>, size: &str) {
    let words = counted(lines.count, "line", "lines");
    page.line(&format!("Markdown, {size}, {words}, {}", counted(headings.len(), "heading", "headings")));
    let line =
        |heading: &Heading| format!("{}| {} {}", heading.line, "#".repeat(heading.level), heading.text);
    write(page, headings, line);
}

/// Writes complete levels of headings as far as they fit, and an even choice of the next level.
fn write(page: &mut Page, headings: &[Heading], line: impl Fn(&Heading) -> String) {
    let cost = |heading: &Heading| cost(&line(heading));
    let room = page.left().saturating_sub(10);
    let price = |level: usize| headings.iter().filter(|one| one.level <= level).map(cost).sum::<usize>();
    let whole = (0..=6).rev().find(|level| price(*level) <= room).unwrap_or(0);
    let next: Vec<&Heading> = headings.iter().filter(|one| one.level == whole + 1).collect();
    let each = next.iter().map(|one| cost(one)).max().unwrap_or(1);
    let some = (room - price(whole)) / each;
    let chosen = |place: usize| some > 0 && place * some / next.len() != (place + 1) * some / next.len();
    let (mut place, mut shown) = (0, 0);
    for heading in headings {
        let is_next = heading.level == whole + 1;
        let is_shown = heading.level <= whole || is_next && chosen(place);
        place += usize::from(is_next);
        if is_shown && page.line(&line(heading)) {
            shown += 1;
        }
    }
    if shown < headings.len() {
        page.line(&format!("… {} more headings", headings.len() - shown));
    }
}

pub(super) fn is_html(text: &str) -> bool {
    let text = text.trim_start();
    let begins = |word: &str| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    begins("<!doctype html") || begins("<html")
}

pub(super) fn write_html(page: &mut Page, lines: &Lines<'_>, size: &str) {
    let headings = html(lines.text);
    let anchors = memmem::find_iter(lines.text.as_bytes(), b"<a ").count();
    let counts = [
        counted(lines.count, "line", "lines"),
        counted(headings.len(), "heading", "headings"),
        counted(anchors, "link", "links"),
    ];
    page.line(&format!("HTML, {size}, {}", counts.join(", ")));
    if let Some(title) = memmem::find(lines.text.as_bytes(), b"<title") {
        page.line(&format!("title: {}", inner_text(&lines.text[title..])));
    }
    write(page, &headings, |heading| format!("{}| h{} {}", heading.line, heading.level, heading.text));
}

fn html(text: &str) -> Vec<Heading> {
    let (mut headings, mut line, mut counted_to) = (Vec::new(), 1, 0);
    for at in memmem::find_iter(text.as_bytes(), b"<h") {
        let rest = &text.as_bytes()[at + 2..];
        let (Some(level @ b'1'..=b'6'), Some(b'>' | b' ' | b'\n')) = (rest.first(), rest.get(1)) else {
            continue;
        };
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted_to..at]).count();
        counted_to = at;
        let level = usize::from(level - b'0');
        headings.push(Heading { line, level, text: inner_text(&text[at..]), stands_apart: true });
        if headings.len() == MOST {
            break;
        }
    }
    headings
}

/// The text of the element that begins here, without tags.
fn inner_text(element: &str) -> String {
    let element = &element[..element.floor_char_boundary(ELEMENT)];
    let name_end = element.find(['>', ' ']).unwrap_or(element.len());
    let close = format!("</{}", &element[1..name_end.max(1)]);
    let end = element.find(&close).unwrap_or(element.len());
    let (mut out, mut rest) = (String::new(), &element[..end]);
    while let Some(open) = memchr(b'<', rest.as_bytes()) {
        out.push_str(&rest[..open]);
        let Some(close) = memchr(b'>', &rest.as_bytes()[open..]) else {
            rest = "";
            break;
        };
        rest = &rest[open + close + 1..];
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split_whitespace().collect();
    foreign(&words.join(" "), HEADING)
}
