//! The check of whole messages, beside `serde_json`.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::{
    super::{
        corpus::{self, VALUES},
        masks::levels,
    },
    *,
};

/// What serde accepts as an object, down to our depth.
fn expected(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok()
        && serde_json::from_slice::<&RawValue>(text).is_ok_and(|value| value.get().starts_with('{'))
}

/// The members of the envelope, if the text is an object. Every set of vector instructions must find the same.
fn found(text: &[u8]) -> Option<Members<'_>> {
    let found = found_with(Level::new(), text);
    for level in levels() {
        assert_eq!(found_with(level, text), found, "{level:?}: {:?}", String::from_utf8_lossy(text));
    }
    found
}

type Members<'a> = Vec<(&'a [u8], &'a [u8])>;

fn found_with(level: Level, text: &[u8]) -> Option<Members<'_>> {
    let mut members = Vec::new();
    object_with(level, text, |found| members.push((&text[found.key], &text[found.value]))).then_some(members)
}

/// Compares both at many places of a block, so that every token stands at every edge.
fn agrees(text: &[u8]) -> Result<(), TestCaseError> {
    if std::str::from_utf8(text).is_err() {
        return Ok(()); // checked before
    }
    // The other sets of instructions take turns: all of them at every place would take minutes.
    let mut others = levels().into_iter().cycle();
    for shift in 0..70 {
        let shifted = [br#"{"p":""#, &b"x".repeat(shift)[..], br#"","v":"#, text, b"}"].concat();
        for level in [Some(Level::new()), others.next()].into_iter().flatten() {
            prop_assert_eq!(
                found_with(level, &shifted).is_some(),
                expected(&shifted),
                "{:?}: {:?}",
                level,
                String::from_utf8_lossy(&shifted)
            );
        }
    }
    Ok(())
}

#[test]
fn members_of_the_envelope_are_found_in_every_place_of_a_block() {
    for shift in 0..140 {
        let pad = "x".repeat(shift);
        let text = format!(
            " {{ \"pad\" :\"{pad}\\\\\\\"\" ,\"a\":{{\"b\":[1,{{\"c\":2}}],\"d\":{{}}}}\t,\r\n\"e,:\":[ ] , \"f\": -1.5e3}} "
        );
        let members = found(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
        let expected: [(&str, &str); 4] = [
            ("\"pad\"", &format!("\"{pad}\\\\\\\"\"")),
            ("\"a\"", "{\"b\":[1,{\"c\":2}],\"d\":{}}"),
            ("\"e,:\"", "[ ]"),
            ("\"f\"", "-1.5e3"),
        ];
        assert_eq!(members, expected.map(|(key, value)| (key.as_bytes(), value.as_bytes())), "{text}");
    }
}

#[test]
fn commas_of_each_value_are_counted() {
    let row = r#"{"a":[1,2],"b":"1,2"}"#;
    for rows in [1, 2, 40] {
        let list = vec![row; rows].join(",");
        let members = (0..rows).map(|at| format!(r#""{at}":{row}"#)).collect::<Vec<_>>().join(",");
        let text =
            format!(r#"{{"list":[{list}],"object":{{{members}}},"deep":{{"list":[{list}]}},"text":"1,2"}}"#);
        let mut commas = Vec::new();
        assert!(object(text.as_bytes(), |found| commas.push(found.commas)));
        assert_eq!(commas, [rows - 1, rows - 1, 0, 0]);
    }
}

/// Whether the answer is right is a test of [`super::super::head`].
#[test]
fn every_value_of_the_corpus_is_read_alike_by_all_vector_instructions() {
    for (_, value) in VALUES {
        for result in corpus::results(value) {
            found(&corpus::response(5, &result));
        }
    }
}

#[test]
fn a_number_may_be_longer_than_a_block() {
    for start in ["", "-", "0."] {
        for end in ["", ".5", ".", "e5", "e", "x", "-", ".5.5"] {
            agrees(format!("{start}{}{end}", "1".repeat(150)).as_bytes()).unwrap();
        }
    }
}

#[test]
fn depth_is_counted() {
    let nested =
        |depth: usize| [b"{\"a\":".repeat(depth - 1), b"{}".to_vec(), b"}".repeat(depth - 1)].concat();
    assert!(found(&nested(64)).is_some());
    assert!(found(&nested(65)).is_none());
    assert!(found(&nested(100_000)).is_none());
    assert!(found(&b"{\"a\":".repeat(100_000)).is_none());
}

#[test]
fn nothing_may_stand_behind_the_object() {
    for blanks in 0..130 {
        let blanks = " ".repeat(blanks);
        assert!(found(format!("{{}}{blanks}").as_bytes()).is_some());
        for more in [",", "{}", "\"a\"", "1", "]", "}", ":", "\0", "\\"] {
            assert!(found(format!("{{}}{blanks}{more}").as_bytes()).is_none(), "{more}");
        }
    }
}

proptest! {
    #[test]
    fn the_scan_accepts_what_serde_accepts(text in r#"[\[\]{},:"\\u01eE+.\- tnrufalse]{0,24}"#) {
        agrees(text.as_bytes())?;
    }

    #[test]
    fn the_scan_accepts_numbers_that_serde_accepts(text in r"-?(0|[0-9]{1,4})?[0-9.eE+\-]{0,6}[ ,\]]?") {
        agrees(text.as_bytes())?;
        agrees(format!("[0,{text},-1.5]").as_bytes())?;
    }

    #[test]
    fn the_scan_accepts_strings_that_serde_accepts(text in r#"[a-zé天 \\\\"\x00-\x1f\x7f-\x9f]{0,40}"#) {
        agrees(format!("\"{text}\"").as_bytes())?;
        agrees(serde_json::Value::from(text).to_string().as_bytes())?;
    }

    /// Long enough for several strides of blocks, with damage at any place of one.
    #[test]
    fn the_scan_accepts_long_strings_that_serde_accepts(
        parts in prop::collection::vec(prop::sample::select(vec![
            "plain text without a mark, longer than most, so that whole blocks are passed at once; ", "\\n", "\\\\", "\\\"", "é", "\\u00e9", "\\r",
        ]), 8..40),
        damage in prop::option::of((0usize..4000, prop::sample::select(b"\"\\\n\x1fu".to_vec()))),
    ) {
        let mut text = format!(r#"{{"a":["{}",1]}}"#, parts.concat()).into_bytes();
        if let Some((at, byte)) = damage {
            let at = at % text.len();
            text[at] = byte;
        }
        prop_assume!(std::str::from_utf8(&text).is_ok());
        prop_assert_eq!(found(&text).is_some(), expected(&text), "{:?}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn the_scan_accepts_damaged_json_only_if_serde_does(
        damages in prop::collection::vec((0usize..95, prop::sample::select(b"{}[],:\"\\ 01-.eEtn\n\t\0a/u\x7f".to_vec())), 1..3),
    ) {
        let mut text = br#"{"a":[1,-2.5e3,"x\n\u00e9",{"b":null}],"c":{"d":true},"e":[],"f":{},"g":[[],[{}],"","\\"] , "h" : 0 }"#.to_vec();
        agrees(&text)?;
        for (at, byte) in damages {
            text[at] = byte;
        }
        agrees(&text)?;
    }

    /// Any mixture of tokens, most of them in an order that nearly fits.
    #[test]
    fn the_scan_accepts_tokens_in_order_only(tokens in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"k\"", "1", "null", " ", "{\"a\":", "[1,", "\"k\":2", "]}", "\n", "\"\\\"\"",
    ]), 0..12)) {
        agrees(tokens.concat().as_bytes())?;
    }
}
