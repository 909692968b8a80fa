//! References in ordinary and in odd places.

use super::*;

const HANDLE: &str = "r_AAECAwQFBgcICQoLDA0ODw";

/// Each reference as `place=span text` and its filter.
fn found(json: &str) -> Vec<(String, String, Option<String>)> {
    let found = find(json.as_bytes(), &(0..json.len()));
    found.into_iter().map(|one| (one.place, json[one.span].to_owned(), one.filter)).collect()
}

fn places(json: &str) -> Vec<String> {
    found(&json.replace('H', HANDLE)).into_iter().map(|(place, ..)| place).collect()
}

#[test]
fn a_handle_is_read_as_it_is_written() {
    let handle: Handle = HANDLE.parse().unwrap();
    assert_eq!(handle.0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(handle.to_string(), HANDLE);
    assert_eq!(format!("{handle:?}"), "Handle");
    for wrong in [
        "",
        "r_",
        "r_AAEC",
        "AAECAwQFBgcICQoLDA0ODw",
        "r_AAECAwQFBgcICQoLDA0ODw=",
        "r_AAECAwQFBgcICQoLDA0ODx",
    ] {
        assert_eq!(wrong.parse::<Handle>(), Err(NoHandle), "{wrong}");
    }
    assert!(
        format!("{HANDLE} ").parse::<Handle>().is_err() && format!("{HANDLE}A").parse::<Handle>().is_err()
    );
}

#[test]
fn references_are_found_wherever_they_stand() {
    let json = format!(r#"{{"path":"a", "text" : {{ "$result" : "{HANDLE}" , "jq":".a[\"b\"]" }},"n":1}}"#);
    let reference = format!(r#"{{ "$result" : "{HANDLE}" , "jq":".a[\"b\"]" }}"#);
    assert_eq!(found(&json), [("text".to_owned(), reference, Some(r#".a["b"]"#.to_owned()))]);
    for (json, wanted) in [
        (r#"{"$result":"H"}"#, &[""][..]),
        (r#"{"jq":".","$result":"H"}"#, &[""]),
        (r#"[[{"$result":"H"}],{"a":{"b":[1,{"$result":"H"}]}}]"#, &["[0][0]", "[1].a.b[1]"]),
        (r#"{"a":{"$result":"H"},"$result":{"$result":"H"}}"#, &["a", "$result"]),
        (r#"{"a b":{"\u0024result":"H"}}"#, &["a b"]),
        (r#"{"jq":{"$result":"H","jq":"."}}"#, &["jq"]),
    ] {
        assert_eq!(places(json), wanted, "{json}");
    }
}

#[test]
fn other_objects_with_such_keys_are_left_alone() {
    for json in [
        r#"{"$result":"r_short"}"#,
        r#"{"$result":5}"#,
        r#"{"$result":["H"]}"#,
        r#"{"$result":"H","other":1}"#,
        r#"{"$result":"H","$result":"H"}"#,
        r#"{"$result":"H","jq":"."," jq":"."}"#,
        r#"{"$result":"H","jq":".","jq":"."}"#,
        r#"{"$result":"H","jq":1}"#,
        r#"{"$result":"H","jq":null}"#,
        r#"{"jq":"."}"#,
        "{}",
        r#""$result""#,
        r#"["$result","H"]"#,
        r#"{"$Result":"H"}"#,
    ] {
        assert_eq!(places(json), Vec::<String>::new(), "{json}");
    }
}

#[test]
fn a_quick_look_finds_what_a_search_finds() {
    assert!(may_be_in(br#"{"a":{"$result":"x"}}"#) && may_be_in(br#"{"a":"{\"$result\":1}"}"#));
    assert!(!may_be_in(br#"{"a":"the $result"}"#));
    assert!(
        !may_be_in(b"{}") && !may_be_in(b"") && !may_be_in(b"$result") && !may_be_in(br#"{"results":1}"#)
    );
    assert!(may_be_in(br#"{"about":"the $result of it","a":{"$result":"x"}}"#), "the first word is not all");
}

#[test]
fn arguments_in_a_string_are_opened_if_they_are_json() {
    let json = format!(
        r#"{{"name":"t","arguments":"{{\"text\":{{\"$result\":\"{HANDLE}\"}}}}","b":"{{\"$result\": no json"}}"#
    );
    let opened = unquoted(json.as_bytes(), &(0..json.len()));
    let [(span, text)] = &opened[..] else { panic!("{opened:?}") };
    assert!(json[span.clone()].starts_with(r#""{\"text"#), "{json}");
    assert_eq!(found(text)[0].0, "text");
}

#[test]
fn deep_and_vast_values_are_searched_in_one_pass() {
    let deep = format!("{}{}{}", "[".repeat(60), format_args!(r#"{{"$result":"{HANDLE}"}}"#), "]".repeat(60));
    assert_eq!(found(&deep).len(), 1);
    let too_deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(found(&too_deep).len(), 0);
    let many = format!("[{}]", vec![format!(r#"{{"$result":"{HANDLE}"}}"#); 20_000].join(","));
    assert_eq!(found(&many).len(), 20_000);
}
