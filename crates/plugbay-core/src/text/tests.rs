//! Texts with hidden characters, and what remains of them.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// A text, and the same without hidden characters.
const CORPUS: &[(&str, &str)] = &[
    // Plain text of many scripts stays.
    ("", ""),
    ("plain text, with\nlines\tand tabs", "plain text, with\nlines\tand tabs"),
    ("windows\r\nlines", "windows\r\nlines"),
    ("Grüße, café, naïve, Ω, ё", "Grüße, café, naïve, Ω, ё"),
    ("العربية نص عادي", "العربية نص عادي"),
    ("טקסט רגיל בעברית", "טקסט רגיל בעברית"),
    ("日本語のテキスト、中文文本，한국어", "日本語のテキスト、中文文本，한국어"),
    ("हिन्दी और தமிழ்", "हिन्दी और தமிழ்"),
    ("e\u{301} combining", "e\u{301} combining"),
    ("\u{a0}no-break and \u{2003}em space", "\u{a0}no-break and \u{2003}em space"),
    ("math 𝒜 and ∑ and ≤", "math 𝒜 and ∑ and ≤"),
    ("icons \u{e0b0} of a private use", "icons \u{e0b0} of a private use"),
    ("object \u{fffc} and \u{fffd}", "object \u{fffc} and \u{fffd}"),
    // Joiners and selectors in their places stay.
    ("👨\u{200d}👩\u{200d}👧\u{200d}👦", "👨\u{200d}👩\u{200d}👧\u{200d}👦"),
    ("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
    ("🏳\u{fe0f}\u{200d}🌈", "🏳\u{fe0f}\u{200d}🌈"),
    ("👍🏽 and 🇫🇷", "👍🏽 and 🇫🇷"),
    (
        "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} *\u{fe0f}\u{20e3}",
        "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} *\u{fe0f}\u{20e3}",
    ),
    ("©\u{fe0e} ☺\u{fe0f}", "©\u{fe0e} ☺\u{fe0f}"),
    ("می\u{200c}خواهم", "می\u{200c}خواهم"),
    ("ක\u{0dca}\u{200d}ෂ", "ක\u{0dca}\u{200d}ෂ"),
    ("ന\u{d4d}\u{200d} ", "ന\u{d4d}\u{200d} "),
    ("漢\u{fe00}", "漢\u{fe00}"),
    ("ᠠ\u{180b}", "ᠠ\u{180b}"),
    (
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}!",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}!",
    ),
    (
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    ),
    // Elsewhere they go.
    ("a\u{200d}b\u{200c}c", "abc"),
    ("\u{200d}start", "start"),
    ("👨\u{200d}\u{200d}\u{200c}👩", "👨\u{200d}👩"),
    ("a\u{fe0f}b", "ab"),
    ("1\u{fe0f}2", "12"),
    ("😀\u{fe0f}\u{fe01}\u{fe02}", "😀\u{fe0f}"),
    ("漢\u{fe05}\u{fe0d}", "漢"),
    ("😀\u{e0100}\u{e0155}\u{e01ef}", "😀"),
    ("葛\u{e0100}", "葛"),
    ("a\u{180b}\u{180e}", "a"),
    // Escape sequences.
    ("\x1b[1;31mred\x1b[0m", "red"),
    ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x07 end", "link end"),
    ("\x1b]0;title never ends\nnext", "\nnext"),
    ("\x1b(Bcharset \x1b7saved \x1bcreset", "charset saved reset"),
    ("\x1bPdevice\x1b\\x", "x"),
    ("\u{9b}2Jc1 \u{9d}title\u{9c}.", "c1 ."),
    ("cut off \x1b[", "cut off "),
    ("cut off \x1b", "cut off "),
    ("\x1b[31\nnext line", "\nnext line"),
    // Control characters.
    ("bell\x07 back\x08 null\0 del\x7f", "bell back null del"),
    ("c1 \u{80}\u{99}", "c1 "),
    // A line break keeps words apart.
    ("vertical\x0bform\x0c", "vertical form "),
    ("safe\rrm -rf", "safe rm -rf"),
    ("line\u{2028}and\u{2029}paragraph\u{85}", "line and paragraph "),
    // Direction marks.
    ("a\u{202e}b\u{202c}", "ab"),
    ("\u{202a}\u{202b}\u{202d}x", "x"),
    ("\u{2066}a\u{2067}b\u{2068}c\u{2069}", "abc"),
    ("\u{200e}a\u{200f}b\u{61c}c", "abc"),
    ("עברית\u{200f} (abc)\u{200e}", "עברית (abc)"),
    // Tags.
    ("say \u{e0068}\u{e0069}\u{e0001}\u{e007f}", "say "),
    ("🏴\u{e0067}\u{e0062}\u{e0078}\u{e007f}", "🏴"),
    ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}", "🏴"),
    ("x\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", "x"),
    (
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}\u{e0041}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    ),
    ("\u{e0080}\u{e0fff}", ""),
    ("🏴\u{e0067}\u{2062}\u{2065}\u{206e}\u{2067}\u{e007f}", "🏴"),
    ("🏴\u{e00e7}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", "🏴"),
    // Zero width, fillers, annotations, noncharacters.
    ("a\u{200b}b\u{2060}c\u{feff}d", "abcd"),
    ("soft\u{ad}hyphen \u{34f}x", "softhyphen x"),
    ("\u{2061}\u{2062}\u{2063}\u{2064}x\u{206a}\u{206f}", "x"),
    ("\u{3164}\u{ffa0}x\u{17b4}", "x"),
    ("\u{fff9}base\u{fffa}note\u{fffb}", "basenote"),
    ("\u{fdd0}\u{fdef}\u{fffe}\u{ffff}\u{1fffe}\u{10ffff}x", "x"),
    ("\u{1d173}\u{1bca0}x", "x"),
];

/// A string as JSON with every character escaped.
fn fully_escaped(text: &str) -> String {
    let units: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    format!("\"{}\"", units.concat())
}

#[test]
fn a_text_has_no_hidden_characters_left() {
    assert!(CORPUS.len() >= 60);
    for (text, expected) in CORPUS {
        assert_eq!(stripped(text), *expected, "{text:?}");
        assert_eq!(hidden_in(text).is_empty(), text == expected, "{text:?}");
        assert_eq!(stripped(expected), *expected, "{expected:?}");
    }
}

#[test]
fn a_definition_is_cleaned_whether_its_characters_are_escaped_or_not() {
    for (text, expected) in CORPUS {
        for quoted in [serde_json::Value::from(*text).to_string(), fully_escaped(text)] {
            let json = Bytes::from(format!(r#"{{ "name":"t","n":1.0, "description":{quoted} }}"#));
            let cleaned = clean_definition(&json, &["name"]);
            assert_eq!(cleaned.definition.is_some(), text != expected, "{text:?}");
            let shown = cleaned.definition.unwrap_or_else(|| json.clone());
            let value: serde_json::Value = serde_json::from_slice(&shown).unwrap();
            assert_eq!(value["description"], *expected, "{text:?}");
            assert!(shown.starts_with(br#"{ "name":"t","n":1.0, "description":""#), "{shown:?}");
        }
    }
}

#[test]
fn only_hidden_characters_are_taken_out_of_a_definition() {
    let json =
        br#"{"description":"\u0041\/\ud83d\ude00 \ud83d x\uDB40\uDC41y\u202Ez\\u202e\"\n\udb40\udc42"}"#;
    let cleaned = clean_definition(&Bytes::from_static(json), &[]);
    let expected = br#"{"description":"\u0041\/\ud83d\ude00  xyz\\u202e\"\n"}"#;
    assert_eq!(cleaned.definition.unwrap(), &expected[..]);
    assert_eq!(cleaned.stripped.to_string(), "bidi, tag, noncharacter");
}

#[test]
fn halves_of_a_surrogate_pair_do_not_meet_where_a_character_was_taken_out() {
    for json in [r#"{"title":"a\udb40\u200b\udc41"}"#, "{\"title\":\"a\\udb40\u{200b}\\udc41\"}"] {
        let cleaned = clean_definition(&Bytes::from(json), &[]).definition.unwrap();
        assert_eq!(cleaned, &br#"{"title":"a"}"#[..], "{json}");
    }
}

#[test]
fn names_and_values_that_calls_repeat_stay_in_a_schema() {
    let json = serde_json::json!({
        "name": "to\u{200b}ol",
        "title": "ti\u{200b}tle",
        "annotations": { "title": "an\u{202e}", "const": "x\u{202e}" },
        "inputSchema": {
            "description": "de\u{200b}",
            "properties": {
                "ke\u{200b}y": { "description": "of\u{200b} key", "default": "d\u{200b}", "pattern": "\u{feff}" },
                "default": { "description": "of\u{200b} default", "enum": ["e\u{200b}"], "const": ["c\u{200b}"] },
                "enum": { "items": { "title": "in\u{200b}" } },
            },
            "required": ["ke\u{200b}y"],
            "$defs": { "pattern": { "title": "in\u{200b}" } },
            "anyOf": [{ "title": "in\u{200b}" }],
        },
        "arguments": [{ "name": "na\u{200b}", "description": "de\u{200b}" }],
        "_meta": { "required": "me\u{200b}" },
    });
    let cleaned = clean_definition(&Bytes::from(json.to_string()), &["name"]);
    let shown: serde_json::Value = serde_json::from_slice(&cleaned.definition.unwrap()).unwrap();
    assert_eq!(
        shown,
        serde_json::json!({
            "name": "to\u{200b}ol",
            "title": "title",
            "annotations": { "title": "an", "const": "x" },
            "inputSchema": {
                "description": "de",
                "properties": {
                    "ke\u{200b}y": { "description": "of key", "default": "d\u{200b}", "pattern": "\u{feff}" },
                    "default": { "description": "of default", "enum": ["e\u{200b}"], "const": ["c\u{200b}"] },
                    "enum": { "items": { "title": "in" } },
                },
                "required": ["ke\u{200b}y"],
                "$defs": { "pattern": { "title": "in" } },
                "anyOf": [{ "title": "in" }],
            },
            "arguments": [{ "name": "na\u{200b}", "description": "de" }],
            "_meta": { "required": "me" },
        })
    );
    assert_eq!(
        (cleaned.stripped.to_string(), cleaned.kept.to_string()),
        ("bidi, zero-width".into(), "zero-width".into())
    );
}

#[test]
fn a_plain_definition_is_not_looked_at_twice() {
    assert!(is_plain(br#"{"name":"t","description":"a\nb\t\"c\" \\ d"}"#));
    for json in [&br#""\u0041""#[..], br#""\b""#, br#""\r\n""#, "\"é\"".as_bytes(), b"\"\x7f\""] {
        assert!(!is_plain(json));
    }
}

#[test]
fn a_terminal_shows_hidden_characters_and_obeys_none() {
    for (text, expected) in [
        ("plain\n\ttext é", "plain\n\ttext é"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("a\u{202e}b\u{e0041}c\u{200b}", "a\\u{202e}b\\u{e0041}c\\u{200b}"),
        ("bell\x07", "bell\\u{7}"),
        ("safe\rrm -rf", "safe\nrm -rf"),
        ("👨\u{200d}👩", "👨\u{200d}👩"),
    ] {
        assert_eq!(shown(text), expected, "{text:?}");
    }
    assert_eq!(visible("a\u{1b}[2K\u{202e}b\n"), "a\\u{1b}[2K\\u{202e}b\\u{a}");
    assert_eq!(
        log_line("\x1b[33mWARN\x1b[0m x\u{202e}\x1b[2J\u{9b}\n"),
        "\x1b[33mWARN\x1b[0m x\\u{202e}\\u{1b}[2J\\u{9b}\n"
    );
}

#[test]
fn json_of_the_same_value_shows_hidden_characters() {
    for (text, _) in CORPUS {
        let json = serde_json::json!({ "text": text }).to_string();
        let escaped = escaped_json(&json);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap()["text"], *text);
        assert!(escaped.chars().all(|char| kind(char).is_none()), "{escaped:?}");
    }
    assert_eq!(escaped_json("\"\u{202e}\u{e0041}é\""), r#""\u202e\udb40\udc41é""#);
}

proptest! {
    #[test]
    fn cleaning_is_done_once_and_keeps_json_valid(text in "(\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{fe00}-\u{fe0f}\u{e0000}-\u{e01ef}]|\\x1b\\[3){0,40}") {
        let once = stripped(&text).into_owned();
        prop_assert_eq!(stripped(&once), once.as_str());
        for quoted in [serde_json::Value::from(text.as_str()).to_string(), fully_escaped(&text)] {
            let json = Bytes::from(format!(r#"{{"description":{quoted}}}"#));
            let cleaned = clean_definition(&json, &[]).definition.unwrap_or(json);
            let value: serde_json::Value = serde_json::from_slice(&cleaned).unwrap();
            prop_assert_eq!(&value["description"], once.as_str());
        }
        prop_assert!(shown(&text).chars().all(|char| !char.is_control() || matches!(char, '\n' | '\t' | '\r')));
    }
}

proptest! {
    #[test]
    fn the_text_of_a_json_string_is_what_every_parser_reads(text in "(\\PC|[\"\\\\/\n\t\r\u{8}\u{c}\u{1}\u{1f600}]){0,40}") {
        let plain = serde_json::Value::from(text.as_str()).to_string();
        let escaped: String = text.encode_utf16().fold(String::new(), |all, unit| all + &format!("\\u{unit:04x}"));
        let slashes = plain[1..plain.len() - 1].replace('/', "\\/");
        for json in [&plain[1..plain.len() - 1], &escaped, &slashes] {
            prop_assert_eq!(definition::string_text(json.as_bytes()), text.as_str(), "{}", json);
            // Over several blocks, and from any place of the first.
            let before = "x".repeat(text.len());
            let (long, expected) = (format!("{before}{}", json.repeat(8)), format!("{before}{}", text.repeat(8)));
            prop_assert_eq!(definition::string_text(long.as_bytes()), expected);
        }
    }
}
