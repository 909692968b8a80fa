//! Skills over MCP through the gateway: two servers with the same skill, in every pairing of eras, and one that fails.

use plugbay_testkit::{Host, HttpGateway, MODERN_META, Script, Workspace};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{fidelity::PAIRS, gateway};

const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// A file of a skill: its URI and its text.
type File = (&'static str, String);

/// The files of a server's skill `git`: the same URIs everywhere, but different texts.
fn git(server: &str) -> [File; 2] {
    let text = format!(
        "---\nname: git\ndescription: Follow our Git conventions\n---\nAs {server} does it: see refs/X.md.\n"
    );
    [("skill://git/SKILL.md", text), ("skill://git/refs/X.md", format!("# é, as {server} says\n"))]
}

fn digest(text: &str) -> String {
    format!("sha256:{:x}", Sha256::digest(text))
}

fn entry(files: &[File]) -> Value {
    let uri = files[0].0;
    let name = uri.trim_end_matches("/SKILL.md").rsplit('/').next().unwrap();
    let file = |(uri, text): &File| json!({ "uri": uri, "digest": digest(text), "size": text.len() });
    json!({
        "uri": uri,
        "frontmatter": { "name": name, "description": "Follow our Git conventions" },
        "resources": files.iter().map(file).collect::<Vec<_>>(),
    })
}

/// A server with these skills, each on its own page. It lists directories; the listing is that of the first
/// skill.
fn skilled(era: &str, skills: &[Vec<File>]) -> Script {
    let mut methods = serde_json::Map::new();
    let mut reads = serde_json::Map::new();
    for (page, files) in skills.iter().enumerate() {
        let entry = entry(files);
        let cursor = if page == 0 { "skills/list".to_owned() } else { format!("skills/list {page}") };
        let mut listed = json!({ "skills": [entry] });
        if page + 1 < skills.len() {
            listed["nextCursor"] = json!((page + 1).to_string());
        }
        methods.insert(cursor, json!({ "result": listed }));
        methods.insert(format!("skills/get {}", files[0].0), json!({ "result": { "skill": entry } }));
        for (uri, text) in files {
            let contents = json!({ "contents": [{ "uri": uri, "mimeType": "text/markdown", "text": text }] });
            reads.insert((*uri).to_owned(), json!({ "result": contents }));
        }
    }
    let unknown = json!({ "error": { "code": -32602, "message": "none of mine" } });
    reads.insert("*".to_owned(), unknown.clone());
    methods.insert("skills/get".to_owned(), unknown.clone());
    let children = json!([{ "uri": "skill://git/refs/X.md", "name": "X.md" }]);
    methods.insert(
        "resources/directory/read skill://git/refs".to_owned(),
        json!({ "result": { "resources": children } }),
    );
    methods.insert("resources/directory/read".to_owned(), unknown);
    Script::friendly()
        .set("era", json!(era))
        .set("resources", "[]")
        .set("capabilities", json!({ "extensions": { EXTENSION: { "directoryRead": true } } }))
        .set("methods", Value::from(methods))
        .set("reads", Value::from(reads))
}

#[track_caller]
fn ask(host: &Host, method: &str, params: &Value) -> Value {
    let id = host.request(method, &params.to_string());
    host.expect_response(id).result_value()
}

#[track_caller]
fn refused(host: &Host, method: &str, params: &Value) -> i64 {
    let id = host.request(method, &params.to_string());
    host.expect_response(id).error_code()
}

/// Reads every file of an entry as a host must, and checks its bytes against digest and size.
#[track_caller]
fn verify(host: &Host, entry: &Value) -> Vec<String> {
    let files = entry["resources"].as_array().expect("files");
    // All at once, so that answers of two servers cross.
    let ids: Vec<u64> = files
        .iter()
        .map(|file| host.request("resources/read", &json!({ "uri": file["uri"] }).to_string()))
        .collect();
    let mut texts = Vec::new();
    for (file, id) in files.iter().zip(ids) {
        let read = host.expect_response(id).result_value();
        let content = &read["contents"][0];
        let text = content["text"].as_str().expect("text");
        assert_eq!(content["uri"], file["uri"]);
        assert_eq!(
            (file["digest"].as_str(), file["size"].as_u64()),
            (Some(&*digest(text)), Some(text.len() as u64))
        );
        texts.push(text.to_owned());
    }
    texts
}

#[track_caller]
fn opened(workspace: &Workspace, era: &str, servers: &[(&str, Script)]) -> Host {
    let host = workspace.serve_with(&gateway(), servers);
    if era == "modern" {
        host.discover();
    } else {
        host.initialize();
    }
    let tools: Vec<String> = servers.iter().map(|(name, _)| format!("{name}__echo")).collect();
    host.await_tools(&tools.iter().map(String::as_str).collect::<Vec<_>>());
    host
}

#[test]
fn two_servers_with_the_same_skill_are_told_apart_in_every_pairing_of_eras() {
    for (host_era, server_era) in PAIRS {
        let workspace = Workspace::new();
        let other = [(
            "skill://acme/git/SKILL.md",
            "---\nname: git\ndescription: Follow our Git conventions\n---\n".to_owned(),
        )];
        let servers = [
            ("ska", skilled(server_era, &[git("ska").into(), other.clone().into()])),
            ("skb", skilled(server_era, &[git("skb").into()])),
        ];
        let host = opened(&workspace, host_era, &servers);
        let listed = ask(&host, "skills/list", &json!({}));
        let skills = listed["skills"].as_array().expect("skills");
        let uris: Vec<&str> = skills.iter().map(|skill| skill["uri"].as_str().unwrap()).collect();
        let [ska, skb] = ["ska", "skb"].map(|server| format!("plugbay://{server}/skill://git/SKILL.md"));
        assert_eq!(
            uris,
            [ska.as_str(), skb.as_str(), "skill://acme/git/SKILL.md"],
            "{host_era} {server_era}"
        );
        if host_era == "modern" {
            assert_eq!((&listed["resultType"], &listed["ttlMs"]), (&json!("complete"), &json!(0)));
        }
        for (skill, server) in skills.iter().zip(["ska", "skb"]) {
            let texts = verify(&host, skill);
            assert_eq!(texts, git(server).map(|(_, text)| text));
            assert_eq!(ask(&host, "skills/get", &json!({ "uri": skill["uri"] }))["skill"], *skill);
            let directory = skill["uri"].as_str().unwrap().replace("SKILL.md", "refs");
            let children = ask(&host, "resources/directory/read", &json!({ "uri": directory }));
            assert_eq!(children["resources"][0]["uri"], json!(format!("{directory}/X.md")));
        }
        verify(&host, &skills[2]);
        let bare = json!({ "uri": "skill://git/SKILL.md" });
        for method in ["skills/get", "resources/read"] {
            assert_eq!(refused(&host, method, &bare), -32602, "{method}");
        }
        assert_eq!(refused(&host, "skills/get", &json!({ "uri": "skill://none/SKILL.md" })), -32602);
        host.finish();
    }
}

#[test]
fn a_skill_without_rival_keeps_its_uris_and_one_that_no_list_has_is_found() {
    for (host_era, server_era) in PAIRS {
        let workspace = Workspace::new();
        let hidden = vec![("skill://hidden/SKILL.md", "---\nname: hidden\ndescription: d\n---\n".to_owned())];
        let servers =
            [("a", skilled(server_era, &[git("a").into()])), ("b", secretive(server_era, hidden.clone()))];
        let host = opened(&workspace, host_era, &servers);
        let listed = ask(&host, "skills/list", &json!({}));
        assert_eq!(listed["skills"], json!([entry(&git("a"))]), "{host_era} {server_era}");
        verify(&host, &listed["skills"][0]);
        let children = ask(&host, "resources/directory/read", &json!({ "uri": "skill://git/refs" }));
        assert_eq!(children["resources"][0]["uri"], "skill://git/refs/X.md");
        let got = ask(&host, "skills/get", &json!({ "uri": hidden[0].0 }));
        assert_eq!(got["skill"], entry(&hidden));
        verify(&host, &got["skill"]);
        host.finish();
    }
}

/// A server that has a skill but does not list it.
fn secretive(era: &str, files: Vec<File>) -> Script {
    let script = skilled(era, &[files]);
    let text: Value = serde_json::from_str(&script.text()).expect("a script");
    let mut methods = text["methods"].clone();
    methods["skills/list"] = json!({ "result": { "skills": [] } });
    script.set("methods", methods)
}

#[test]
fn a_server_that_fails_or_does_not_list_costs_its_own_skills_only() {
    let workspace = Workspace::new();
    let silent = skilled("legacy", &[]).set("methods", json!({ "skills/list": { "hang": true } }));
    let broken = Script::friendly().set("exit", json!({ "code": 7, "stderr": ["no disk"] }));
    let servers = [("a", skilled("legacy", &[git("a").into()])), ("silent", silent), ("broken", broken)];
    let host = workspace.serve_with(&gateway(), &servers);
    host.initialize();
    host.await_tools(&["a__echo", "silent__echo"]);
    let listed = ask(&host, "skills/list", &json!({}));
    assert_eq!(listed["skills"], json!([entry(&git("a"))]));
    let missing = listed["_meta"]["plugbay/unlisted"].as_object().expect("a server is missing");
    assert_eq!(missing.keys().collect::<Vec<_>>(), ["broken"]);
    assert!(missing["broken"].as_str().is_some_and(|why| why.contains("no disk")), "{missing:?}");
    verify(&host, &listed["skills"][0]);
    assert!(!host.call("silent__echo", "{}").is_error());
    host.finish();
}

#[test]
fn our_own_skill_is_served_where_our_own_tools_are() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", skilled("modern", &[git("a").into()])), ("b", Script::friendly())]);
    for (mode, expected) in [
        ("all", vec!["skill://git/SKILL.md"]),
        ("search", vec!["skill://plugbay/SKILL.md", "skill://git/SKILL.md"]),
    ] {
        workspace.write_config(&config.clone().top("mode", json!(mode)));
        let host = workspace.serve(&gateway());
        host.initialize();
        let listed = ask(&host, "skills/list", &json!({}));
        let skills = listed["skills"].as_array().expect("skills");
        assert_eq!(skills.iter().map(|skill| skill["uri"].as_str().unwrap()).collect::<Vec<_>>(), expected);
        for skill in skills {
            verify(&host, skill);
        }
        if mode == "search" {
            let found = host.call("search_tools", r#"{"query":"git conventions"}"#).content_text();
            assert!(found.contains("skill git of a - Follow our Git conventions"), "{found}");
            let told = host.call("describe_tool", r#"{"name":"skill://git/SKILL.md"}"#).content_text();
            assert!(told.contains("As a does it") && told.contains("skill://git/refs/X.md"), "{told}");
        }
        host.finish();
    }
}

#[test]
fn windows_of_a_daemon_and_hosts_over_http_have_the_same_skills() {
    let workspace = Workspace::new().with_daemon();
    let servers =
        [("ska", skilled("legacy", &[git("ska").into()])), ("skb", skilled("modern", &[git("skb").into()]))];
    let [one, two] = ["legacy", "modern"].map(|era| opened(&workspace, era, &servers));
    let lists = [&one, &two].map(|host| ask(host, "skills/list", &json!({}))["skills"].clone());
    assert_eq!(lists[0], lists[1]);
    for host in [one, two] {
        for skill in lists[0].as_array().expect("skills") {
            verify(&host, skill);
        }
        host.finish();
    }

    let gateway = HttpGateway::start(&mut workspace.command(&gateway()));
    let post = |method: &str, name: &str, members: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{MODERN_META}}}{members}}}}}"#
        );
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        headers.extend((!name.is_empty()).then_some(("mcp-name", name)));
        let reply = gateway.post(&headers, &body);
        serde_json::from_str::<Value>(&reply.body).expect("JSON")["result"].clone()
    };
    assert_eq!(post("skills/list", "", "")["skills"], lists[0]);
    for skill in lists[0].as_array().expect("skills") {
        let uri = skill["uri"].as_str().unwrap();
        let got = post("skills/get", "", &format!(r#","uri":"{uri}""#));
        assert_eq!(got["skill"], *skill);
        let file = &skill["resources"][1];
        let uri = file["uri"].as_str().unwrap();
        let read = post("resources/read", uri, &format!(r#","uri":"{uri}""#));
        assert_eq!(file["digest"], json!(digest(read["contents"][0]["text"].as_str().unwrap())));
    }
}
