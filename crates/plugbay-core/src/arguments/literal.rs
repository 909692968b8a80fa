//! Data with parts that somebody wrote into a text: as JSON, or as Python and JavaScript write it.

use std::borrow::Cow;

use super::{Fault, raw};
use crate::wire::DEPTH_LIMIT;

/// The data in a text as JSON, with or without a code fence around it, and what was wrong with it.
pub(super) fn inside(text: &str) -> Option<(Cow<'_, [u8]>, Fault)> {
    let text = unfenced(text);
    if raw::is_json(text.as_bytes()) {
        return Some((text.as_bytes().into(), Fault::JsonInString));
    }
    let mut reader = Reader { rest: text, json: String::new() };
    reader.value(DEPTH_LIMIT).filter(|()| text.starts_with(['{', '[']) && reader.rest.trim().is_empty())?;
    let json = reader.json.into_bytes();
    raw::is_json(&json).then(|| (json.into(), Fault::LiteralInString))
}

/// Whether a text begins like data with parts. Then it is no plain value of anything, even if it is broken.
pub(super) fn begins(text: &str, is_key: impl Fn(&str) -> bool) -> bool {
    let text = unfenced(text);
    let within = raw::is_json(text.as_bytes()).then(|| raw::text(text.as_bytes())).flatten();
    let text = within.as_deref().map_or(text, str::trim);
    // `key=…`, `key: …`, `--key=…`, `"key": …`, `<key>…`
    let word = text.trim_start_matches(['<', '"', '\'', '`', '-', '*', ' ']);
    let end = word.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(word.len());
    let (word, rest) = word.split_at(end);
    let rest = rest.trim_start_matches(['"', '\'', '`', '*', ' ']);
    let named = rest.starts_with(['=', ':', '>']) && !rest.starts_with("://") && is_key(word);
    let fenced = || text.split("```").skip(1).any(|block| without_language(block).starts_with(['{', '[']));
    text.starts_with(['{', '[']) || named || fenced()
}

fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    fenced.map_or(text, without_language)
}

fn without_language(block: &str) -> &str {
    block.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim()
}

/// Reads literals that Python and JavaScript would both read as the same thing.
struct Reader<'a> {
    rest: &'a str,
    json: String,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match self.peek()? {
            '{' => self.several('{', '}', |reader| {
                reader.key()?;
                reader.take(':')?;
                reader.value(depth)
            }),
            '[' => self.several('[', ']', |reader| reader.value(depth)),
            '\'' | '"' => self.string(),
            _ => {
                let word = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
                self.json.push_str(match word {
                    "True" => "true",
                    "False" => "false",
                    "None" => "null",
                    other => Some(other).filter(|other| raw::is_json(other.as_bytes()))?,
                });
                Some(())
            }
        }
    }

    /// Reads the items between brackets; a comma may follow the last one.
    fn several(&mut self, open: char, close: char, one: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        self.take(open)?;
        while self.peek()? != close {
            one(self)?;
            if self.peek()? == close {
                break;
            }
            self.rest = self.rest.strip_prefix(',')?;
            if self.peek()? != close {
                self.json.push(',');
            }
        }
        self.take(close)
    }

    fn key(&mut self) -> Option<()> {
        if matches!(self.peek()?, '\'' | '"') {
            return self.string();
        }
        let word = self.word(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
        let is_name = !word.starts_with(|c: char| c.is_ascii_digit()) && !word.is_empty();
        let quoted = raw::quote(Some(word).filter(|_| is_name)?);
        self.json.push_str(std::str::from_utf8(&quoted).ok()?);
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let mut chars = self.rest.char_indices();
        let (_, quote) = chars.next()?;
        self.json.push('"');
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next()?.1 {
                    '\'' => self.json.push('\''),
                    escaped @ ('"' | '\\' | 'n' | 'r' | 't' | 'b' | 'f' | 'u') => {
                        self.json.extend(['\\', escaped]);
                    }
                    _ => return None,
                },
                _ if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    self.json.push('"');
                    return Some(());
                }
                '"' => self.json.push_str("\\\""),
                _ => self.json.push(c),
            }
        }
        None // it was cut off
    }

    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: char) -> Option<()> {
        self.peek();
        self.rest = self.rest.strip_prefix(wanted)?;
        self.json.push(wanted);
        Some(())
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_other_languages_write() {
        for (text, json) in [
            ("{'a': 'b'}", r#"{"a":"b"}"#),
            ("{'a': True, 'b': False, 'c': None,}", r#"{"a":true,"b":false,"c":null}"#),
            ("{a: 1.50, b_2: [1, 2,], $c: {}}", r#"{"a":1.50,"b_2":[1,2],"$c":{}}"#),
            (r#"['it\'s', "say \"x\"", 'a "b"']"#, r#"["it's","say \"x\"","a \"b\""]"#),
            ("```python\n['a']\n```", r#"["a"]"#),
            (r"{'t': 'a\nb\u00e9'}", r#"{"t":"a\nb\u00e9"}"#),
            ("[]", "[]"),
        ] {
            let read = inside(text).map(|(json, _)| String::from_utf8(json.into_owned()).unwrap());
            assert_eq!(read.as_deref(), Some(json), "{text}");
        }
    }

    #[test]
    fn what_is_cut_or_can_be_read_in_two_ways_is_not_read() {
        for text in [
            "{'a': 'b'",
            "['a'",
            "{'a': 'it's'}",
            "{a b: 1}",
            "[1,,2]",
            "{,}",
            "{'a' 1}",
            "[undefined]",
            "[01]",
            "{1: 2}",
            r"['\x41']",
            "['a'] ['b']",
            "('a',)",
            "{'a', 'b'}",
            "[a]",
            "{'a': 1} # why",
            "a=1",
            "'a'",
            "",
        ] {
            assert_eq!(inside(text), None, "{text}");
        }
        assert_eq!(inside(&"[".repeat(100_000)), None);
    }

    #[test]
    fn a_beginning_is_seen() {
        let is_key = |word: &str| word == "command" || word == "file";
        for text in [
            "{\"command\":\"rm",
            " [1",
            "command=ls",
            "command: ls",
            "\"command\": 1",
            "--command=ls",
            "<command>ls",
            "```json\n{\"a\"\n```",
            "\"{\\\"command\\\":1}\"",
            "**command**: ls",
            "- command: ls",
            "command = ls",
            "Here it is: ```json\n{\"command\":\"ls\"}\n```",
        ] {
            assert!(begins(text, is_key), "{text}");
        }
        for text in ["ls", "other=ls", "command ls", "a: b", "file:///x", "\"a.txt\"", "", "rm {a,b}"] {
            assert!(!begins(text, is_key), "{text}");
        }
    }
}
