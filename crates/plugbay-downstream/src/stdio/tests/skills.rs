//! Skills over MCP: one list of all servers' skills, and each request at the right server with the right URIs.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Item, ItemKind, Items, Offer, ServerCapabilities, Tool},
    era::Era,
    exposure::{Exposure, Mode},
    extension::Extensions,
    name::ServerName,
    surface::{Layout, OwnSkill, Snapshot},
};
use serde_json::{Value, json};

use super::harness::{Harness, INITIALIZE, modern, request};

const GIT: &str = r#"{"uri":"skill://git/SKILL.md","frontmatter":{"name":"git","description":"Follow our Git conventions"},"resources":[{"uri":"skill://git/SKILL.md","digest":"sha256:0a","size":1.0},{"uri":"skill://git/refs/X.md","digest":"sha256:0b","size":2}]}"#;
const DAILY: &str = r#"{"uri":"skill://daily/SKILL.md","frontmatter":{"name":"daily","description":"Assemble a report"},"resources":"dynamic"}"#;

/// A server with skills: its name, its entries, and whether it lists directories.
type Skilled<'a> = (&'a str, &'a [&'a str], bool);

fn snapshot(servers: &[Skilled<'_>], mode: Mode) -> Snapshot {
    let mut catalog = Catalog::default();
    let skill = OwnSkill::new("---\nname: plugbay\ndescription: Ours\n---\nBody\n").map(Arc::new);
    let mut layout = Layout { mode: Some(mode), name_limit: 64, skill, ..Layout::default() };
    for (name, skills, directory_read) in servers {
        let item = |json: &&str| Item::parse(Bytes::from((*json).to_owned()), ItemKind::Skill).unwrap();
        let items = Items { skills: skills.iter().map(item).collect(), ..Items::default() };
        let capabilities = ServerCapabilities {
            tools: true,
            resources: true,
            skills: true,
            directory_read: *directory_read,
            ..ServerCapabilities::default()
        };
        let declared = format!(
            r#"{{"extensions":{{"io.modelcontextprotocol/skills":{{"directoryRead":{directory_read}}}}}}}"#
        );
        let tools =
            vec![Tool::parse(Bytes::from_static(br#"{"name":"t","description":"Count things"}"#)).unwrap()];
        let offer = Offer::new(Era::Legacy, None, None, tools)
            .with_items(capabilities, items)
            .extended(Extensions::read(declared.as_bytes(), &(0..declared.len())));
        let name = ServerName::parse(name).unwrap();
        catalog = catalog.apply(Change::Listed(name.clone(), Arc::new(offer)));
        layout.exposures.insert(name, Exposure::default());
    }
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

fn two_alike() -> Snapshot {
    snapshot(&[("a", &[GIT, DAILY], true), ("b", &[GIT], true)], Mode::All)
}

fn mapped(text: &str, server: &str) -> String {
    text.replace("skill://", &format!("plugbay://{server}/skill://"))
}

#[tokio::test(start_paused = true)]
async fn skills_list_has_the_skills_of_all_servers_in_both_eras() {
    let expected = format!("[{},{},{DAILY}]", mapped(GIT, "a"), mapped(GIT, "b"));
    let [mut harness, mut stateless] = [(); 2].map(|()| Harness::with(two_alike()));
    harness.say(request(1, "skills/list", "{}")).await;
    let legacy = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"skills":{expected}}}}}"#);
    assert_eq!(harness.hear_text().await, legacy);
    stateless.say(modern(2, "skills/list", "")).await;
    let answer = stateless.hear_text().await;
    let hints = r#","resultType":"complete","ttlMs":0,"cacheScope":"private""#;
    assert!(answer.contains(&format!(r#"{{"skills":{expected}{hints}"#)), "{answer}");
    let refused = harness.ask(request(3, "skills/list", r#"{"cursor":"7"}"#)).await;
    assert_eq!(refused["error"]["code"], -32602);
    let listed = harness.ask(request(4, "skills/list", r#"{"cursor":null}"#)).await;
    assert_eq!(listed["result"]["skills"].as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn skills_are_declared_as_they_are_answered() {
    let declared = |answer: &Value| answer["result"]["capabilities"].clone();
    for (servers, mode, expected) in [
        (&[("a", &[GIT][..], true)][..], Mode::All, json!({ "directoryRead": true })),
        (&[("a", &[GIT][..], false)][..], Mode::All, json!({ "directoryRead": false })),
        (&[("a", &[GIT][..], true), ("b", &[DAILY][..], false)][..], Mode::All, json!({})),
        (&[][..], Mode::Search, json!({ "directoryRead": true })),
        (&[][..], Mode::All, Value::Null),
    ] {
        let mut all = snapshot(servers, mode);
        if servers.is_empty() {
            // A server without skills, so that there is something to search.
            let offer = Offer::new(
                Era::Legacy,
                None,
                None,
                vec![Tool::parse(Bytes::from_static(br#"{"name":"t"}"#)).unwrap()],
            );
            let catalog =
                Catalog::default().apply(Change::Listed(ServerName::parse("s").unwrap(), Arc::new(offer)));
            all = Snapshot::new(Arc::new(catalog), Arc::clone(&all.layout), true);
        }
        let mut harness = Harness::with(all);
        let capabilities = declared(&harness.ask(INITIALIZE).await);
        assert_eq!(capabilities["extensions"]["io.modelcontextprotocol/skills"], expected);
        assert_eq!(capabilities["resources"].is_object(), !expected.is_null());
        let reads = expected["directoryRead"] == true;
        let root = if servers.is_empty() { "skill://plugbay" } else { "skill://none" };
        if expected.is_null() {
            continue; // the method is unknown, and goes to the only server, as every unknown one
        }
        harness.say(request(1, "resources/directory/read", &format!(r#"{{"uri":"{root}"}}"#))).await;
        if reads && !servers.is_empty() {
            harness.forwarded().await.answer(r#"{"resources":[]}"#);
        }
        let answer = harness.hear().await;
        let code = if reads { Value::Null } else { json!(-32601) };
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mapped_skill_is_answered_with_the_uris_that_the_host_has() {
    for era in [Era::Legacy, Era::Modern] {
        let mut harness = Harness::with(two_alike());
        let say = |id: u64, method: &str, uri: &str| match era {
            Era::Legacy => request(id, method, &format!(r#"{{"uri":"{uri}"}}"#)),
            Era::Modern => modern(id, method, &format!(r#","uri":"{uri}""#)),
        };
        for (method, uri, own, answer) in [
            (
                "skills/get",
                "skill://git/SKILL.md",
                "skill://git/SKILL.md",
                format!(r#"{{"skill":{GIT},"x":1.0}}"#),
            ),
            (
                "resources/directory/read",
                "skill://git",
                "skill://git",
                r#"{"resources":[{"name":"SKILL.md","uri":"skill://git/SKILL.md"}]}"#.to_owned(),
            ),
            (
                "resources/read",
                "skill://git/refs/X.md",
                "skill://git/refs/X.md",
                r#"{"contents":[{"uri":"skill://git/refs/X.md","text":"see skill:\/\/git/SKILL.md"}]}"#
                    .to_owned(),
            ),
            (
                "resources/read",
                "skill://git/unlisted",
                "skill://git/unlisted",
                r#"{"contents":[{"uri":"skill://git/unlisted","text":""}]}"#.to_owned(),
            ),
        ] {
            // Two at once: the answers come in the other order.
            harness.say(say(1, method, &mapped(uri, "a"))).await;
            harness.say(say(2, method, &mapped(uri, "b"))).await;
            let (first, second) = (harness.forwarded().await, harness.forwarded().await);
            assert_eq!((first.server(), second.server()), ("a", "b"));
            assert!(first.text().contains(&format!(r#""uri":"{own}""#)), "{}", first.text());
            second.answer(&answer);
            first.answer(&answer);
            for server in ["b", "a"] {
                let heard = harness.hear_text().await;
                let members = answer.strip_suffix('}').unwrap();
                assert!(heard.contains(&mapped(members, server)), "{method}: {heard}");
            }
        }
        harness.say(say(3, "skills/get", "skill://daily/SKILL.md")).await;
        harness.forwarded().await.answer(format!(r#"{{"skill":{DAILY}}}"#));
        let result = harness.hear().await["result"].clone();
        assert_eq!(result["skill"]["uri"], "skill://daily/SKILL.md");
        let cacheable = if era == Era::Modern { json!(0) } else { Value::Null };
        assert_eq!(result["ttlMs"], cacheable);
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_uri_of_two_servers_is_refused_with_those_that_tell_them_apart() {
    let mut harness = Harness::with(two_alike());
    for method in ["skills/get", "resources/read"] {
        let uri = "skill://git/SKILL.md";
        let refused = harness.ask(request(1, method, &format!(r#"{{"uri":"{uri}"}}"#))).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let uris = json!({ "uris": [mapped(uri, "a"), mapped(uri, "b")] });
        assert_eq!(refused["error"]["data"], uris);
    }
    let unknown =
        harness.ask(request(2, "skills/get", r#"{"uri":"plugbay://c/skill://git/SKILL.md"}"#)).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(harness.ask(request(3, "skills/get", "{}")).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_no_list_has_is_found_at_its_server() {
    for (method, result, code) in [
        ("skills/get", r#"{"skill":{"uri":"skill://new/SKILL.md"}}"#, -32602),
        ("resources/read", r#"{"contents":[{"uri":"skill://new/SKILL.md"}]}"#, -32002),
    ] {
        let mut harness = Harness::with(two_alike());
        let asked = request(7, method, r#"{"uri":"skill://new/SKILL.md"}"#);
        let answers = |owners: &'static [&'static str]| move |server: &str| owners.contains(&server);
        for owners in [&["b"][..], &[], &["a", "b"]] {
            harness.say(&asked).await;
            for _ in 0..2 {
                let forwarded = harness.forwarded().await;
                if answers(owners)(forwarded.server()) {
                    forwarded.answer(result);
                } else {
                    let id = forwarded.ticket().0;
                    let error = r#"{"code":-32602,"message":"none of mine"}"#;
                    forwarded.answer_with(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
                }
            }
            if owners.len() == 1 {
                let forwarded = harness.forwarded().await;
                assert_eq!(forwarded.server(), "b");
                forwarded.answer(result);
                let heard = harness.hear_text().await;
                assert_eq!(heard, format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#));
                continue;
            }
            let refused = harness.hear().await;
            let code = if owners.is_empty() { code } else { -32602 };
            assert_eq!(refused["error"]["code"], code, "{refused}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn our_own_skill_can_be_got_and_read() {
    let mut harness = Harness::with(snapshot(&[("a", &[GIT], false)], Mode::Search));
    let listed = harness.ask(request(1, "skills/list", "{}")).await;
    let entry = &listed["result"]["skills"][0];
    let got = harness.ask(request(2, "skills/get", r#"{"uri":"skill://plugbay/SKILL.md"}"#)).await;
    assert_eq!(got["result"]["skill"], *entry);
    let read = harness.ask(request(3, "resources/read", r#"{"uri":"skill://plugbay/SKILL.md"}"#)).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(entry["resources"][0]["size"], text.len());
    for (root, first) in
        [("skill://plugbay", "skill://plugbay/SKILL.md"), ("skill://git/refs", "skill://git/refs/X.md")]
    {
        let read = request(4, "resources/directory/read", &format!(r#"{{"uri":"{root}"}}"#));
        assert_eq!(harness.ask(read).await["result"]["resources"][0]["uri"], first);
    }
    let file = request(5, "resources/directory/read", r#"{"uri":"skill://plugbay/SKILL.md"}"#);
    assert_eq!(harness.ask(file).await["error"]["code"], -32602);
    let mut stateless = Harness::with(snapshot(&[("a", &[GIT], false)], Mode::Search));
    let got = stateless.ask(modern(6, "skills/get", r#","uri":"skill://plugbay/SKILL.md""#)).await;
    let (kept, entry) = (&got["result"]["ttlMs"], &got["result"]["skill"]["uri"]);
    assert_eq!((kept, entry), (&json!(0), &json!("skill://plugbay/SKILL.md")));
}

#[tokio::test(start_paused = true)]
async fn skills_that_change_are_asked_for_and_notified() {
    let mut harness = Harness::with(snapshot(&[("a", &[GIT], false)], Mode::All));
    harness.open().await;
    harness.ask(request(1, "skills/list", "{}")).await;
    assert_eq!(harness.refreshed().await, "a");
    harness.ask(request(2, "skills/list", "{}")).await;
    harness.nothing_forwarded().await;
    harness.snapshots.send_replace(snapshot(&[("a", &[GIT, DAILY], false)], Mode::All));
    assert_eq!(harness.hear().await["method"], "notifications/resources/list_changed");
}

fn call(id: u64, name: &str, arguments: &str) -> String {
    request(id, "tools/call", &format!(r#"{{"name":"{name}","arguments":{arguments}}}"#))
}

#[tokio::test(start_paused = true)]
async fn a_search_finds_skills_and_describe_tool_reads_them() {
    let mut harness = Harness::with(snapshot(&[("a", &[GIT], false), ("b", &[GIT], false)], Mode::Search));
    harness.open().await;
    let found = harness.ask(call(1, "search_tools", r#"{"query":"git conventions"}"#)).await;
    let text = found["result"]["content"][0]["text"].as_str().unwrap();
    for server in ["a", "b"] {
        let uri = mapped("skill://git/SKILL.md", server);
        let line =
            format!("skill git of {server} - Follow our Git conventions (read it: describe_tool {uri})");
        assert!(text.contains(&line), "{text}");
    }
    let other = harness.ask(call(2, "search_tools", r#"{"query":"count things"}"#)).await;
    assert!(!other.to_string().contains("skill git"), "{other}");

    let uri = mapped("skill://git/SKILL.md", "b");
    harness.say(call(3, "describe_tool", &format!(r#"{{"name":"{uri}"}}"#))).await;
    let forwarded = harness.forwarded().await;
    assert_eq!(forwarded.server(), "b");
    forwarded.answer(r#"{"contents":[{"uri":"skill://git/SKILL.md","text":"Branch first."}]}"#);
    let told = harness.hear().await["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(told.starts_with(&format!("{uri}, as server b wrote it:\n\nBranch first.")), "{told}");
    assert!(told.ends_with(&mapped("skill://git/refs/X.md", "b")), "{told}");

    let disputed = harness.ask(call(4, "describe_tool", r#"{"name":"skill://git/SKILL.md"}"#)).await;
    assert_eq!(disputed["result"]["isError"], true, "{disputed}");
    let none = harness.ask(call(5, "describe_tool", r#"{"name":"other://x"}"#)).await;
    assert!(none.to_string().contains("There is no tool"), "{none}");
}
