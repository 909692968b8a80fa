//! The tools that the stub lists.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::Outcome;
use crate::payload::Kind;
use crate::stub::{CRASH_TOOL, HANG_TOOL, TOOLS, WAIT_TOOL};

/// A tool with an input schema as large and as varied as in real servers.
pub(crate) const LEDGER_TOOL: &str = "search_ledger";

/// The tools. The first ones answer, the others have definitions of typical length. `ledger` adds
/// [`LEDGER_TOOL`] to those that answer, `faults` two that never do.
pub(super) fn list(count: usize, ledger: bool, faults: bool) -> Value {
    let fetching = Kind::ALL.map(|kind| tool(kind.tool(), "Answers with a payload of the size asked for."));
    let never = [CRASH_TOOL, HANG_TOOL, WAIT_TOOL].map(|name| tool(name, "Has a fault."));
    let never = never.into_iter().filter(|_| faults);
    let answering: Vec<Value> = fetching.into_iter().chain(ledger.then(ledger_tool)).chain(never).collect();
    let others = (answering.len()..count).map(|number| {
        tool(
            &format!("move_berth_{number:02}"),
            "Moves a ship from one berth to another and returns the new entry of the ledger. Fails when the \
             berth is taken, when the tide is too low for the ship's draught, or when the ship is not known; \
             ask for the list of ships first if you only have a name.",
        )
    });
    answering.into_iter().chain(others).take(count).collect()
}

/// All tools that answer, and the usual number of others.
pub(crate) fn definitions() -> Value {
    list(TOOLS, true, false)
}

/// The tools of `server` in a catalog, one per line.
pub(super) fn of_catalog(file: &Path, server: &str) -> Outcome<Value> {
    let mut tools = Vec::new();
    for line in fs::read_to_string(file)?.lines() {
        let mut entry: Value = serde_json::from_str(line)?;
        if entry["server"] == server {
            let schema = match entry["inputSchema"].take() {
                Value::Null => json!({ "type": "object" }),
                schema => schema,
            };
            tools.push(json!({
                "name": entry["name"],
                "description": entry["description"].as_str().unwrap_or_default(),
                "inputSchema": schema,
            }));
        }
    }
    Ok(Value::from(tools))
}

/// The kind of payload with which a tool answers.
pub(super) fn kind(tool: &str) -> Option<Kind> {
    if tool == LEDGER_TOOL { Some(Kind::Text) } else { Kind::from_tool(tool) }
}

/// Arguments of [`LEDGER_TOOL`] that its schema accepts.
pub(crate) fn ledger_arguments(size: usize) -> Value {
    json!({
        "harbour": "NLRTM",
        "entry": "inspection",
        "since": "2026-03-01",
        "ships": ["Aurora", "Blue Heron", "Kittiwake"],
        "filter": { "flag": "NO", "minDraught": 4.5, "hazardous": false },
        "limit": 120,
        "includeClosed": true,
        "size": size,
    })
}

fn ledger_tool() -> Value {
    json!({
        "name": LEDGER_TOOL,
        "description": "Searches the ledger of a harbour and returns the entries that match, newest first.",
        "inputSchema": ledger_schema(),
    })
}

fn ledger_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "harbour": { "type": "string", "minLength": 2, "description": "Name or UN/LOCODE of the harbour" },
            "entry": {
                "type": "string",
                "enum": ["arrival", "departure", "inspection", "repair", "refuelling"],
                "description": "Which entries to return",
            },
            "since": { "type": "string", "description": "First day of the period, as YYYY-MM-DD" },
            "ships": {
                "type": "array",
                "items": { "type": "string", "minLength": 1 },
                "maxItems": 20,
                "description": "Only these ships, by name or call sign",
            },
            "filter": {
                "type": "object",
                "properties": {
                    "flag": { "type": "string", "maxLength": 2, "description": "Country of registration" },
                    "minDraught": { "type": "number", "minimum": 0, "description": "In metres" },
                    "hazardous": { "type": "boolean" },
                },
                "additionalProperties": false,
            },
            "limit": { "type": "integer", "minimum": 1, "maximum": 500, "default": 50 },
            "includeClosed": { "type": "boolean", "default": false },
            "size": { "type": "integer", "minimum": 0, "description": "Length in bytes of the result" },
        },
        "required": ["harbour", "entry", "size"],
        "additionalProperties": false,
    })
}

fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                "size": { "type": "integer", "minimum": 0, "description": "Length in bytes of what is returned" },
                "ship": { "type": "string", "description": "Name or call sign of the ship" },
                "berth": { "type": "string", "enum": ["north", "south", "east", "west"] },
                "options": {
                    "type": "object",
                    "properties": {
                        "dryRun": { "type": "boolean", "default": false },
                        "notify": { "type": "array", "items": { "type": "string" }, "maxItems": 10 },
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::TOOLS;

    #[test]
    fn the_list_has_as_many_tools_as_asked_for() {
        for count in [1, 2, TOOLS] {
            for ledger in [true, false] {
                assert_eq!(list(count, ledger, false).as_array().map(Vec::len), Some(count));
            }
        }
    }

    #[test]
    fn the_ledger_tool_has_a_schema_of_about_one_kilobyte_that_knows_every_argument() {
        let schema = ledger_schema();
        assert!((900..1300).contains(&schema.to_string().len()), "{}", schema.to_string().len());
        let arguments = ledger_arguments(1000);
        let keys: Vec<&String> = arguments.as_object().unwrap().keys().collect();
        let known: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(keys, known);
        assert!(schema["properties"]["entry"]["enum"].as_array().unwrap().contains(&arguments["entry"]));
    }
}
