//! A unified diff in colour. For a long line it shows every changed part.

use std::fmt::Write;

use similar::{ChangeTag, TextDiff};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Style, clean_line, table::cut};
use crate::commands::setup::Diff;

/// Line width if there is no terminal. Some hosts keep their whole file on one line.
const LONGEST_LINE: usize = 160;
/// How much of a long line is shown on either side of a change.
const AROUND: usize = 24;
/// The indentation of a long line's second part, after its sign.
const INDENT: &str = "    ";

/// The file's name, a line about it, and its changed lines.
pub(super) fn render(diff: &Diff, about: &str, style: Style) -> String {
    let mut text = format!("{}\n", style.bold(&clean_line(&diff.file)));
    if !about.is_empty() {
        let _ = writeln!(text, "{}", style.dim(about));
    }
    let width = style.width.unwrap_or(LONGEST_LINE).max(2 * AROUND);
    let lines: Vec<String> = diff.text.lines().map(clean_line).collect();
    for line in focused(lines, width) {
        for shown in shown(&line, width) {
            let painted = match line.chars().next() {
                Some('+') => style.good(&shown),
                Some('-') => style.bad(&shown),
                Some('@') => style.dim(&shown),
                _ => shown,
            };
            let _ = writeln!(text, "{painted}");
        }
    }
    text
}

/// A changed line in full, on as many lines as it needs; of any other line only the start.
fn shown(line: &str, width: usize) -> Vec<String> {
    let Some(sign) = line.chars().next().filter(|sign| ['+', '-'].contains(sign)) else {
        return vec![cut(line, width)];
    };
    let mut lines = vec![String::new()];
    let mut used = 0;
    for char in line.chars() {
        let wide = char.width().unwrap_or(0);
        if used + wide > width {
            let full = lines.last_mut().map(|line| rest(line, width)).unwrap_or_default();
            used = 1 + INDENT.len() + full.width();
            lines.push(format!("{sign}{INDENT}{full}"));
        }
        used += wide;
        if let Some(last) = lines.last_mut() {
            last.push(char);
        }
    }
    lines
}

/// Cuts the last word off a full line, unless it is most of the line.
fn rest(line: &mut String, width: usize) -> String {
    let word = line.rfind(' ').map(|space| space + 1).filter(|start| *start > width / 2);
    line.split_off(word.unwrap_or(line.len()))
}

/// Shortens changed long lines: parts that both versions share are cut away around each change.
fn focused(mut lines: Vec<String>, width: usize) -> Vec<String> {
    let run = |lines: &[String], from: usize, sign: char| {
        lines[from..].iter().take_while(|line| line.starts_with(sign)).count()
    };
    let mut start = 0;
    while start < lines.len() {
        let removed = run(&lines, start, '-');
        let added = run(&lines, start + removed, '+');
        if removed == added {
            for old in start..start + removed {
                let new = old + removed;
                if lines[old].width().max(lines[new].width()) > width {
                    (lines[old], lines[new]) = changed_parts(&lines[old], &lines[new]);
                }
            }
        }
        start += (removed + added).max(1);
    }
    lines
}

/// Both lines without their common parts, except a little around each change.
fn changed_parts(old: &str, new: &str) -> (String, String) {
    let (olds, news) = (parts(&old[1..]), parts(&new[1..]));
    let diff = TextDiff::from_slices(&olds, &news);
    let (mut old, mut new) = ("-".to_owned(), "+".to_owned());
    let mut common = String::new();
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => common.push_str(change.value()),
            tag => {
                let shown = shortened(&std::mem::take(&mut common));
                old.push_str(&shown);
                new.push_str(&shown);
                if tag == ChangeTag::Delete { &mut old } else { &mut new }.push_str(change.value());
            }
        }
    }
    let shown = shortened(&common);
    (old + &shown, new + &shown)
}

/// The members of JSON or TOML on one line.
fn parts(line: &str) -> Vec<&str> {
    line.split_inclusive([',', '{', '[', '}', ']', ' ']).collect()
}

fn shortened(common: &str) -> String {
    let chars: Vec<char> = common.chars().collect();
    if chars.len() <= 2 * AROUND + 1 {
        return common.to_owned();
    }
    let (start, end) = (&chars[..AROUND], &chars[chars.len() - AROUND..]);
    start.iter().chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(old: &str, new: &str, width: usize) -> String {
        let diff = Diff::new("f", old, new, &[]);
        render(&diff, "", Style { colour: false, width: Some(width) })
    }

    #[test]
    fn every_change_in_a_long_line_is_shown_in_80_columns() {
        let filler = |name: &str| format!("\"{name}\":{{\"x\":\"{}\"}},", "y".repeat(300));
        let (one, two) = (filler("one"), filler("two"));
        let old = format!("{{{one}\"gone\":1,{two}\"last\":[]}}\n");
        let new = format!("{{{one}{two}\"plugbay\":{{\"command\":\"/opt/plugbay\"}},\"last\":[]}}\n");
        let text = rendered(&old, &new, 80);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.width() <= 80) && lines.len() < 10, "{text}");
        let joined = |sign: &str| {
            let lines = lines.iter().filter_map(|line| line.strip_prefix(sign));
            lines.map(|line| line.strip_prefix(INDENT).unwrap_or(line)).collect::<String>()
        };
        assert!(joined("-").contains("\"gone\":1,"), "{text}");
        assert!(joined("+").contains("\"plugbay\":{\"command\":\"/opt/plugbay\"},"), "{text}");
    }

    #[test]
    fn a_long_line_that_is_new_is_shown_as_a_whole() {
        let new = format!("{}!\n", "x".repeat(200));
        let text = rendered("", &new, 80);
        assert_eq!(text.matches('x').count(), 200);
        assert!(text.ends_with("x!\n") && text.lines().all(|line| line.width() <= 80), "{text}");
    }
}
