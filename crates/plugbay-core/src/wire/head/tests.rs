//! Envelopes: what is read, what is refused, and which request a refusal answers.

use super::{
    super::{
        Incoming, as_message,
        corpus::{self, VALUES, Verdict},
    },
    *,
};

#[test]
fn params_are_one_object_and_nothing_behind_it() {
    assert_eq!(check_params(b" {\"a\":[1]} "), Ok(()));
    assert_eq!(check_params(b"[]"), Err(Fault::NotAnObject));
    for bytes in [&b""[..], b"{", b"{},\"id\":2", b"{}{}", b"{\"a\":01}"] {
        assert!(matches!(check_params(bytes), Err(Fault::Json(_))), "{bytes:?}");
    }
    let deep = [b"{\"a\":".repeat(64), b"1".to_vec(), b"}".repeat(64)].concat();
    assert_eq!(check_params(&deep), Err(Fault::Json(ScanError::TooDeep(315))));
}

fn text<'a>(bytes: &'a str, span: &Span) -> &'a str {
    &bytes[span.clone()]
}

#[test]
fn reads_a_request_in_any_order() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[1]}}"#,
        r#" {"method":"ping", "params" : {"a":[1]},"jsonrpc":"2.0","id":1,"x":{}} "#,
    ] {
        let head = Head::read(message.as_bytes()).unwrap();
        let Kind::Request { id, method } = head.kind else { panic!("{head:?}") };
        assert_eq!((text(message, &id), text(message, &method)), ("1", "ping"));
        assert_eq!(text(message, &head.payload.unwrap()), r#"{"a":[1]}"#);
    }
}

#[test]
fn a_payload_with_too_many_members_is_refused_and_answers_its_request() {
    let object = |count: usize| {
        let members: Vec<String> = (0..count).map(|n| format!(r#""k{n}":0"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let result = |payload: String| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{payload}}}"#);
    assert!(Head::read(result(object(MEMBER_LIMIT)).as_bytes()).is_ok());
    assert!(Head::read(result(format!(r#"{{"a":{}}}"#, object(2 * MEMBER_LIMIT))).as_bytes()).is_ok());
    let wide = result(object(MEMBER_LIMIT + 1));
    let Err(Malformed { id, answers, fault }) = Head::read(wide.as_bytes()) else { panic!("it was read") };
    assert_eq!((text(&wide, &id.unwrap()), text(&wide, &answers.unwrap())), ("7", "7"));
    assert_eq!(fault, Fault::Members);
    let request =
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}}"#, object(MEMBER_LIMIT + 1));
    let Err(Malformed { id, answers, fault }) = Head::read(request.as_bytes()) else { panic!("it was read") };
    assert_eq!((id.is_some(), answers, fault), (true, None, Fault::Members));
}

#[test]
fn a_payload_that_is_nested_too_deep_is_refused_and_answers_its_request() {
    let deep = format!(r#"{{"a":{}"\"}}"{}}}"#, "[".repeat(5000), "]".repeat(5000));
    for (message, is_answer) in [
        (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{deep}}}"#), false),
        (format!(r#" {{"method":"ping","params":{deep},"jsonrpc":"2.0","id":7}}"#), false),
        (format!(r#"{{"jsonrpc":"2.0","result":{deep},"id":7}}"#), true),
    ] {
        let Err(Malformed { id, answers, fault }) = Head::read(message.as_bytes()) else {
            panic!("it was read")
        };
        assert!(matches!(fault, Fault::Json(ScanError::TooDeep(_))), "{fault:?}");
        assert_eq!((text(&message, &id.unwrap()), answers.is_some()), ("7", is_answer));
    }
    for (before, behind) in [(r#""id":7,"#, r#","id":8"#), (r#""id":7,"#, r#",""#), ("", "")] {
        let message = format!(r#"{{"jsonrpc":"2.0",{before}"method":"ping","params":{deep}{behind}}}"#);
        assert_eq!(Head::read(message.as_bytes()).unwrap_err().id, None, "{before} {behind}");
    }
}

fn strict(message: &str) -> Head {
    Envelope::read(message.as_bytes()).and_then(Envelope::into_head).unwrap()
}

#[test]
fn reads_responses_quickly_and_strictly_alike() {
    for (message, quickly) in [
        (r#"{"jsonrpc":"2.0","id":17,"result":{"content":[]}}"#, true),
        (r#"{"id":17,"jsonrpc":"2.0","result":{"content":[]}}"#, true),
        (r#"{"jsonrpc":"2.0","id":17,"error":{"code":1,"message":"no","data":{}}}"#, true),
        (r#"{"jsonrpc":"2.0","id":17,"result":{"issues":[{"id":4}],"x":{}}}"#, true),
        (r#"{"result":{"content":[]},"jsonrpc":"2.0","id":17}"#, true),
        (r#"{"jsonrpc":"2.0","result":{"content":[]},"id":17}"#, true),
        (r#"{"error":{"code":1,"message":"}"}, "id": 17, "jsonrpc" : "2.0" }"#, true),
        (r#"{"jsonrpc":"2.0","id":17,"result":{"content":[]},"x":1}"#, false),
        (r#"{"x":{},"jsonrpc":"2.0","id":17,"result":{"content":[]}}"#, false),
    ] {
        let quick = leading_id(message.as_bytes()).or_else(|| trailing_id(message.as_bytes()));
        assert_eq!(quick.is_some(), quickly, "{message}");
        assert_eq!(quick.unwrap_or_else(|| strict(message)), strict(message), "{message}");
    }
}

/// Whatever a server appends, the host's id is the only one.
#[test]
fn a_second_id_is_refused_wherever_it_hides() {
    let payload = format!(r#"{{"a":"{}"}}"#, "x".repeat(600));
    for second in [r#""id":2"#, r#""\u0069d":2"#, r#""ID":2"#, r#""\u0131d":2"#, r#""İd":2"#] {
        for message in [
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload},{second}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload},{second},"x":{{}}}}"#),
            format!(r#"{{"result":{payload},{second},"jsonrpc":"2.0","id":1}}"#),
            format!(r#"{{{second},"result":{payload},"jsonrpc":"2.0","id":1}}"#),
        ] {
            let refused = Head::read(message.as_bytes()).unwrap_err();
            assert!(matches!(refused.fault, Fault::Duplicate("id") | Fault::Case { .. }), "{message}");
        }
    }
    let message = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#));
    let head = Head::read(&message).unwrap();
    let at = head.payload.clone().unwrap().start + 1;
    let sent = head.readdressed(&message, b"\"host\"", &[(at..at, b"\"n\":0,")]).into_bytes();
    let expected = format!(r#"{{"jsonrpc":"2.0","id":"host","result":{{"n":0,{}}}"#, &payload[1..]);
    assert_eq!(sent, expected);
}

/// The corpus is right, and every answer in it is read as it should be.
#[test]
fn answers_are_whole_or_broken_as_serde_has_it() {
    assert!(VALUES.len() >= 150);
    for (verdict, value) in VALUES {
        for result in corpus::results(value) {
            let message = corpus::response(5, &result);
            let shown = String::from_utf8_lossy(&message).into_owned();
            let theirs: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(&message);
            let read = match as_message(message.as_slice().into()) {
                Incoming::Message(message) => {
                    Head::read(&message).map(|head| message[head.payload.unwrap()].to_vec())
                }
                other => {
                    assert!(matches!(other, Incoming::NotText(_)), "{shown}");
                    Err(Fault::Utf8.into())
                }
            };
            match verdict {
                Verdict::Whole => {
                    assert_eq!(read, Ok(result), "{shown}");
                    assert!(theirs.is_ok(), "{shown}");
                }
                Verdict::Broken => {
                    let refused = read.expect_err(&shown);
                    assert!(
                        theirs.is_err()
                            || !matches!(refused.fault, Fault::Json(_))
                            || value == &corpus::DEEP_ARRAY,
                        "{shown}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_long_number_is_no_id() {
    for (digits, fits) in [(64, true), (65, false), (100_000, false)] {
        for message in
            [r#"{"jsonrpc":"2.0","id":#,"method":"a"}"#, r#"{"jsonrpc":"2.0","id":-#,"result":{}}"#]
        {
            let read = Head::read(message.replace('#', &"9".repeat(digits)).as_bytes());
            assert_eq!(read.is_ok(), fits, "{digits}");
            assert!(read.is_ok() || read.is_err_and(|refused| refused.id.is_none()));
        }
    }
}

/// Only a response answers: a server numbers its own requests as it likes.
#[test]
fn a_malformed_request_answers_nothing() {
    let answers = |message: &str| {
        let refused = Head::read(message.as_bytes()).unwrap_err();
        refused.answers.map(|id| message[id].to_owned())
    };
    assert_eq!(answers(r#"{"jsonrpc":"2.0","id":5,"method":"a","params":[]}"#), None);
    assert_eq!(answers(r#"{"jsonrpc":"2.0","id":5,"id":6,"result":{}}"#), None);
    assert_eq!(answers(r#"{"jsonrpc":"1.0","id":5,"result":{}}"#).as_deref(), Some("5"));
    assert_eq!(answers(r#"{"jsonrpc":"2.0","id":5.0,"result":{}}"#).as_deref(), Some("5.0"));
}

#[test]
fn refuses_what_parsers_read_differently() {
    let check = |message: &str, fault: &str, id: Option<&str>| {
        let malformed = Head::read(message.as_bytes()).unwrap_err();
        assert!(malformed.fault.to_string().contains(fault), "{message}: {}", malformed.fault);
        assert_eq!(malformed.id.map(|id| &message[id]), id, "{message}");
    };
    check(r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, "twice", Some("1"));
    check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, "twice", None);
    check(r#"{"jsonrpc":"2.0","id":1,"Method":"a"}"#, "must be written", Some("1"));
    check(r#"{"jsonrpc":"2.0","id":1,"method":"a","paramſ":{}}"#, "must be written", Some("1"));
    check(r#"{"jsonrpc":"1.0","id":"x","method":"a"}"#, "2.0", Some("\"x\""));
    check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "string or an integer", None);
    check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "string or an integer", None);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#, "object", Some("1"));
    check(r#"{"jsonrpc":"2.0","id":1}"#, "either", Some("1"));
    check(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "batch", None);
    check("{\"jsonrpc\":\"2.0\"", "not valid JSON", None);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"a"} {}"#, "not valid JSON", None);
    check("7", "object", None);
}

#[test]
fn tells_the_id_of_a_response_that_never_ended() {
    let head = br#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"aaaa"#;
    assert_eq!(Head::id_of_truncated_response(head, b""), Some(&b"12"[..]));
    let (start, end) = (br#"{"result":{"a":"x"#, br#"x"},"jsonrpc":"2.0","id":12}"#);
    assert_eq!(Head::id_of_truncated_response(start, end), Some(&b"12"[..]));
    assert_eq!(Head::id_of_truncated_response(start, br#"x"}}"#), None);
}
