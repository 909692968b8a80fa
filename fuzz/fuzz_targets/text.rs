//! Hidden characters: none is left in a text or a definition, and cleaning a second time changes nothing.
#![no_main]

use std::borrow::Cow;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plugbay_core::text::{clean_definition, escaped_json, hidden_in, log_line, shown, stripped, visible};
use serde::de::IgnoredAny;
use serde_json::Value;

// A text, which may be JSON.
fuzz_target!(|text: &str| {
    let clean = stripped(text);
    assert!(!has_hidden(&clean), "{clean:?}");
    assert!(hidden_in(&clean).is_empty() && stripped(&clean) == clean);
    for printed in [shown(text), visible(text)] {
        assert!(!has_hidden(&printed), "{printed:?}");
    }
    assert_eq!(shown(&shown(text)), shown(text));
    assert_eq!(log_line(&log_line(text)), log_line(text));

    // The same text as a description, with its characters unescaped and all escaped.
    let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    for quoted in [Value::from(text).to_string(), format!("\"{units}\"")] {
        let definition = cleaned(format!(r#"{{"name":"a","description":{quoted}}}"#));
        let definition: Value = serde_json::from_slice(&definition).expect("a definition stays JSON");
        assert_eq!(definition["description"], *clean);
    }

    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        let escaped = escaped_json(text);
        assert!(!has_hidden(&escaped.replace(['\r', '\n', '\t'], "")), "{escaped:?}");
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            assert_eq!(serde_json::from_str::<Value>(&escaped).ok(), Some(value), "the value is the same");
        }
        cleaned(text.to_owned());
    }
});

fn cleaned(definition: String) -> Bytes {
    let definition = Bytes::from(definition);
    let clean = clean_definition(&definition, &["name"]).definition.unwrap_or(definition);
    serde_json::from_slice::<IgnoredAny>(&clean).expect("a definition stays JSON");
    assert_eq!(clean_definition(&clean, &["name"]).definition, None, "{clean:?}");
    clean
}

/// Whether a text has characters that are never allowed, or tags outside of the three flags that consist of
/// them.
fn has_hidden(text: &str) -> bool {
    let flags = ["gbeng", "gbsct", "gbwls"].map(|flag| {
        let tags = flag.chars().filter_map(|letter| char::from_u32(0xe0000 + u32::from(letter)));
        format!("\u{1f3f4}{}\u{e007f}", tags.collect::<String>())
    });
    let is_hidden = |char: char| {
        matches!(char,
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
            | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let rest = flags.iter().fold(Cow::Borrowed(text), |text, flag| text.replace(flag.as_str(), "").into());
    rest.replace("\r\n", "").contains(|char| char == '\r' || is_hidden(char))
}
