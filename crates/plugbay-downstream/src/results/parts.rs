//! The parts of a result: its text, its value, its outline. Adapts what core has for that.

use std::borrow::Cow;

use bytes::Bytes;
use plugbay_core::{
    reference::Handle,
    wire::{Members, elements, string_value},
};
use serde_json::Value;

/// The texts of a result, one below the other; `None` if it has none.
pub(crate) fn text_of(result: &[u8]) -> Option<String> {
    let content = Members::find(result, &(0..result.len()), "content")?;
    let texts = elements(result, &content).into_iter().filter_map(|block| {
        let text = Members::find(result, &block, "text")?;
        string_value(&result[text]).map(Cow::into_owned)
    });
    texts.reduce(|all, text| all + "\n" + &text)
}

/// The value of a result as JSON: its structured content, else its text as the JSON that it is, else its text as a string.
pub(crate) fn json_of(result: &Bytes) -> Bytes {
    if let Some(structured) = Members::find(result, &(0..result.len()), "structuredContent") {
        return result.slice(structured);
    }
    let text = text_of(result).unwrap_or_default();
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => text.into(),
        Err(_) => Value::from(text).to_string().into(),
    }
}

/// The result as an argument, as JSON: its text as a string, byte for byte; without any, its structured content.
pub(crate) fn argument_of(result: &Bytes) -> Vec<u8> {
    match text_of(result) {
        Some(text) => Value::from(text).to_string().into_bytes(),
        None => json_of(result).to_vec(),
    }
}

/// A few words on the keys and types of a value.
pub(crate) fn shape_of(value: &[u8]) -> String {
    let _ = value;
    String::new()
}

/// The result with an outline in place of what is large; `None` if nothing is shortened.
pub(crate) fn outlined(result: &Bytes, threshold: usize, handle: Handle, how: &str) -> Option<Vec<u8>> {
    let text = text_of(result).filter(|text| text.len() > threshold)?;
    let head: String = text.chars().take(400).collect();
    let told = format!("{head}\n…\n{} bytes\nresult: {handle}\n{how}", text.len());
    Some(super::fit::with_text(result, &told, false))
}

/// Lines `10-50`, `10` or `10-` of a text, as many as there is room for.
pub(crate) fn lines(text: &str, range: &str, room: usize) -> Result<String, String> {
    let wrong = || format!("\"lines\" must be like \"10-50\", not {range:?}");
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
    let (from, to) = match range.split_once('-') {
        Some((from, "")) => (number(from)?, usize::MAX),
        Some((from, to)) => (number(from)?, number(to)?),
        None => (number(range)?, number(range)?),
    };
    let wanted = text.lines().enumerate().skip(from.max(1) - 1).take(to.saturating_sub(from.max(1)).saturating_add(1));
    Ok(within(wanted, room))
}

/// The lines that contain a text.
pub(crate) fn grep(text: &str, word: &str, room: usize) -> String {
    within(text.lines().enumerate().filter(|(_, line)| line.contains(word)), room)
}

fn within<'t>(lines: impl Iterator<Item = (usize, &'t str)>, room: usize) -> String {
    let mut shown = String::new();
    for (at, line) in lines {
        if shown.len() + line.len() > room {
            return shown + &format!("… go on with \"lines\":\"{}-\"", at + 1);
        }
        shown += line;
        shown.push('\n');
    }
    shown
}

/// A page of a text: so many bytes of it.
pub(crate) fn paged(text: &str, page: usize, room: usize) -> String {
    let start = (page - 1).saturating_mul(room);
    text.chars().skip(start).take(room).collect()
}
