//! Edits of JSON with comments that leave everything else unchanged, byte for byte.

pub use jsonc_parser::cst::CstInputValue as Input;
use jsonc_parser::{
    CollectOptions, ParseOptions, ast,
    cst::{CstObject, CstRootNode},
    parse_to_ast,
};
use serde_json::Value;

/// The reason why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("this is not JSON: {0}")]
    Syntax(String),
    #[error("`{0}` is not an object")]
    NotAnObject(String),
    /// A repeated key: only the last one counts, so an edit of the first would have no effect.
    #[error("`{key}` occurs twice, again in line {line}; remove one of them")]
    Duplicate { key: String, line: usize },
}

/// Sets the member at `path` (keys from the root), creating missing objects; an existing value is replaced in
/// place.
pub fn set(text: &str, path: &[&str], value: Input) -> Result<String, EditError> {
    let Some((key, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    set_all(text, parents, vec![((*key).to_owned(), value)])
}

/// Sets several members of the object at `path`, like [`set`].
pub fn set_all(text: &str, path: &[&str], members: Vec<(String, Input)>) -> Result<String, EditError> {
    let root = parse(text)?;
    check_single(text, path, members.iter().map(|(key, _)| key.as_str()))?;
    let mut object =
        root.object_value_or_create().ok_or_else(|| EditError::NotAnObject("the file".into()))?;
    for (index, parent) in path.iter().enumerate() {
        // Adding one value with all members is far faster than adding many members one by one.
        if index + 1 == path.len() && object.get(parent).is_none() {
            object.append(parent, Input::Object(members));
            return Ok(written(text, &root));
        }
        let child = object.object_value_or_create(parent);
        object = child.ok_or_else(|| EditError::NotAnObject((*parent).to_owned()))?;
    }
    for (key, value) in members {
        match object.get(&key) {
            Some(member) => member.set_value(value),
            None => drop(object.append(&key, value)),
        }
    }
    Ok(written(text, &root))
}

/// Removes the member at `path`; `None` if there is none.
pub fn remove(text: &str, path: &[&str]) -> Result<Option<String>, EditError> {
    let root = parse(text)?;
    let Some((key, parents)) = path.split_last() else { return Ok(None) };
    check_single(text, parents, [*key].into_iter())?;
    let Some(member) = object_at(&root, parents).and_then(|object| object.get(key)) else { return Ok(None) };
    member.remove();
    Ok(Some(written(text, &root)))
}

/// The value at `path`.
pub fn get(text: &str, path: &[&str]) -> Result<Option<Value>, EditError> {
    let root = parse(text)?;
    let Some((key, parents)) = path.split_last() else { return Ok(root.to_serde_value()) };
    let member = object_at(&root, parents).and_then(|object| object.get(key));
    Ok(member.and_then(|member| member.to_serde_value()))
}

fn object_at(root: &CstRootNode, path: &[&str]) -> Option<CstObject> {
    path.iter().try_fold(root.object_value()?, |object, key| object.object_value(key))
}

/// Makes sure that neither these members nor any key on the path to them is repeated.
fn check_single<'k>(
    text: &str,
    path: &[&str],
    mut keys: impl Iterator<Item = &'k str>,
) -> Result<(), EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Ok(parsed) = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()) else {
        return Ok(());
    };
    let Some(mut object) = parsed.value.as_ref().and_then(ast::Value::as_object) else { return Ok(()) };
    for key in path {
        match single(text, object, key)?.and_then(|member| member.value.as_object()) {
            Some(child) => object = child,
            None => return Ok(()),
        }
    }
    keys.try_for_each(|key| single(text, object, key).map(drop))
}

/// The only member of this key.
fn single<'o, 'a>(
    text: &str,
    object: &'o ast::Object<'a>,
    key: &str,
) -> Result<Option<&'o ast::ObjectProp<'a>>, EditError> {
    let mut same = object.properties.iter().filter(|member| member.name.as_str() == key);
    let first = same.next();
    let Some(second) = same.next() else { return Ok(first) };
    let line = text[..second.range.start].matches('\n').count() + 1;
    Err(EditError::Duplicate { key: key.to_owned(), line })
}

/// The text after the edit, with its original byte order mark.
fn written(text: &str, root: &CstRootNode) -> String {
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    format!("{mark}{root}")
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| EditError::Syntax(error.to_string()))
}

/// A JSON value in the form for insertion into a text.
pub fn input(value: &Value) -> Input {
    match value {
        Value::Null => Input::Null,
        Value::Bool(flag) => Input::Bool(*flag),
        Value::Number(number) => Input::Number(number.to_string()),
        Value::String(text) => Input::String(text.clone()),
        Value::Array(items) => Input::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            Input::Object(members.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_order_stay_when_a_member_is_set() {
        let text =
            "{\n  // mine\n  \"z\": 1, /* two */\n  \"mcpServers\": {\n    \"a\": {}, // first\n  },\n}\n";
        let edited = set(text, &["mcpServers", "b"], input(&json!({ "command": "x" }))).unwrap();
        assert!(
            edited.contains("// mine") && edited.contains("/* two */") && edited.contains("// first"),
            "{edited}"
        );
        assert_eq!(get(&edited, &["mcpServers", "b", "command"]).unwrap(), Some(json!("x")));
    }

    #[test]
    fn an_empty_file_gets_all_objects_on_the_way() {
        let edited = set("", &["mcpServers", "b"], input(&json!({ "command": "x" }))).unwrap();
        assert_eq!(get(&edited, &["mcpServers", "b"]).unwrap(), Some(json!({ "command": "x" })));
        assert_eq!(set("[]", &["a"], input(&json!(1))), Err(EditError::NotAnObject("the file".into())));
        assert!(matches!(set("{", &["a"], input(&json!(1))), Err(EditError::Syntax(_))));
    }

    #[test]
    fn a_key_that_occurs_twice_is_not_edited() {
        let text =
            "\u{feff}{\n  \"a\": { \"x\": 1 },\n  \"b\": { \"y\": 1,\n    \"y\": 2 },\n  \"a\": {}\n}\n";
        let twice = |key: &str, line| EditError::Duplicate { key: key.to_owned(), line };
        for path in [&["a"][..], &["a", "x"], &["a", "new", "z"]] {
            assert_eq!(set(text, path, Input::Null), Err(twice("a", 5)));
            assert_eq!(remove(text, path), Err(twice("a", 5)));
        }
        assert_eq!(set(text, &["b", "y"], Input::Null), Err(twice("y", 4)));
        assert!(set(text, &["b", "z"], Input::Null).is_ok(), "another key is safe to edit");
    }

    #[test]
    fn members_that_are_set_together_look_like_members_that_are_set_one_by_one() {
        let members = || {
            let value = input(&json!({ "command": "x", "args": ["y"], "env": { "K": "v" } }));
            ["a", "b", "c"].map(|name| (name.to_owned(), value.clone())).to_vec()
        };
        for text in
            ["", "{}\n", "{\n  \"s\": {}\n}\n", "{\n  // x\n  \"s\": { \"b\": 1, \"z\": 2 } // y\n}\n"]
        {
            let one_by_one = members()
                .into_iter()
                .try_fold(text.to_owned(), |text, (name, value)| set(&text, &["s", &name], value));
            assert_eq!(set_all(text, &["s"], members()), one_by_one, "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_stays() {
        let edited = set("\u{feff}{}\n", &["a"], input(&json!(1))).unwrap();
        assert!(edited.starts_with("\u{feff}{"), "{edited:?}");
        assert_eq!(get(&edited, &["a"]).unwrap(), Some(json!(1)));
        assert_eq!(remove(&edited, &["a"]).unwrap().unwrap(), "\u{feff}{}\n");
    }

    #[test]
    fn a_removed_member_takes_only_itself_away() {
        let edited = remove("{ \"a\": 1, \"b\": 2 } // end\n", &["a"]).unwrap().unwrap();
        assert_eq!(edited, "{ \"b\": 2 } // end\n");
        assert_eq!(remove("{}", &["a", "b"]).unwrap(), None);
    }
}
