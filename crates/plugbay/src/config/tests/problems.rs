//! Diagnostics of bad entries, which must not affect anything else.

use super::{Place, TOKEN, check, check_entry};

#[test]
fn wrong_configuration_values_are_reported_with_place_and_remedy() {
    let cases = [
        ("7", "2:1", "`s`: expected an object, found a number; write an object here, or remove the key"),
        (
            r#"{"command": 7}"#,
            "2:13",
            "`command`: expected a string, found a number; put the value in quotes",
        ),
        (
            r#"{"command": []}"#,
            "2:13",
            "`command`: names no program; write the program to start, such as \"npx\"",
        ),
        (
            r#"{"args": "x"}"#,
            "2:10",
            "`args`: expected a list, found a string; put the value in brackets: [ … ]",
        ),
        (
            r#"{"args": ["x", 1]}"#,
            "2:16",
            "`args`: expected a string, found a number; put the value in quotes",
        ),
        (
            r#"{"env": {"A": true}}"#,
            "2:15",
            "`A`: expected a string, found a boolean; put the value in quotes",
        ),
        (
            r#"{"disabled": "yes"}"#,
            "2:14",
            "`disabled`: expected true or false, found a string; remove the quotes",
        ),
        (r#"{"type": "stdoi"}"#, "2:10", "`type`: unknown value `stdoi`; did you mean `stdio`?"),
        (
            r#"{"plugbay": {"mode": "lists"}}"#,
            "2:22",
            "`mode`: unknown value `lists`; available: `auto`, `all`, `search`, `activate`, `suite`, `code`",
        ),
        (
            r#"{"plugbay": {"timeout": "soon"}}"#,
            "2:25",
            "`timeout`: `soon` is not a duration; write it like \"500ms\", \"30s\", \"5m\" or \"1h\"",
        ),
        (
            r#"{"plugbay": {"timeout": -1}}"#,
            "2:25",
            "`timeout`: `-1` is not a duration; write it like \"500ms\", \"30s\", \"5m\" or \"1h\"",
        ),
        (
            r#"{"plugbay": {"start": 1e300}}"#,
            "2:23",
            "`start`: `1e300` is not a duration; write it like \"500ms\", \"30s\", \"5m\" or \"1h\"",
        ),
        (
            r#"{"plugbay": {"start": "9000h"}}"#,
            "2:23",
            "`start`: longer than a year; write it like \"500ms\", \"30s\", \"5m\" or \"1h\"",
        ),
        (r#"{"plugbay": {"start": 0}}"#, "2:23", "`start`: must be longer than zero; write it like \"30s\""),
        (
            r#"{"plugbay": {"allow": ["ok", "[a"]}}"#,
            "2:30",
            "`allow`: not a valid pattern: unclosed character class; missing ']'; \
             write tool names, with `*` for any characters: \"get_*\"",
        ),
        (
            r#"{"plugbay": {"rename": {"a": "x", "b": "x"}}}"#,
            "2:40",
            "`rename`: two tools get this name; give each a name of its own",
        ),
        (
            r#"{"plugbay": {"rename": {"a": "x y"}}}"#,
            "2:30",
            "`rename`: not a name that hosts accept; use letters, digits, `_`, `-` and `.`",
        ),
    ];
    for (entry, at, problem) in cases {
        let (message, help) = problem.rsplit_once("; ").unwrap();
        let reason = format!("s failed: {message} (project/c:{at}); {help}");
        check_entry(entry, &format!("{reason}\nerror {at}: {problem}"));
    }
}

#[test]
fn one_broken_configuration_value_costs_only_itself() {
    let text = r#"{
  "mode": "lists", "listWait": [], "limits": { "message": "lots", "nameLength": 7 }, "defaults": { "idle": {} },
  "mcpServers": { "bad": { "command": 1, "args": 2 }, "good": { "command": "a" } }
}"#;
    let wrong = "expected a duration such as \"30s\", found";
    check(
        text,
        &format!(
            "bad failed: `command`: expected a string, found a number (project/c:3:39); put the value in quotes
good: a
error 2:11: `mode`: unknown value `lists`; available: `auto`, `all`, `search`, `activate`, `suite`, `code`
error 2:32: `listWait`: {wrong} a list; write a duration such as \"30s\" here, or remove the key
error 2:59: `message`: `lots` is not a size; write it like \"512KiB\" or \"16MiB\"
error 2:81: `nameLength`: `7` is not a whole number in range; write a number from 48 to 128
error 2:108: `idle`: {wrong} an object; write a duration such as \"30s\" here, or remove the key
error 3:39: `command`: expected a string, found a number; put the value in quotes
error 3:50: `args`: expected a list, found a number; put the value in brackets: [ … ]"
        ),
    );
}

#[test]
fn a_broken_filter_hides_everything_rather_than_nothing() {
    let message = "`deny`: expected a list, found a string";
    let help = "put the value in brackets: [ … ]";
    check(
        r#"{"defaults": {"deny": "delete_*"}, "mcpServers": {
            "a": {"command": "a"}, "b": {"command": "b", "plugbay": {"deny": []}} }}"#,
        &format!("a failed: {message} (project/c:1:23); {help}\nb: b\nerror 1:23: {message}; {help}"),
    );
}

#[test]
fn unknown_configuration_keys_are_reported_and_ignored() {
    let entry =
        r#"{"comand": "x", "command": "a", "colour": 1, "idle": "5m", "plugbay": {"Allow": [], "x": 1}}"#;
    check_entry(
        entry,
        "s: a
warning 2:2: unknown key `comand`; did you mean `command`?
warning 2:33: unknown key `colour`; it has no effect; remove it
warning 2:46: `idle` has no effect here; move it into the `plugbay` object
warning 2:72: unknown key `Allow`; did you mean `allow`?
warning 2:85: unknown key `x`; it has no effect; remove it",
    );
    check(
        r#"{"results": {}, "defaults": {"learn": 3}}"#,
        "warning 1:2: `results` has no effect here; move it into `defaults`, or into the `plugbay` object of a server
warning 1:30: `learn` has no effect here; move it to the top level of the file",
    );
    check(r#"{"mcpServer": {}}"#, "error 1:2: unknown key `mcpServer`; did you mean `mcpServers`?");
}

#[test]
fn a_configuration_problem_is_shown_like_a_compilers() {
    let place = Place::new();
    place.write("project/c", "{\n  \"mcpServers\": {\n    \"s\": { \"comand\": \"npx\" } // x\n  }\n}");
    let shown =
        place.load(Some("c")).diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n");
    let expected = "\
error: server `s` has no `command`
 --> project/c:3:5
  |
3 |     \"s\": { \"comand\": \"npx\" } // x
  |     ^^^
  = help: name the program to start: \"command\": \"npx\"

warning: unknown key `comand`
 --> project/c:3:12
  |
3 |     \"s\": { \"comand\": \"npx\" } // x
  |            ^^^^^^^^
  = help: did you mean `command`?";
    assert_eq!(place.plain(&shown), expected);
}

#[test]
fn server_names_are_checked() {
    let broken = "server name `My Server` contains ' '; use letters, digits, '-' and single '_'";
    let help = "rename it, for example to `My-Server`";
    check(
        r#"{"mcpServers": {"My Server": {"command": "a"}, "b": {"command": "b"}, "日本": {}}}"#,
        &format!(
            "My-Server failed: {broken} (project/c:1:17); {help}
b: b
error 1:17: {broken}; {help}
error 1:71: server name `日本` contains '日'; use letters, digits, '-' and single '_'; use letters, digits and `-`"
        ),
    );
    check(
        r#"{"mcpServers": {"a.b": {"command": "x"}, "a-b": {"command": "y"}}}"#,
        "a-b: y
error 1:17: server name `a.b` contains '.'; use letters, digits, '-' and single '_'; rename it, for example to `a-b`",
    );
    check(
        r#"{"mcpServers": {"a_b": {"command": "x"}, "a-b": {"command": "y"}}}"#,
        "a-b: y
a_b: x
warning 1:17: `a_b` and `a-b` differ only in separators; rename one of them: plugbay rejects a tool's name that could mean either",
    );
    check(
        r#"{"mcpServers": {"GitHub": {"command": "a"}, "github": {"command": "b"}}}"#,
        "GitHub: a\nerror 1:45: `github` and `GitHub` differ only in case; rename one of them",
    );
}

#[test]
fn environment_variables_are_expanded_everywhere_and_reported_by_name() {
    let entry = r#"{"command": "${X:-run}", "args": ["${env:TOK}", "$HOME"], "env": {"A": "b ${TOK}"}, "cwd": "/${Y:-y}"}"#;
    check_entry(entry, "s: run <token> $HOME A=b <token> in /y");
    let help = |name: &str| {
        format!(
            "set it where plugbay is started (by a host: in the host's `env` for plugbay), or give a default: ${{{name}:-…}}"
        )
    };
    check_entry(
        r#"{"command": "a", "args": ["--key=${KEY}"], "env": {"B": "${env:B}", "C": "${input:c}", "D": "${D"}}"#,
        &format!(
            "s failed: the variable `KEY` is not set (project/c:2:34); {0}
error 2:34: the variable `KEY` is not set; {0}
error 2:58: the variable `B` is not set; {1}
error 2:75: `${{input:c}}` cannot be expanded here; use an environment variable: ${{VAR}}
error 2:93: `${{` without `}}`; close the variable: ${{VAR}}",
            help("KEY"),
            help("B"),
        ),
    );
    check_entry(
        r#"{"command": "a", "args": ["x\u0000"], "env": {"A=B": "", "": ""}}"#,
        "s failed: contains a NUL character (project/c:2:27); remove it: programs cannot take it
error 2:27: contains a NUL character; remove it: programs cannot take it
error 2:54: `A=B` cannot be the name of a variable; use letters, digits and `_`
error 2:62: `` cannot be the name of a variable; use letters, digits and `_`",
    );
}

#[test]
fn secrets_stay_out_of_configuration_problems() {
    let place = Place::new();
    let entry = r#"{"command": "a", "colour": 1, "args": ["${TOK}", "${UNSET}"], "env": {"A": "literal-secret", "B": "${TOK}\u0000"}}"#;
    for text in [
        format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#),
        r#"{"mcpServers": {"s": {"env": {"A": "literal-secret"} "args": []}}}"#.into(),
        r#"{"mcpServers": {"s": {"env": {"A": "literal-secret, "args": []}}}"#.into(),
        "{\"mcpServers\": {\"s\": {\"env\": {\"A\": \"literal-secret\n}}}".into(),
    ] {
        place.write("project/c", &text);
        let settings = place.load(Some("c"));
        assert!(!settings.diagnostics.is_empty());
        let failures: Vec<_> =
            settings.servers.iter().map(|server| server.spec.clone().unwrap_err()).collect();
        let mut shown = format!("{:?} {failures:?}", settings.diagnostics);
        shown.extend(settings.diagnostics.iter().map(ToString::to_string));
        assert!(!shown.contains(TOKEN) && !shown.contains("literal-secret"), "{text}\n{shown}");
    }
}
