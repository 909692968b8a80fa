//! A host's list of the only servers that it may start, such as `mcp.allowed` of Gemini CLI.

use serde_json::Value;

use crate::{
    jsonc::{self, EditError, Input},
    known::Host,
};

/// Adds plugbay to the list, if the user has a list without it; `None` if there is nothing to add.
pub fn with(host: &Host, text: &str, own: &str) -> Result<Option<String>, EditError> {
    let Some(mut names) = names(host, text)?.filter(|names| !has(names, own)) else { return Ok(None) };
    names.push(own.into());
    set(host, text, &names).map(Some)
}

/// Removes plugbay from the list, unless `original` has it; `None` if there is nothing to remove.
pub fn without(
    host: &Host,
    text: &str,
    own: &str,
    original: Option<&str>,
) -> Result<Option<String>, EditError> {
    let before = original.map(|original| names(host, original)).transpose()?.flatten();
    let Some(mut names) = names(host, text)?.filter(|names| has(names, own)) else { return Ok(None) };
    if before.is_some_and(|before| has(&before, own)) {
        return Ok(None);
    }
    names.retain(|name| name != own);
    set(host, text, &names).map(Some)
}

fn names(host: &Host, text: &str) -> Result<Option<Vec<Value>>, EditError> {
    if host.allowed.is_empty() || text.trim().is_empty() {
        return Ok(None);
    }
    let list = jsonc::get(text, &path(host))?;
    Ok(list.and_then(|list| list.as_array().cloned()))
}

fn has(names: &[Value], own: &str) -> bool {
    names.iter().any(|name| name == own)
}

fn set(host: &Host, text: &str, names: &[Value]) -> Result<String, EditError> {
    let names = names.iter().filter_map(Value::as_str).map(|name| Input::String(name.to_owned()));
    jsonc::set(text, &path(host), Input::Array(names.collect()))
}

fn path(host: &Host) -> Vec<&str> {
    host.allowed.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;

    #[test]
    fn plugbay_joins_a_list_of_allowed_servers_and_leaves_it() {
        let gemini = known::by_id("gemini-cli").unwrap();
        let text = r#"{"mcp":{"allowed":["a"]}} // mine"#;
        let added = with(gemini, text, "plugbay").unwrap().unwrap();
        assert_eq!(
            jsonc::get(&added, &["mcp", "allowed"]).unwrap(),
            Some(serde_json::json!(["a", "plugbay"]))
        );
        assert!(added.ends_with("// mine"), "{added}");
        assert_eq!(with(gemini, &added, "plugbay").unwrap(), None);
        let back = without(gemini, &added, "plugbay", Some(text)).unwrap().unwrap();
        assert_eq!(jsonc::get(&back, &["mcp", "allowed"]).unwrap(), Some(serde_json::json!(["a"])));
        assert_eq!(without(gemini, &added, "plugbay", Some(&added)).unwrap(), None);
    }

    #[test]
    fn a_host_without_a_list_of_allowed_servers_gets_none() {
        let (gemini, cursor) = (known::by_id("gemini-cli").unwrap(), known::by_id("cursor").unwrap());
        for text in ["", "{}", r#"{"mcp":{"allowed":7}}"#] {
            assert_eq!(with(gemini, text, "plugbay").unwrap(), None, "{text}");
        }
        assert_eq!(with(cursor, r#"{"mcp":{"allowed":["a"]}}"#, "plugbay").unwrap(), None);
    }
}
