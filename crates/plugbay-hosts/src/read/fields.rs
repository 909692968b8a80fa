//! One entry of a host's file: the fields of all dialects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ProblemKind, login, tree::Tree, variables::Translator};
use crate::{
    entry::{Entry, Launch, Remote, RemoteKind},
    known::{Host, Phase, Unit},
};

/// The reason why an entry is not taken over.
type Rejection = (ProblemKind, String);

/// The server that a value describes.
pub(super) fn entry(name: &str, value: &Tree, host: Option<&Host>, file: &Tree) -> Result<Entry, Rejection> {
    let (Value::Object(fields), Value::Object(texts)) = (value.to_value(), value.to_texts()) else {
        return Err(broken("is not a table"));
    };
    if let Some(reason) = host_own(&fields) {
        return Err((ProblemKind::HostOwn, reason));
    }
    let names = Translator { host, inputs: inputs(file), notes: Vec::new() };
    let mut fields = Fields { values: &fields, texts: &texts, names };
    let mut entry = Entry::new(name, fields.launch()?);
    fields.settings(&mut entry)?;
    fields.times(&mut entry, host);
    entry.disabled |= is_switched_off(name, file);
    entry.notes = fields.names.notes;
    Ok(entry)
}

/// Whether a value can be a server's entry.
pub(super) fn looks_like_entry(value: &Tree) -> bool {
    let keys = COMMAND.iter().chain(&URL);
    value.members().is_some() && keys.into_iter().any(|key| value.get(key).is_some())
}

const COMMAND: [&str; 2] = ["command", "cmd"];
const URL: [&str; 4] = ["url", "serverUrl", "httpUrl", "uri"];

fn broken(reason: impl Into<String>) -> Rejection {
    (ProblemKind::Broken, reason.into())
}

/// The reason why only the host can run this entry.
fn host_own(fields: &Map<String, Value>) -> Option<String> {
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    match (text("type"), text("source")) {
        (Some(kind @ ("builtin" | "platform" | "frontend" | "inline_python")), _) => {
            Some(format!("is part of the host (`type: {kind}`)"))
        }
        (_, Some("extension")) => Some("comes from an extension of the host".to_owned()),
        _ => None,
    }
}

/// Whether the lists `mcp.allowed` and `mcp.excluded` of Gemini CLI and Qwen Code leave the server out.
fn is_switched_off(name: &str, file: &Tree) -> bool {
    let names = |key: &str| match file.get("mcp")?.get(key)? {
        Tree::Array(names) => Some(names.contains(&Tree::Leaf(name.into()))),
        _ => None,
    };
    names("excluded") == Some(true) || names("allowed") == Some(false)
}

/// The `inputs` of VS Code's file: id and description.
fn inputs(file: &Tree) -> Vec<(String, String)> {
    let Some(Tree::Array(inputs)) = file.get("inputs") else { return Vec::new() };
    let text = |input: &Tree, key: &str| match input.get(key) {
        Some(Tree::Leaf(Value::String(text))) => Some(text.clone()),
        _ => None,
    };
    let inputs = inputs.iter().filter_map(|input| Some((text(input, "id")?, text(input, "description"))));
    inputs.map(|(id, description)| (id, description.unwrap_or_default())).collect()
}

struct Fields<'a> {
    values: &'a Map<String, Value>,
    /// The same fields, with numbers and flags as the text in the file.
    texts: &'a Map<String, Value>,
    names: Translator<'a>,
}

impl Fields<'_> {
    fn launch(&mut self) -> Result<Launch, Rejection> {
        let command = self.first(&COMMAND);
        let url = self.first(&URL);
        match (command, url) {
            (Some((_, command)), None) => self.process(&command.clone()),
            (None, Some((key, url))) => self.remote(key, &url.clone()),
            (Some((key, _)), Some((other, _))) => {
                Err(broken(format!("has both `{key}` and `{other}`; keep one of them")))
            }
            (None, None) => Err(broken("has neither `command` nor `url`")),
        }
    }

    fn process(&mut self, command: &Value) -> Result<Launch, Rejection> {
        let mut line = match command {
            Value::String(program) => vec![self.names.translate(program)],
            // The form of older versions of Zed.
            Value::Object(command) => return self.nested(command),
            list => self.strings("command", list)?,
        };
        if line.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(broken("has an empty `command`"));
        }
        let command = line.remove(0);
        let mut args = line;
        args.extend(self.list(&["args"])?);
        let env = self.map(&["env", "environment", "envs"])?;
        let cwd = self.text(&["cwd", "workingDirectory"])?;
        Ok(Launch::Process { command, args, env, cwd })
    }

    /// `"command": { "path": …, "args": […], "env": {…} }`.
    fn nested(&mut self, command: &Map<String, Value>) -> Result<Launch, Rejection> {
        let mut fields = command.clone();
        let path = fields.remove("path").ok_or_else(|| broken("has a `command` without `path`"))?;
        let names =
            Translator { host: self.names.host, inputs: self.names.inputs.clone(), notes: Vec::new() };
        let mut nested = Fields { values: &fields, texts: &fields, names };
        let launch = match path {
            Value::String(_) => nested.process(&path)?,
            _ => return Err(broken("has a `command` whose `path` is not text")),
        };
        self.names.notes.extend(nested.names.notes);
        Ok(launch)
    }

    fn remote(&mut self, key: &str, url: &Value) -> Result<Launch, Rejection> {
        let url = url.as_str().ok_or_else(|| broken(format!("has a `{key}` that is not text")))?;
        let url = self.names.translate(url);
        let mut headers = self.map(&["headers", "http_headers"])?;
        for (header, variable) in self.map(&["env_http_headers"])? {
            headers.insert(header, format!("${{{variable}}}"));
        }
        if let Some(variable) = self.text(&["bearer_token_env_var"])? {
            headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}"));
        }
        let kind = match self.text(&["type", "transport"])?.as_deref() {
            Some("http" | "streamable-http" | "streamable_http" | "streamableHttp") => RemoteKind::Http,
            Some("sse") => RemoteKind::Sse,
            _ if key == "httpUrl" => RemoteKind::Http,
            _ => RemoteKind::Unsaid,
        };
        let login = login::members(self.values, &mut self.names);
        Ok(Launch::Remote(Remote { url, kind, headers, login }))
    }

    fn settings(&mut self, entry: &mut Entry) -> Result<(), Rejection> {
        let flag = |key: &str| self.values.get(key).and_then(Value::as_bool);
        entry.disabled = flag("disabled") == Some(true) || flag("enabled") == Some(false);
        entry.include = self.list(&["includeTools", "enabled_tools", "available_tools"])?;
        entry.exclude = self.list(&["excludeTools", "disabled_tools", "disabledTools"])?;
        if let Some(tools @ Value::Array(_)) = self.texts.get("tools") {
            let tools = self.strings("tools", &tools.clone())?;
            match tools.as_slice() {
                [] => entry.exclude.push("*".to_owned()),
                tools if tools.iter().any(|tool| tool == "*") => {}
                tools => entry.include.extend_from_slice(tools),
            }
        }
        entry.pass_env = self.pass_env()?;
        self.note_what_stays();
        Ok(())
    }

    /// Notes settings that belong to the host and do not move with the entry.
    fn note_what_stays(&mut self) {
        let is_set = |key: &&str| match self.values.get(*key) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        };
        let approvals = ["trust", "alwaysAllow", "autoApprove", "default_tools_approval_mode"];
        let mut approval = approvals.into_iter().find(is_set);
        if matches!(self.values.get("tools"), Some(Value::Object(tools)) if !tools.is_empty()) {
            approval = approval.or(Some("tools"));
        }
        if let Some(key) = approval {
            self.names.note(format!("the host's own approvals (`{key}`) do not move with the entry"));
        }
        if ["oauth", "auth", "authProviderType"].iter().any(is_set) {
            self.names.note(
                "the host's own login does not move with the entry: log in to this server once more".into(),
            );
        }
    }

    /// Codex's `env_vars` (names, or tables with a name) and Goose's `env_keys`.
    fn pass_env(&mut self) -> Result<Vec<String>, Rejection> {
        let Some((key, list)) = self.first(&["env_vars", "env_keys"]) else { return Ok(Vec::new()) };
        let Value::Array(items) = list else {
            return Err(broken(format!("has a `{key}` that is not a list")));
        };
        let name = |item: &Value| match item {
            Value::Object(fields) => fields.get("name").and_then(Value::as_str).map(str::to_owned),
            item => item.as_str().map(str::to_owned),
        };
        Ok(items.iter().filter_map(name).collect())
    }

    fn times(&mut self, entry: &mut Entry, host: Option<&Host>) {
        let number = |key: &str| self.values.get(key).and_then(Value::as_f64).filter(|number| *number > 0.0);
        entry.start_seconds = number("startup_timeout_sec")
            .or_else(|| number("startup_timeout_ms").map(|milliseconds| milliseconds / 1000.0))
            .map(|seconds| whole(seconds.ceil()));
        entry.call_milliseconds = number("tool_timeout_sec").map(|seconds| whole(seconds * 1000.0));
        let Some(value) = number("timeout") else { return };
        let Some(timeout) = host.and_then(|host| host.timeout) else {
            // As in plugbay's own file: a value too small for milliseconds means seconds.
            let milliseconds = if value < 1000.0 { value * 1000.0 } else { value };
            entry.call_milliseconds = entry.call_milliseconds.or(Some(whole(milliseconds)));
            return;
        };
        if timeout.default == Some(whole(value)) {
            return;
        }
        let milliseconds = if timeout.unit == Unit::S { value * 1000.0 } else { value };
        match timeout.of {
            Phase::Call => entry.call_milliseconds = Some(whole(milliseconds)),
            Phase::Start => entry.start_seconds = Some(whole((milliseconds / 1000.0).ceil())),
        }
    }

    /// The first of the keys that exists and is not null.
    fn first<'k>(&self, keys: &[&'k str]) -> Option<(&'k str, &Value)> {
        keys.iter().find_map(|key| Some((*key, self.texts.get(*key).filter(|value| !value.is_null())?)))
    }

    fn text(&mut self, keys: &[&str]) -> Result<Option<String>, Rejection> {
        match self.first(keys) {
            None => Ok(None),
            Some((_, Value::String(text))) => {
                let text = text.clone();
                Ok(Some(self.names.translate(&text)))
            }
            Some((key, _)) => Err(broken(format!("has a `{key}` that is not text"))),
        }
    }

    fn list(&mut self, keys: &[&str]) -> Result<Vec<String>, Rejection> {
        match self.first(keys) {
            None => Ok(Vec::new()),
            Some((key, list)) => {
                let list = list.clone();
                self.strings(key, &list)
            }
        }
    }

    fn strings(&mut self, key: &str, list: &Value) -> Result<Vec<String>, Rejection> {
        let items = list.as_array().ok_or_else(|| broken(format!("has a `{key}` that is not a list")))?;
        let texts = items.iter().map(|item| self.scalar(key, item));
        texts.collect()
    }

    fn map(&mut self, keys: &[&str]) -> Result<BTreeMap<String, String>, Rejection> {
        let Some((key, map)) = self.first(keys) else { return Ok(BTreeMap::new()) };
        let map =
            map.as_object().ok_or_else(|| broken(format!("has a `{key}` that is not a table")))?.clone();
        map.iter().map(|(name, value)| Ok((name.clone(), self.scalar(key, value)?))).collect()
    }

    /// A value as text: with a number or flag, the user meant its text.
    fn scalar(&mut self, key: &str, value: &Value) -> Result<String, Rejection> {
        match value {
            Value::String(text) => Ok(self.names.translate(text)),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(flag) => Ok(flag.to_string()),
            _ => Err(broken(format!("has a value in `{key}` that is not text"))),
        }
    }
}

/// A number in a file as a whole number; a host's file may contain `1e99`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> u64 {
    number.clamp(0.0, 1e15) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{known, read::read};

    /// The only entry of a file.
    fn only(host: &str, text: &str) -> Entry {
        let mut reading = read(known::by_id(host).unwrap(), text).unwrap();
        assert_eq!((reading.found.len(), reading.problems.len()), (1, 0), "{reading:?}");
        reading.found.remove(0).entry
    }

    fn headers(entry: &Entry) -> Vec<(&str, &str)> {
        let Launch::Remote(remote) = &entry.launch else { panic!("{entry:?}") };
        remote.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    #[test]
    fn codex_fields_of_an_entry_are_translated() {
        let entry = only(
            "codex",
            "[mcp_servers.x]\nurl = 'https://x'\nbearer_token_env_var = 'TOK'\nstartup_timeout_sec = 20.5\ntool_timeout_sec = 90\n\
             enabled = false\nenabled_tools = ['a']\ndisabled_tools = ['b']\nhttp_headers = { A = 'b' }\nenv_http_headers = { Key = 'KEY' }\n",
        );
        assert_eq!(headers(&entry), [("A", "b"), ("Authorization", "Bearer ${TOK}"), ("Key", "${KEY}")]);
        assert_eq!((entry.start_seconds, entry.call_milliseconds), (Some(21), Some(90_000)));
        assert!(entry.disabled);
        assert_eq!((entry.include, entry.exclude), (vec!["a".to_owned()], vec!["b".to_owned()]));
        let process = only(
            "codex",
            "[mcp_servers.x]\ncommand = 'c'\ncwd = '/w'\nenv_vars = ['A', { name = 'B', source = 'local' }]\nstartup_timeout_ms = 1500\n",
        );
        assert_eq!(process.pass_env, ["A", "B"]);
        assert_eq!(process.start_seconds, Some(2));
        assert!(matches!(process.launch, Launch::Process { cwd: Some(cwd), .. } if cwd == "/w"));
    }

    #[test]
    fn numbers_without_quotes_keep_their_text_in_an_entry() {
        let codex = "[mcp_servers.x]\ncommand = 'c'\nargs = [0x1F, true]\nenv = { V = 1.10, D = 2024-01-01 }\ntool_timeout_sec = 1.5\n";
        let goose = "extensions:\n  off:\n    cmd: c\n    args: [0x1F, true]\n    envs: {V: 1.10, D: 2024-01-01}\n    timeout: 1.5\n    enabled: true\n";
        for (host, text) in [("codex", codex), ("goose", goose)] {
            let entry = only(host, text);
            let Launch::Process { args, env, .. } = &entry.launch else { panic!("{entry:?}") };
            assert_eq!(args, &["0x1F", "true"], "{host}");
            assert_eq!((env["V"].as_str(), env["D"].as_str()), ("1.10", "2024-01-01"), "{host}");
            assert_eq!(entry.call_milliseconds, Some(1500), "{host}");
        }
        assert_eq!(only("goose", goose).name, "off");
    }

    #[test]
    fn gemini_fields_of_an_entry_are_translated() {
        let entry = only(
            "gemini-cli",
            r#"{"mcpServers":{"x":{"httpUrl":"https://x/$PART","timeout":1500,"includeTools":["a"],"excludeTools":["b(c)"],"trust":true}}}"#,
        );
        let Launch::Remote(remote) = &entry.launch else { panic!() };
        assert_eq!((remote.url.as_str(), remote.kind), ("https://x/${PART}", RemoteKind::Http));
        assert_eq!(entry.call_milliseconds, Some(1500));
        assert_eq!(
            (entry.include.as_slice(), entry.exclude.as_slice()),
            (&["a".to_owned()][..], &["b(c)".to_owned()][..])
        );
        assert!(entry.notes[0].contains("trust"), "{:?}", entry.notes);
    }

    #[test]
    fn the_timeout_of_an_entry_has_its_hosts_unit() {
        for (host, container, timeout, expected) in [
            ("cline", "mcpServers", 60, (None, None)),
            ("cline", "mcpServers", 90, (None, Some(90_000))),
            ("opencode", "mcp", 20_000, (Some(20), None)),
            ("kiro", "mcpServers", 250, (None, Some(250))),
            ("cursor", "mcpServers", 30, (None, Some(30_000))),
        ] {
            let text = format!(r#"{{"{container}":{{"x":{{"command":["c"],"timeout":{timeout}}}}}}}"#);
            let entry = only(host, &text);
            assert_eq!((entry.start_seconds, entry.call_milliseconds), expected, "{host} {timeout}");
        }
    }

    #[test]
    fn copilots_list_of_tools_limits_the_entry() {
        let entry = |tools: &str| {
            only(
                "copilot-cli",
                &format!(r#"{{"mcpServers":{{"x":{{"type":"local","command":"c","tools":{tools}}}}}}}"#),
            )
        };
        assert_eq!(entry(r#"["*"]"#).include, [""; 0]);
        assert_eq!(entry(r#"["a","b"]"#).include, ["a", "b"]);
        assert_eq!(entry("[]").exclude, ["*"]);
    }

    #[test]
    fn a_disabled_entry_stays_disabled() {
        for (host, field) in [("cline", "\"disabled\":true"), ("opencode", "\"enabled\":false")] {
            let container = &known::by_id(host).unwrap().container;
            let text = format!(r#"{{"{container}":{{"x":{{"command":"c",{field}}}}}}}"#);
            assert!(only(host, &text).disabled, "{host}");
        }
    }

    #[test]
    fn an_entry_outside_of_geminis_lists_is_disabled() {
        let disabled = |lists: &str| {
            let text = format!(r#"{{"mcp":{lists},"mcpServers":{{"x":{{"command":"c"}}}}}}"#);
            only("gemini-cli", &text).disabled
        };
        assert!(disabled(r#"{"excluded":["x"]}"#) && disabled(r#"{"allowed":["y"]}"#));
        assert!(!disabled(r#"{"excluded":["y"],"allowed":["x"]}"#) && !disabled("{}"));
    }

    #[test]
    fn an_input_of_vs_code_is_named_by_its_description() {
        let entry = only(
            "vscode",
            r#"{"inputs":[{"id":"key","type":"promptString","description":"API key","password":true}],
                "servers":{"x":{"type":"stdio","command":"c","args":["${workspaceFolder}"],"env":{"K":"${input:key}"}}}}"#,
        );
        let Launch::Process { args, env, .. } = &entry.launch else { panic!() };
        assert_eq!((args[0].as_str(), env["K"].as_str()), ("${workspaceFolder}", "${KEY}"));
        assert!(entry.notes[0].contains("API key") && entry.notes[0].contains("KEY"), "{:?}", entry.notes);
    }

    #[test]
    fn a_nested_command_of_older_versions_of_zed_is_understood() {
        let entry = only(
            "zed",
            r#"{"context_servers":{"x":{"command":{"path":"c","args":["a"],"env":{"K":"v"}},"settings":{}}}}"#,
        );
        let env = [("K".to_owned(), "v".to_owned())].into();
        assert_eq!(
            entry.launch,
            Launch::Process { command: "c".into(), args: vec!["a".into()], env, cwd: None }
        );
    }

    #[test]
    fn approvals_and_logins_of_an_entry_that_do_not_move_are_noted() {
        for (host, text) in [
            (
                "codex",
                "[mcp_servers.x]\ncommand = 'c'\n[mcp_servers.x.tools.del]\napproval_mode = 'prompt'\n",
            ),
            ("cline", r#"{"mcpServers":{"x":{"command":"c","autoApprove":["read"]}}}"#),
            ("opencode", r#"{"mcp":{"x":{"type":"remote","url":"https://x","oauth":{}}}}"#),
        ] {
            assert_eq!(only(host, text).notes.len(), 1, "{host}");
        }
    }
}
