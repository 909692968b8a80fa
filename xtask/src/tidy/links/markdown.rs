//! The links and headings of a Markdown text, for the subset of Markdown that our pages use.

use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Link {
    pub(super) target: String,
    pub(super) line: usize,
}

/// Inline links and images, reference definitions, and `href` or `src` in HTML; all outside of code.
pub(super) fn links(text: &str) -> Vec<Link> {
    let text = without_code_spans(&without_fences(text));
    let mut found = Vec::new();
    for (start, target) in inline(&text).chain(attributes(&text, &["href", "src"])).chain(definitions(&text))
    {
        let line = text[..start].matches('\n').count() + 1;
        found.push(Link { target: target.to_owned(), line });
    }
    found.sort_by_key(|link| link.line);
    found
}

/// The anchors that `#anchor` can refer to: headings in GitHub's spelling, and `id` or `name` in HTML.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let text = without_fences(text);
    let mut anchors: BTreeSet<String> =
        attributes(&text, &["id", "name"]).map(|(_, anchor)| anchor.to_owned()).collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for title in text.lines().filter_map(heading) {
        let slug = slug(title);
        let count = seen.entry(slug.clone()).or_default();
        anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' '))
        .then(|| title.trim().trim_end_matches('#').trim_end())
}

/// A title in lower case, with blanks as hyphens, without punctuation; of a link only the text is used.
fn slug(title: &str) -> String {
    let mut shown = String::new();
    let mut rest = title;
    while let Some((before, after)) = rest.split_once("](") {
        shown += before;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    shown += rest;
    let kept = shown.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// The text with emptied fenced blocks; lines keep their numbers.
fn without_fences(text: &str) -> String {
    let mut open: Option<&str> = None;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (open, mark) {
            (None, None) => kept += line,
            (None, Some(_)) => open = mark,
            (Some(opened), Some(mark)) if opened == mark => open = None,
            (Some(_), _) => {}
        }
        kept.push('\n');
    }
    kept
}

/// The text with blanks in place of code between backticks, so that all positions stay the same.
fn without_code_spans(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let (before, span) = rest.split_at(start);
        kept += before;
        let end = ticks + closing(&span[ticks..], ticks).unwrap_or(0);
        kept.extend(span[..end].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        rest = &span[end..];
    }
    kept + rest
}

/// The end of a code span: after as many backticks as opened it, in the same paragraph.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let paragraph = &text[..text.find("\n\n").unwrap_or(text.len())];
    let mut place = 0;
    while let Some(start) = paragraph[place..].find('`').map(|start| place + start) {
        let run = paragraph[start..].len() - paragraph[start..].trim_start_matches('`').len();
        place = start + run;
        if run == ticks {
            return Some(place);
        }
    }
    None
}

/// Links of the form `[text](target "title")`, with or without angle brackets around the target.
fn inline(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("](").filter_map(|(start, mark)| {
        let inside = text[start + mark.len()..].trim_start();
        let target = match inside.strip_prefix('<') {
            Some(bracketed) => bracketed.split_once('>')?.0,
            None => &inside[..inside.find(|c: char| c == ')' || c.is_whitespace())?],
        };
        (!target.is_empty()).then_some((start, target))
    })
}

/// Definitions of the form `[label]: target` on their own line, except footnotes.
fn definitions(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split_inclusive('\n').scan(0, |place, line| {
        let start = *place;
        *place += line.len();
        Some((start, line))
    });
    lines.filter_map(|(start, line)| {
        let (label, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
        let target = target.split_whitespace().next()?.trim_start_matches('<').trim_end_matches('>');
        (!label.starts_with('^') && !label.contains(']')).then_some((start, target))
    })
}

/// The values of these HTML attributes, if they are in double quotes.
fn attributes<'a>(text: &'a str, names: &'static [&'static str]) -> impl Iterator<Item = (usize, &'a str)> {
    names.iter().flat_map(move |name| {
        text.match_indices(*name).filter_map(move |(start, name)| {
            let value = text[start + name.len()..].strip_prefix("=\"")?;
            let whole = text[..start].ends_with(char::is_whitespace);
            Some((start, value.split_once('"')?.0)).filter(|_| whole)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<String> {
        links(text).into_iter().map(|link| format!("{}:{}", link.line, link.target)).collect()
    }

    #[test]
    fn every_kind_of_link_is_found_with_its_line() {
        let text = "A [b](c.md), [`d`](e.md#f \"title\")\nand ![g](<h i.png>)\n\n[ref]: j.md\n<a href=\"k.md\">k</a>\n[l\nm](n.md)";
        assert_eq!(targets(text), ["1:c.md", "1:e.md#f", "2:h i.png", "4:j.md", "5:k.md", "7:n.md"]);
    }

    #[test]
    fn code_holds_no_links() {
        assert_eq!(
            targets("```\n[a](b)\n```\n`[c](d)` and ``[e](`f`)`` ~ [g](h)\n~~~\n```\n[i](j)\n~~~\n"),
            ["4:h"]
        );
        assert_eq!(targets("one ` tick\n\n[a](b) and another `"), ["3:b"]);
        assert_eq!(targets("[^1]: a note, x[0]: y"), [""; 0]);
    }

    #[test]
    fn anchors_are_spelt_as_github_does() {
        let text = "# What must stay true\n## `search_tools`, *now*\n## A [link](x.md) — and more\n## Twice\n## Twice\n\
                    ```\n# no heading\n```\n<a id=\"here\"></a>\n#no heading\n";
        let expected =
            ["what-must-stay-true", "search_tools-now", "a-link--and-more", "twice", "twice-1", "here"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }
}
