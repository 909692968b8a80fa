//! Servers in pasted JSON: one entry, or `mcpServers` as in READMEs.

use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use plugbay_hosts::jsonc::Input;

use super::addition::{Addition, server_name};
use crate::commands::CommandError;

/// Keys that hold servers, in the files of hosts.
const WRAPPERS: [&str; 5] = ["mcpServers", "servers", "context_servers", "mcp_servers", "mcp"];
/// Keys of an entry that say how its server is reached.
const LAUNCHES: [&str; 7] = ["command", "cmd", "url", "serverUrl", "uri", "httpUrl", "type"];

type Members = Vec<(String, Input)>;

/// The servers in `text`. A name renames the only one, or selects one of several.
pub fn read(text: &str, name: Option<&str>) -> Result<Vec<Addition>, CommandError> {
    let members = unwrap(object(text)?);
    let is_entry = members.iter().any(|(key, value)| is_launch(key, value));
    if is_entry {
        let named = members.iter().find_map(|(key, value)| match value {
            Input::String(text) if key == "name" => Some(text.as_str()),
            _ => None,
        });
        let name = name.or(named).ok_or_else(|| {
            CommandError::usage("this is one server without a name").hint("plugbay add-json NAME JSON")
        })?;
        let name = server_name(name)?;
        return Ok(vec![Addition { name, members }]);
    }
    let mut servers = Vec::new();
    for (key, value) in members {
        match value {
            Input::Object(members) => servers.push((key, members)),
            _ if key == "$schema" || key == "inputs" => {}
            _ => return Err(no_server(&format!("{key:?} is not an object"))),
        }
    }
    let all: Vec<String> = servers.iter().map(|(key, _)| key.clone()).collect();
    match name {
        _ if servers.is_empty() => return Err(no_server("it is empty")),
        Some(name) if servers.len() == 1 => name.clone_into(&mut servers[0].0),
        Some(name) => servers.retain(|(key, _)| key.eq_ignore_ascii_case(name)),
        None => {}
    }
    if servers.is_empty() {
        let error = CommandError::usage(format!("the JSON has no server {:?}", name.unwrap_or_default()));
        return Err(error.hint(format!("it has {}", all.join(", "))));
    }
    servers.into_iter().map(|(key, members)| Ok(Addition { name: server_name(&key)?, members })).collect()
}

fn no_server(why: &str) -> CommandError {
    CommandError::usage(format!("the JSON contains no server: {why}"))
        .hint("one server: plugbay add-json NAME '{\"command\": \"npx\", \"args\": [\"-y\", \"PACKAGE\"]}'")
        .hint("or what a README shows: plugbay add-json '{\"mcpServers\": {…}}'")
}

/// Whether a key belongs to a launch. `type` does only as a string: otherwise it may be a server's name.
fn is_launch(key: &str, value: &Input) -> bool {
    LAUNCHES.contains(&key) && !matches!(value, Input::Object(_))
}

/// The object that holds the servers, whatever a host's file puts around it.
fn unwrap(members: Members) -> Members {
    let is_wrapper = |(key, value): &(String, Input)| {
        WRAPPERS.contains(&key.as_str())
            && matches!(value, Input::Object(inner) if !inner.iter().any(|(key, value)| is_launch(key, value)))
    };
    match members.iter().position(is_wrapper) {
        Some(index) => match members.into_iter().nth(index) {
            Some((_, Input::Object(inner))) => unwrap(inner),
            _ => Vec::new(),
        },
        None => members,
    }
}

/// Parses an object. READMEs often show the members without the braces.
fn object(text: &str) -> Result<Members, CommandError> {
    let text = text.trim().trim_start_matches('\u{feff}');
    let braced;
    let text = if text.starts_with('"') {
        braced = format!("{{{text}\n}}"); // its last line may be a comment
        &braced
    } else {
        text
    };
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|error| CommandError::usage(format!("this is not JSON: {error}")))?;
    match parsed.value.as_ref().map(input) {
        Some(Input::Object(members)) => Ok(members),
        Some(_) => Err(no_server("it is not an object")),
        None => Err(no_server("it is empty")),
    }
}

/// Converts a value. Keys keep their order, and numbers their digits.
fn input(value: &ast::Value<'_>) -> Input {
    match value {
        ast::Value::NullKeyword(_) => Input::Null,
        ast::Value::BooleanLit(flag) => Input::Bool(flag.value),
        ast::Value::NumberLit(number) => Input::Number(number.value.to_owned()),
        ast::Value::StringLit(text) => Input::String(text.value.clone().into_owned()),
        ast::Value::Array(items) => Input::Array(items.elements.iter().map(input).collect()),
        ast::Value::Object(object) => {
            let member =
                |property: &ast::ObjectProp<'_>| (property.name.as_str().to_owned(), input(&property.value));
            Input::Object(object.properties.iter().map(member).collect())
        }
    }
}
