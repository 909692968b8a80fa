//! Lines of `add` as READMEs show them for other programs, and pasted JSON.

use std::{ffi::OsString, path::Path};

use clap::{CommandFactory, Parser};
use plugbay_hosts::jsonc;
use serde_json::{Value, json};

use super::{Addition, addition, flags::AddArgs, line::canonical, snippet};

#[derive(Debug, Parser)]
struct Program {
    #[arg(long, global = true)]
    config: Option<String>,
    #[arg(short, long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(Box<AddArgs>),
    Remove { name: String },
}

/// The words of a line, as a shell without variables splits them.
fn words(line: &str) -> Vec<OsString> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for char in line.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take().map(OsString::from)),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word.map(OsString::from));
    words
}

fn parse(line: &str) -> Result<AddArgs, String> {
    let line = canonical(Program::command, words(&format!("plugbay {line}")));
    match Program::try_parse_from(line).map_err(|error| error.to_string())?.command {
        Command::Add(args) => Ok(*args),
        Command::Remove { .. } => Err("another command".to_owned()),
    }
}

fn addition(line: &str) -> Result<(Addition, Vec<String>), String> {
    Addition::of(parse(line)?, Path::new("/no/such/folder")).map_err(|error| error.message)
}

fn value(addition: &Addition) -> Value {
    let text = jsonc::set("{}", &["entry"], addition.value()).unwrap();
    jsonc::get(&text, &["entry"]).unwrap().unwrap()
}

/// Checks that the line adds `name` with this entry.
#[track_caller]
fn check(line: &str, name: &str, entry: &Value) {
    let (found, _) = addition(line).unwrap_or_else(|error| panic!("{line}\n{error}"));
    assert_eq!((found.name.as_str(), &value(&found)), (name, entry), "{line}");
}

fn program(words: &str) -> Value {
    let mut words = words.split(' ').map(str::to_owned);
    let command = words.next();
    match words.collect::<Vec<_>>() {
        args if args.is_empty() => json!({ "command": command }),
        args => json!({ "command": command, "args": args }),
    }
}

fn with(mut entry: Value, key: &str, value: Value) -> Value {
    entry[key] = value;
    entry
}

#[test]
fn lines_for_claude_mcp_add_work() {
    let npx = |package: &str| program(&format!("npx -y {package}"));
    check(
        "add playwright -- npx @playwright/mcp@latest",
        "playwright",
        &program("npx @playwright/mcp@latest"),
    );
    check("add thinking -- npx -y @mcp/server-thinking", "thinking", &npx("@mcp/server-thinking"));
    check("add -s user wiki -- npx -y wiki-mcp --root /a/vault", "wiki", &npx("wiki-mcp --root /a/vault"));
    check("add codex --scope user -- codex mcp-server", "codex", &program("codex mcp-server"));
    check("add --scope project tasks -- cmd /c npx -y tasks", "tasks", &program("cmd /c npx -y tasks"));
    check("add ios --transport stdio node /a/build/index.js", "ios", &program("node /a/build/index.js"));
    check("add shadcn npx shadcn@latest mcp", "shadcn", &program("npx shadcn@latest mcp"));
    let keyed = |entry: Value| with(entry, "env", json!({ "API_KEY": "k", "B": "2" }));
    // `-e` takes several values. Claude Code itself would take the name for one of them.
    check("add air -e API_KEY=k B=2 -- npx -y air", "air", &keyed(npx("air")));
    check("add -e API_KEY=k B=2 air -- npx -y air", "air", &keyed(npx("air")));
    check("add -e API_KEY=k -e B=2 air -- npx -y air", "air", &keyed(npx("air")));
    check("add --env API_KEY=k --env B=2 -- air npx -y air", "air", &keyed(npx("air")));
    check("add -s user air -eAPI_KEY=k --env=B=2 -- npx -y air", "air", &keyed(npx("air")));
    check("add air npx air --env API_KEY=k --env 'B=2'", "air", &keyed(program("npx air")));
    check("add --transport stdio air --env API_KEY=k B=2 -- npx -y air", "air", &keyed(npx("air")));
    let value = json!({ "URL": "bolt://localhost:7687", "OPT": "-Xmx1g --x=y", "EMPTY": "" });
    let line = "add db -e URL=bolt://localhost:7687 -e 'OPT=-Xmx1g --x=y' -e EMPTY= -- uvx --from git+https://h/r db";
    check(line, "db", &with(program("uvx --from git+https://h/r db"), "env", value));
    check(
        "add gh -- docker run -i --rm -e TOKEN img -- -x",
        "gh",
        &program("docker run -i --rm -e TOKEN img -- -x"),
    );
    let token = json!({ "K": "$(gh auth token)" });
    check("add -e 'K=$(gh auth token)' -s user gh -- npx gh", "gh", &with(program("npx gh"), "env", token));
    check("add -s user a x --scope user", "a", &program("x"));
    check("add odd -- 'my program' x", "odd", &json!({ "command": "my program", "args": ["x"] }));
    check("add odd -- 'sh -c \"a b\"'", "odd", &json!({ "command": "sh -c \"a b\"" }));
    check("add gh docker -- run -i img", "gh", &program("docker run -i img"));
}

#[test]
fn lines_for_remote_servers_work_in_every_order() {
    let url = "https://mcp.h.example/mcp";
    let http = json!({ "type": "http", "url": url });
    for line in [
        "add --transport http sentry https://mcp.h.example/mcp",
        "add sentry --transport http https://mcp.h.example/mcp",
        "add sentry https://mcp.h.example/mcp --transport http",
        "add sentry https://mcp.h.example/mcp -t http -s local",
        "add -t streamable-http sentry https://mcp.h.example/mcp",
        "add --type=http sentry https://mcp.h.example/mcp",
        "add -thttp sentry --scope=user -- https://mcp.h.example/mcp",
    ] {
        check(line, "sentry", &http);
    }
    check("add sentry https://mcp.h.example/mcp", "sentry", &json!({ "url": url }));
    check(
        "add --transport sse asana https://h/sse",
        "asana",
        &json!({ "type": "sse", "url": "https://h/sse" }),
    );
    let headers = json!({ "Authorization": "Bearer t:1", "X-Id": "2" });
    let guarded = with(http, "headers", headers);
    for line in [
        "add -t http s https://mcp.h.example/mcp -H 'Authorization: Bearer t:1' 'X-Id: 2'",
        "add -t http s https://mcp.h.example/mcp --header 'Authorization: Bearer t:1' --header X-Id:2",
        "add -t http -H 'Authorization: Bearer t:1' 'X-Id: 2' s https://mcp.h.example/mcp",
        "add -t http s -H 'Authorization: Bearer t:1' -H 'X-Id: 2' https://mcp.h.example/mcp",
        "add -t http s --header='X-Id: 2' -H 'Authorization:Bearer t:1' -- https://mcp.h.example/mcp",
    ] {
        check(line, "s", &guarded);
    }
}

#[test]
fn lines_with_a_client_for_oauth_work() {
    let url = "https://h/mcp";
    let entry = |oauth: serde_json::Value| json!({ "url": url, "oauth": oauth });
    let me = json!({ "clientId": "me", "callbackPort": 8080 });
    check("add s https://h/mcp --client-id me --callback-port 8080", "s", &entry(me.clone()));
    check("add --client-id me --callback-port=8080 s https://h/mcp --trust", "s", &entry(me));
    let secret = json!({ "clientId": "me", "clientSecret": "${MCP_CLIENT_SECRET}" });
    check("add s --client-id me --client-secret https://h/mcp", "s", &entry(secret));
    check("add s --url https://h/mcp --oauth-client-id me", "s", &entry(json!({ "clientId": "me" })));
    let given = json!({ "clientId": "me", "clientSecret": "${KEY}" });
    check("add --oauth-client-id me --oauth-client-secret '${KEY}' s https://h/mcp", "s", &entry(given));
    let (_, notes) =
        addition("add s https://h/mcp --client-secret --client-id me --trust --oauth-resource https://h")
            .unwrap();
    assert!(notes[0].starts_with("--trust has no effect"), "{notes:?}");
    assert!(notes[1].starts_with("--oauth-resource has no effect"), "{notes:?}");
    assert!(notes[2].contains("MCP_CLIENT_SECRET"), "{notes:?}");
}

#[test]
fn lines_for_codex_mcp_add_work() {
    check("add ctx -- npx -y @up/ctx", "ctx", &program("npx -y @up/ctx"));
    check("add ctx npx -y @up/ctx", "ctx", &program("npx -y @up/ctx"));
    let keyed = with(program("npx -y ctx"), "env", json!({ "K": "1", "L": "2" }));
    check("add ctx --env K=1 --env L=2 -- npx -y ctx", "ctx", &keyed);
    check("add --env K=1 --env L=2 ctx -- npx -y ctx", "ctx", &keyed);
    check("add notion --url https://h/mcp", "notion", &json!({ "url": "https://h/mcp" }));
    check(
        "add disk --url http://127.0.0.1:5/mcp --oauth-client-registration dcr",
        "disk",
        &json!({ "url": "http://127.0.0.1:5/mcp" }),
    );
    check("add --url https://h/mcp notion", "notion", &json!({ "url": "https://h/mcp" }));
    let token = json!({ "url": "https://h/mcp", "headers": { "Authorization": "Bearer ${TOK}" } });
    check("add n --url https://h/mcp --bearer-token-env-var TOK", "n", &token);
}

#[test]
fn lines_for_gemini_mcp_add_work() {
    check("add -s user devtools npx devtools@latest", "devtools", &program("npx devtools@latest"));
    check("add total -s user python -m total.mcp_server", "total", &program("python -m total.mcp_server"));
    check("add -t stdio -s user svelte npx -y @sv/mcp", "svelte", &program("npx -y @sv/mcp"));
    check("add mail -- npx @g/server-mail", "mail", &program("npx @g/server-mail"));
    check("add --scope project telex telex serve", "telex", &program("telex serve"));
    check(
        "add stock 'uv run python -m src.mcp' --trust -s project",
        "stock",
        &program("uv run python -m src.mcp"),
    );
    check("add fs npx -y @mcp/fs /data", "fs", &program("npx -y @mcp/fs /data"));
    check("add py python server.py -- --port 8080 -e x", "py", &program("python server.py --port 8080 -e x"));
    let keyed = with(program("npx -y a"), "env", json!({ "K": "1" }));
    check("add -e K=1 a npx -y a", "a", &keyed);
    check("add a npx -y a --env K=1", "a", &keyed);
    // Gemini CLI itself takes this `-e` for its own option, and loses the variable.
    check("add a docker run -i --rm -e TOKEN img", "a", &program("docker run -i --rm -e TOKEN img"));
    check(
        "add a node x.js --config c.json --json -v --url u",
        "a",
        &program("node x.js --config c.json --json -v --url u"),
    );
    let tools = json!({ "allow": ["a", "b", "c"], "deny": ["d"], "timeout": "5s" });
    let entry = with(with(program("x"), "plugbay", tools), "description", json!("d e"));
    check("add a x --timeout 5000 --description 'd e' --include-tools a,b c --exclude-tools d", "a", &entry);
    check("add --include-tools a,b,c --exclude-tools d --timeout 5s --description 'd e' a x", "a", &entry);
}

#[test]
fn a_line_behind_mcp_and_global_options_is_the_same() {
    check("mcp add a -- x -y", "a", &program("x -y"));
    check("--config f -v add -e A=1 a -- x", "a", &with(program("x"), "env", json!({ "A": "1" })));
    let untouched = words("plugbay remove add");
    assert_eq!(canonical(Program::command, untouched.clone()), untouched);
    assert_eq!(canonical(Program::command, words("plugbay mcp remove a")), words("plugbay remove a"));
    assert_eq!(canonical(Program::command, words("plugbay mcp")), words("plugbay mcp"));
}

#[test]
fn a_line_that_makes_no_sense_is_rejected_with_its_remedy() {
    let cases = [
        ("add", "required arguments were not provided"),
        ("add a --nonsense x", "unexpected argument '--nonsense'"),
        ("add a -e novalue -- x", "write it as KEY=VALUE"),
        ("add a python s.py -e dev", "an option for the program must stand behind `--`"),
        ("add a -t carrier-pigeon x", "invalid value 'carrier-pigeon'"),
        ("add a https://h/mcp more", "takes no arguments"),
        ("add a --url https://h/mcp -- x", "either a URL or a command"),
        ("add 'my server' x", "the server name \"my server\" contains ' '"),
        ("add a -s galaxy x", "invalid value 'galaxy'"),
        ("add a -e", "a value is required"),
    ];
    for (line, reason) in cases {
        let error = addition(line).expect_err(line);
        assert!(error.contains(reason), "{line}\n{error}");
    }
    assert!(!addition("add a -e K=1").unwrap().0.has_launch(), "only an existing entry can take it");
}

#[test]
fn pasted_json_gives_its_servers() {
    let names = |text: &str, name: Option<&str>| {
        let found = snippet::read(text, name).map_err(|error| error.message)?;
        Ok::<_, String>(found.iter().map(|server| server.name.to_string()).collect::<Vec<_>>())
    };
    let one = r#"{ "command": "x", "args": ["-y"] }"#;
    let two = r#"{ "mcpServers": { "a": { "command": "x" }, "b": { "url": "https://h" } } }"#;
    let cases = [
        (one, Some("n"), vec!["n"]),
        (two, None, vec!["a", "b"]),
        (two, Some("B"), vec!["b"]),
        (r#"{ "mcpServers": { "a": { "command": "x" } } }"#, Some("n"), vec!["n"]),
        (r#""mcpServers": { "a": { "command": "x" } }"#, None, vec!["a"]),
        (r#""a": { "command": "x" }, // mine"#, None, vec!["a"]),
        (r#"{ "inputs": [], "servers": { "a": { "type": "stdio", "command": "x" } } }"#, None, vec!["a"]),
        (r#"{ "mcp": { "servers": { "a": { "command": "x" } } } }"#, None, vec!["a"]),
        (r#"{ "mcp": { "a": { "type": "local", "command": ["x"] } } }"#, None, vec!["a"]),
        (r#"{ "context_servers": { "a": { "command": "x" } } }"#, None, vec!["a"]),
        (r#"{ "name": "a", "type": "http", "url": "https://h" }"#, None, vec!["a"]),
        (r#"{ "mcp": { "command": "x" } }"#, None, vec!["mcp"]),
    ];
    for (text, name, expected) in cases {
        assert_eq!(
            names(text, name).as_deref(),
            Ok(&*expected.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "{text}"
        );
    }
    for (text, name, reason) in [
        (one, None, "one server without a name"),
        (two, Some("c"), "has no server \"c\""),
        ("{ nonsense", None, "this is not JSON"),
        ("[]", None, "contains no server"),
        ("{}", None, "contains no server"),
        (r#"{ "a": 1 }"#, None, "contains no server"),
        (r#"{ "a b": { "command": "x" } }"#, None, "the server name \"a b\""),
    ] {
        let error = names(text, name).expect_err(text);
        assert!(error.contains(reason), "{text}\n{error}");
    }
}

#[test]
fn pasted_json_keeps_the_order_of_its_keys_and_the_digits_of_its_numbers() {
    let found =
        snippet::read(r#"{ "command": "x", "timeout": 1.50, "args": ["b"], "alwaysAllow": [] }"#, Some("n"));
    let text = jsonc::set("{}", &["n"], found.unwrap()[0].value()).unwrap();
    let places = ["command", "timeout", "1.50", "args", "alwaysAllow"].map(|part| text.find(part).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn a_name_that_cannot_be_used_comes_with_a_suggestion() {
    for (name, near) in [("io.github/fetch", "io-github-fetch"), ("my server", "my-server"), ("a__b", "a_b")]
    {
        let error = addition::server_name(name).unwrap_err();
        let hint = format!("{:?}", error.details);
        assert!(hint.contains(near), "{hint}");
    }
}
