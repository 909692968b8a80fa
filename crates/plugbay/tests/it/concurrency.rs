//! Many calls at once: answered in any order, each to its caller, none delayed by another server.

use plugbay_testkit::{Script, Workspace};

use crate::open;

#[test]
fn calls_get_their_results_in_any_order() {
    let workspace = Workspace::new();
    let mut script = Script::new();
    for n in 0..8 {
        let delay = (7 - n) * 400;
        script = script.tool(&format!("t{n}"), format!(r#"{{"echo":true,"delay_ms":{delay}}}"#));
    }
    let host = open(&workspace, &[("a", script.clone()), ("b", script)], &["a__t0", "b__t7"]);
    let calls: Vec<(u64, usize)> = (0..32)
        .map(|n| {
            let server = if n % 2 == 0 { "a" } else { "b" };
            (host.start_call(&format!("{server}__t{}", n / 4), &format!(r#"{{"canary":"c{n}."}}"#)), n)
        })
        .collect();
    let answers: Vec<_> = calls
        .into_iter()
        .map(|(id, n)| {
            let answer = host.expect_response(id);
            assert!(answer.content_text().contains(&format!("c{n}.")), "{answer:?}");
            answer.at
        })
        .collect();
    assert!(
        answers[31] < answers[0],
        "the quick call, sent last, must not wait for the slow one, sent first"
    );
    host.finish();
}

#[test]
fn a_stopped_server_process_delays_no_other() {
    let workspace = Workspace::new();
    let servers = [("a", Script::friendly()), ("b", Script::friendly())];
    let host = open(&workspace, &servers, &["a__echo", "b__echo"]);
    host.call("a__echo", "{}");
    let server = workspace.server_process("a");
    server.stop();
    let stuck = host.start_call("a__echo", r#"{"late":true}"#);
    for n in 0..20 {
        assert!(
            host.call("b__echo", &format!(r#"{{"n":{n}}}"#)).content_text().contains(&format!(r#""n":{n}"#))
        );
    }
    assert_eq!(host.take_now(|m| m.id() == Some(&stuck.to_string())).map(|m| m.text().to_owned()), None);
    host.list_tools();
    server.resume();
    assert!(host.expect_response(stuck).content_text().contains("late"));
    host.finish();
}

#[test]
fn a_server_that_does_not_read_delays_no_other() {
    let workspace = Workspace::new();
    let servers = [("a", Script::friendly()), ("b", Script::friendly())];
    let host = open(&workspace, &servers, &["a__echo", "b__echo"]);
    host.call("a__echo", "{}");
    let server = workspace.server_process("a");
    server.stop();
    // Far more than fits into a pipe.
    let bulk = format!(r#"{{"bulk":"{}"}}"#, "x".repeat(1 << 20));
    let stuck: Vec<u64> = (0..4).map(|_| host.start_call("a__echo", &bulk)).collect();
    for _ in 0..20 {
        host.call("b__echo", "{}");
    }
    server.resume();
    for id in stuck {
        assert!(host.expect_response(id).text().len() > 1 << 20);
    }
    host.finish();
}

#[test]
fn request_ids_that_look_alike_stay_apart() {
    let workspace = Workspace::new();
    let servers = [("a", Script::friendly()), ("b", Script::friendly())];
    let host = open(&workspace, &servers, &["a__echo", "b__echo"]);
    let ids: Vec<String> = (1000..1050)
        .flat_map(|n| [format!("{n}"), format!("\"{n}\""), format!("-{n}"), format!("\"-{n}\"")])
        .collect();
    for (n, id) in ids.iter().enumerate() {
        let server = ["a", "b"][n / 2 % 2];
        let params = format!(r#"{{"name":"{server}__echo","arguments":{{"canary":"{server}{n}."}}}}"#);
        host.request_as(id, "tools/call", &params);
    }
    for (n, id) in ids.iter().enumerate() {
        let server = ["a", "b"][n / 2 % 2];
        let answer = host.expect_response(id);
        assert!(answer.content_text().contains(&format!("\"{server}{n}.\"")), "{id}: {answer:?}");
    }
    host.finish();
}
