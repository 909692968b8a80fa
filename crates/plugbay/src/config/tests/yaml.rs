//! Files in YAML: the same keys, places and remedies as in JSONC.

use std::path::Path;

use super::{Place, TOKEN, line, load};
use crate::config::{EditError, Editable};

/// The aggregator's file in the client-side architecture.
const SEED: &str = r#"# Server-side configuration - client doesn't need to know these details
servers:
  web-search:
    command: "/usr/bin/web-search-server"
    env:
      API_KEY: "${WEB_SEARCH_API_KEY}"

  memory:
    command: "/usr/bin/memory-server"
    storage: "/data/memory"

  database:
    url: "postgresql://db:5432/mcp"
"#;

#[track_caller]
fn check(text: &str, expected: &str) {
    let place = Place::new();
    place.write("project/c.yaml", text);
    assert_eq!(place.summary(&place.load(Some("c.yaml"))), expected.trim());
}

#[test]
fn a_yaml_file_of_an_aggregator_is_used_as_it_is() {
    let place = Place::new();
    place.write("project/servers.yml", SEED);
    let env = |name: &str| (name == "WEB_SEARCH_API_KEY").then(|| TOKEN.to_owned());
    let settings = load(Some(Path::new("servers.yml")), &place.paths(), &env);
    let remedy = "`url` is for MCP servers: start one for this service with `command`, and give it the address in `env` or `args`";
    let expected = format!(
        "database failed: not the address of an HTTP server (project/servers.yml:13:10); {remedy}\n\
         memory: /usr/bin/memory-server\n\
         web-search: /usr/bin/web-search-server API_KEY=<token>\n\
         warning 10:5: unknown key `storage`; it has no effect; remove it\n\
         error 13:10: not the address of an HTTP server; {remedy}"
    );
    assert_eq!(place.summary(&settings), expected);
}

#[test]
fn every_key_works_in_yaml_and_numbers_may_be_texts() {
    let text = "mode: search\nlistWait: 2s\nlimits: { message: 1MiB }\nservers:\n  a: &a\n    command: [run, 8080]\n    env: { PORT: 8080, ON: true }\n    plugbay: { allow: ['get_*'], prefix: false, timeout: 30 }\n  b:\n    <<: *a\n    args:\n      - -v\n";
    let place = Place::new();
    place.write("project/c.yaml", text);
    let settings = place.load(Some("c.yaml"));
    assert_eq!(place.summary(&settings), "a: run 8080 ON=true PORT=8080\nb: run 8080 -v ON=true PORT=8080");
    assert_eq!((settings.limits.message, settings.list_wait.as_secs()), (1 << 20, 2));
    assert!(settings.servers.iter().all(|server| server.exposure.bare));
}

#[test]
fn a_problem_in_yaml_may_be_at_any_character() {
    let problem = "error 2:2: did not find expected <document start>; the file is YAML, as its name says";
    check("%a b\n ä\n", problem);
}

#[test]
fn problems_in_yaml_name_their_line_and_a_remedy() {
    check(
        "servers:\n  a:\n    comand: x\n",
        "a failed: server `a` has no `command` (project/c.yaml:2:3); name the program to start: \"command\": \"npx\"\nerror 2:3: server `a` has no `command`; name the program to start: \"command\": \"npx\"\nwarning 3:5: unknown key `comand`; did you mean `command`?",
    );
    check("", "error 1:1: the file is empty; a start: `servers: {}`");
    check("- a\n", "error 1:1: expected an object, found a list; write an object here, or remove the key");
    check(
        "a: 1\n---\nb: 2\n",
        "error 2:1: the file has several documents; keep one of them, without `---` in between",
    );
}

#[test]
fn a_broken_yaml_file_shows_no_secret() {
    let place = Place::new();
    place.write("project/c.yaml", "servers:\n  a:\n    env: { KEY: \"hunter2\n    command: x\n");
    let settings = place.load(Some("c.yaml"));
    assert!(settings.unreadable);
    let shown: Vec<String> =
        settings.diagnostics.iter().map(|problem| format!("{problem}{}", line(problem))).collect();
    let shown = shown.concat();
    assert!(!shown.contains("hunter2") && shown.contains("YAML"), "{shown}");
}

#[test]
fn a_yaml_file_is_never_edited() {
    let place = Place::new();
    place.write("project/c.yaml", SEED);
    let edited = Editable::explicit(&place.path("project/c.yaml"), &place.paths());
    assert!(matches!(edited, Err(EditError::Yaml(_))));
}
