//! Files that are found by a pattern, and Switchboard's own layout.

use std::{fs, time::Duration};

use plugbay_core::exposure::{Mode, Suite};

use super::{Place, Settings};
use crate::config::ServerSettings;

const MEMORY: &str = r#"{
  "name": "memory",
  "description": "memory MCP",
  "switchboardDescription": "Remembers things",
  "command": { "cmd": "npx", "args": ["-y", "memory-server"], "env": { "KEY": "${TOK}" } }
}"#;

const HELP: &str = "read it, and if you trust it, run `plugbay approve`";

#[track_caller]
fn server<'a>(settings: &'a Settings, name: &str) -> &'a ServerSettings {
    settings.servers.iter().find(|server| server.name.as_str() == name).unwrap()
}

fn suite(settings: &Settings, name: &str) -> Suite {
    server(settings, name).exposure.suite.clone()
}

/// A place with `config` in `switchboard.config.json`, and such a file in each of these folders.
fn switchboard(config: &str, servers: &[(&str, &str)]) -> Place {
    let place = Place::new();
    place.write("project/switchboard.config.json", config);
    for (folder, file) in servers {
        place.write(&format!("project/.switchboard/mcps/{folder}/.mcp.json"), file);
    }
    place
}

#[test]
fn files_of_both_forms_are_found_by_discover_globs() {
    let place = Place::new();
    place.write("project/servers/memory/.mcp.json", MEMORY);
    place.write(
        "project/servers/hosts/.mcp.json",
        r#"{"mcpServers": {"one": {"command": "one"}, "two": {"command": "two", "cwd": "sub"}}}"#,
    );
    place.write("home/mine/.mcp.json", r#"{"name": "mine", "command": {"cmd": "mine"}}"#);
    place.write("project/servers/old/.mcp.json", r#"{"name": "old", "command": {"cmd": "old"}}"#);
    place.write(
        "project/c",
        r#"{"discoverGlobs": ["servers/*/.mcp.json", "~/mine/.mcp.json", "servers/**/.mcp.json", "!servers/old/*"],
            "mcpServers": {"one": {"command": "stronger"}}}"#,
    );
    let settings = place.load(Some("c"));
    assert_eq!(
        place.summary(&settings),
        "memory: npx -y memory-server KEY=<token> in project/servers/memory
mine: mine in home/mine
one: stronger
two: two in project/servers/hosts/sub"
    );
    assert_eq!(settings.mode, None, "only Switchboard's own file has a mode");
}

#[test]
fn an_entry_without_a_command_adds_settings_to_what_is_found() {
    let place = Place::new();
    let found = r#"{"mcpServers": {"a": {"command": "a", "excludeTools": ["x"]}, "b": {"command": "b"}}}"#;
    place.write("project/servers/.mcp.json", found);
    place.write(
        "project/c",
        r#"{"discoverGlobs": ["servers/.mcp.json"], "mcpServers": {
            "A": {"plugbay": {"deny": ["y"], "mode": "suite"}}, "b": {"disabled": true}, "c": {"plugbay": {}}
        }}"#,
    );
    let settings = place.load(Some("c"));
    let a = &server(&settings, "a").exposure;
    assert_eq!(a.mode, Some(Mode::Suite));
    assert_eq!(["x", "y", "z"].map(|tool| a.policy.may(tool)), [false, false, true]);
    let no_command = "server `c` has no `command`";
    assert_eq!(
        place.summary(&settings),
        format!(
            "a: a in project/servers
c failed: {no_command} (project/c:2:90); name the program to start: \"command\": \"npx\"
b disabled
error 2:90: {no_command}; name the program to start: \"command\": \"npx\""
        )
    );
}

#[test]
fn a_discovered_file_that_contains_plugbay_does_not_start_it() {
    let place = Place::new();
    place.write(
        "project/.mcp.json",
        r#"{"mcpServers": {
            "plugbay": {"command": "/usr/bin/plugbay", "args": ["--config", "c", "serve"]},
            "npx": {"command": ["npx", "plugbay", "serve"]},
            "sample": {"command": "plugbay", "args": ["__sample", "calc"]},
            "serve": {"command": "serve", "args": ["plugbay"]}
        }}"#,
    );
    place.write("project/c", r#"{"discoverGlobs": [".mcp.json"]}"#);
    assert_eq!(
        place.summary(&place.load(Some("c"))),
        "sample: plugbay __sample calc in project\nserve: serve plugbay in project"
    );
}

#[test]
fn a_broken_discovered_file_costs_only_its_own_servers() {
    let place = switchboard(
        "{}",
        &[
            ("broken", "{ \"name\": \"broken\",\n \"command\" 7 }"),
            ("empty", "{}"),
            ("launch", r#"{"name": "launch", "command": {"cmd": 7}}"#),
            ("lost", r#"{"name": "lost", "command": {"args": []}}"#),
            ("memory", MEMORY),
            ("odd", r#"{"name": "My Server", "command": {"cmd": "odd"}}"#),
            ("twin", r#"{"name": "Memory", "command": {"cmd": "twin"}}"#),
            ("unnamed", r#"{"command": {"cmd": "unnamed"}}"#),
            ("unset", r#"{"name": "unset", "command": {"cmd": "unset", "args": ["${NOT_SET}"]}}"#),
            ("usual", r#"{"name": "usual"}"#),
        ],
    );
    let settings = place.load(Some("switchboard.config.json"));
    let at = "project/.switchboard/mcps";
    let syntax = "expected colon after the string or word in object property";
    let json = "the file is JSON, with comments and trailing commas allowed";
    let write = r#"write "name" and "command": { "cmd": …, "args": […] }, or "mcpServers""#;
    let name = "server name `My Server` contains ' '; use letters, digits, '-' and single '_'";
    let rename = "rename it, for example to `My-Server`";
    let unset = "the variable `NOT_SET` is not set";
    let set = "set it where plugbay is started (by a host: in the host's `env` for plugbay), or give a default: ${NOT_SET:-…}";
    assert_eq!(
        place.summary(&settings),
        format!(
            "My-Server failed: {name} ({at}/odd/.mcp.json:1:10); {rename}
broken failed: {syntax} ({at}/broken/.mcp.json:2:12); {json}
empty failed: this file describes no server ({at}/empty/.mcp.json:1:1); {write}
launch failed: `cmd`: expected a string, found a number ({at}/launch/.mcp.json:1:39); put the value in quotes
lost failed: `command` names no program ({at}/lost/.mcp.json:1:29); name it: \"cmd\": \"npx\"
memory: npx -y memory-server KEY=<token> in {at}/memory
unnamed: unnamed in {at}/unnamed
unset failed: {unset} ({at}/unset/.mcp.json:1:57); {set}
usual: node dist/index.js in {at}/usual
error 2:12: {syntax}; {json}
error 1:1: this file describes no server; {write}
error 1:39: `cmd`: expected a string, found a number; put the value in quotes
error 1:29: `command` names no program; name it: \"cmd\": \"npx\"
error 1:10: {name}; {rename}
error 1:10: there is another server `Memory` in {at}/memory/.mcp.json; plugbay ignores this one; rename one of them
error 1:57: {unset}; {set}"
        )
    );
    assert!(!settings.unreadable, "the other servers are not to be left as they were");
}

#[test]
fn a_discover_glob_without_a_match_is_reported() {
    let place = Place::new();
    place.write("project/c", r#"{"discoverGlobs": ["x/*/.mcp.json", "**", "[", 7, "!y"]}"#);
    let help = r#"write a path with `*` for any characters: "mcps/*/.mcp.json""#;
    assert_eq!(
        place.summary(&place.load(Some("c"))),
        format!(
            "warning 1:20: no file matches this pattern; it is relative to the folder of this file
error 1:37: `discoverGlobs`: not a valid pattern: it ends with `**`, which stands for folders; {help}
error 1:43: `discoverGlobs`: not a valid pattern: unclosed character class; missing ']'; {help}
error 1:48: `discoverGlobs`: expected a string, found a number; put the value in quotes"
        )
    );
}

#[test]
fn switchboards_own_file_means_what_it_meant() {
    let place = switchboard(
        r#"{
            "discoverGlobs": [".switchboard/mcps/*/.mcp.json"],
            "suites": {
                "memory": { "suiteName": "brain", "description": "second choice", "summaryMaxChars": 40,
                            "expose": { "allow": ["get_*"], "deny": ["get_all"] } },
                "plain": { "description": "Said in suites" },
                "nobody": {}
            },
            "timeouts": { "childSpawnMs": 500, "rpcMs": 1500 },
            "introspection": { "mode": "full", "summaryMaxChars": 90 }
        }"#,
        &[
            ("memory", MEMORY),
            (
                "plain",
                r#"{"name": "plain", "command": {"cmd": "plain"},
                          "switchboardDescription": "describe what plain does in one line for the LLM"}"#,
            ),
        ],
    );
    let settings = place.load(Some("switchboard.config.json"));
    assert_eq!(
        place.summary(&settings),
        "memory: npx -y memory-server KEY=<token> in project/.switchboard/mcps/memory
plain: plain in project/.switchboard/mcps/plain
warning 7:27: no server `nobody` was found; check the name, or remove it"
    );
    assert_eq!(settings.mode, Some(Mode::Suite));
    let brain = Suite {
        name: Some("brain".into()),
        description: Some("Remembers things".into()),
        summary: Some(40),
        full: true,
    };
    assert_eq!(suite(&settings, "memory"), brain);
    let plain =
        Suite { name: None, description: Some("Said in suites".into()), summary: Some(90), full: true };
    assert_eq!(suite(&settings, "plain"), plain);
    let policy = &server(&settings, "memory").exposure.policy;
    assert_eq!(["get_one", "get_all", "set"].map(|tool| policy.may(tool)), [true, false, false]);
    let timeouts = server(&settings, "memory").spec.as_ref().unwrap().timeouts;
    assert_eq!((timeouts.start, timeouts.call), (Duration::from_secs(2), Duration::from_millis(1500)));
}

#[test]
fn the_switchboard_layout_is_found_by_default() {
    let place = switchboard("{}", &[("memory", MEMORY)]);
    place.write(
        "project/mcp-descriptions.json",
        r#"{"mcps": {"memory": {"switchboard": "weaker", "claude": "Remember all"}, "other": {}}}"#,
    );
    let settings = place.load(Some("switchboard.config.json"));
    assert_eq!(settings.diagnostics, []);
    assert_eq!(suite(&settings, "memory").description.as_deref(), Some("Remembers things"));
    assert_eq!(server(&settings, "memory").exposure.instructions.as_deref(), Some("Remember all"));

    place.write("project/.switchboard/mcps/memory/CLAUDE.md", "# Role\nRemember less\n");
    place.write(
        "project/.switchboard/mcps/memory/.mcp.json",
        r#"{"name": "memory", "command": {"cmd": "m"}}"#,
    );
    let settings = place.load(Some("switchboard.config.json"));
    assert_eq!(suite(&settings, "memory").description.as_deref(), Some("weaker"));
    assert_eq!(server(&settings, "memory").exposure.instructions.as_deref(), Some("# Role\nRemember less"));
}

#[test]
fn the_original_server_runs_instead_of_its_wrapper_unless_in_doubt() {
    let wrapper = r#"{"name": "memory", "switchboardDescription": "Takes sentences",
                      "command": {"cmd": "node", "args": ["memory-claude-wrapper.mjs"]}}"#;
    let place = switchboard("{}", &[("memory", wrapper)]);
    let folder = "project/.switchboard/mcps/memory";
    let as_it_says = format!("memory: node memory-claude-wrapper.mjs in {folder}");
    let load = || place.load(Some("switchboard.config.json"));
    assert_eq!(place.summary(&load()), as_it_says);
    place.write(&format!("{folder}/original/.mcp.json"), "{");
    assert!(place.summary(&load()).starts_with(&as_it_says));

    place.write(&format!("{folder}/original/.mcp.json"), MEMORY.replace("\"memory\"", "\"other\""));
    let settings = load();
    let original = format!("memory: npx -y memory-server KEY=<token> in {folder}/original");
    assert!(
        place.summary(&settings).starts_with(&format!("{original}\nwarning: natural_language has no model"))
    );
    assert_eq!(suite(&settings, "memory").description.as_deref(), Some("Takes sentences"));

    place.write(&format!("{folder}/.mcp.json"), MEMORY);
    assert!(place.summary(&load()).ends_with(&format!("in {folder}")), "no wrapper, no original");
}

#[test]
fn approval_covers_every_file_that_a_project_file_includes() {
    let place = switchboard("{}", &[("a", r#"{"name": "a", "command": {"cmd": "a"}}"#), ("memory", MEMORY)]);
    place.write("project/.switchboard/mcps/a/CLAUDE.md", "Be kind.");
    let missing = "this project file is not approved; plugbay ignores it";
    assert_eq!(place.summary(&place.load(None)), format!("warning: {missing}; {HELP}"));

    place.approve("switchboard.config.json");
    let a = "a: a in project/.switchboard/mcps/a";
    let memory = "memory: npx -y memory-server KEY=<token> in project/.switchboard/mcps/memory";
    assert_eq!(place.summary(&place.load(None)), format!("{a}\n{memory}"));

    // A server is added, one changes, and so do the descriptions for models.
    place.write("project/.switchboard/mcps/new/.mcp.json", r#"{"name": "new", "command": {"cmd": "new"}}"#);
    place.write("project/.switchboard/mcps/memory/.mcp.json", MEMORY.replace("npx", "rm"));
    place.write("project/.switchboard/mcps/a/CLAUDE.md", "Be cruel.");
    let settings = place.load(None);
    let changed = format!("warning: this file has changed since it was approved; plugbay ignores it; {HELP}");
    let new = format!("warning: this file is not approved; plugbay ignores it; {HELP}");
    assert_eq!(place.summary(&settings), format!("{a}\n{changed}\n{changed}\n{new}"));
    assert_eq!(server(&settings, "a").exposure.instructions, None);
    let files = settings.diagnostics.iter().map(|problem| place.plain(&problem.file.display().to_string()));
    let files: Vec<String> = files.map(|file| file.replace("project/.switchboard/mcps/", "")).collect();
    assert_eq!(files, ["a/CLAUDE.md", "memory/.mcp.json", "new/.mcp.json"]);

    place.approve("switchboard.config.json");
    assert_eq!(place.load(None).servers.len(), 3);
    assert_eq!(place.load(None).diagnostics, []);
}

#[test]
fn a_wrapped_server_needs_approval_of_what_is_behind_the_wrapper() {
    let wrapper =
        r#"{"name": "memory", "command": {"cmd": "node", "args": ["./memory-claude-wrapper.mjs"]}}"#;
    let place = switchboard("{}", &[("memory", wrapper)]);
    let original = "project/.switchboard/mcps/memory/original/.mcp.json";
    place.write(original, MEMORY);
    place.approve("switchboard.config.json");
    assert_eq!(place.load(None).servers.len(), 1);
    place.write(original, MEMORY.replace("npx", "rm"));
    let changed = "this file has changed since it was approved; plugbay ignores it";
    assert_eq!(place.summary(&place.load(None)), format!("warning: {changed}; {HELP}"));
    place.write(original, " ".repeat(1 << 20) + MEMORY);
    assert!(place.load(None).servers.is_empty(), "what is too large for us may not be for the wrapper");
}

#[test]
fn every_folder_of_a_discover_glob_is_watched() {
    let place = switchboard("{}", &[("memory", MEMORY)]);
    fs::create_dir_all(place.path("project/.switchboard/mcps/later")).unwrap();
    let plain = |paths: &[std::path::PathBuf]| -> Vec<String> {
        paths.iter().map(|path| place.plain(&path.display().to_string())).collect()
    };
    let settings = place.load(Some("switchboard.config.json"));
    let expected = [
        "project/switchboard.config.json",
        "project/.switchboard/mcps/later/.mcp.json",
        "project/mcp-descriptions.json",
        "project/.switchboard/mcps/memory/.mcp.json",
        "project/.switchboard/mcps/memory/CLAUDE.md",
    ];
    assert_eq!(plain(&settings.sources), expected);
    assert_eq!(plain(&settings.folders), ["project/.switchboard/mcps"]);

    fs::remove_dir_all(place.path("project/.switchboard")).unwrap();
    let settings = place.load(Some("switchboard.config.json"));
    let expected =
        ["project/switchboard.config.json", "project/.switchboard", "project/mcp-descriptions.json"];
    assert_eq!(plain(&settings.sources), expected);
}
