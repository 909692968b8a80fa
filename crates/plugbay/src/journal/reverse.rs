//! Undoes one edit of a JSON file that has changed since.

use plugbay_hosts::jsonc::{self, EditError};
use serde_json::{Map, Value};

/// `current` without the difference between `before` and `after`. All other changes stay. Members that both
/// the edit and somebody else changed also stay.
pub fn reverse(before: &str, after: &str, current: &str) -> Result<String, EditError> {
    let value = |text: &str| Ok::<_, EditError>(jsonc::get(text, &[])?.unwrap_or_default());
    let mut edits = Vec::new();
    let (before, after, now) = (value(before)?, value(after)?, value(current)?);
    compare(&mut Vec::new(), Some(&before), Some(&after), Some(&now), &mut edits);
    edits.iter().try_fold(current.to_owned(), |text, (path, wanted)| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match wanted {
            Some(value) => jsonc::set(&text, &path, jsonc::input(value)),
            None => Ok(jsonc::remove(&text, &path)?.unwrap_or(text)),
        }
    })
}

/// A path of keys, and the value to set there; `None` removes the member.
type Edit = (Vec<String>, Option<Value>);

fn compare(
    path: &mut Vec<String>,
    before: Option<&Value>,
    after: Option<&Value>,
    now: Option<&Value>,
    edits: &mut Vec<Edit>,
) {
    if before == after {
        return;
    }
    // The whole file is never replaced, because it may have new comments.
    if now == after && !path.is_empty() {
        edits.push((path.clone(), before.cloned()));
        return;
    }
    match (before, after, now) {
        (Some(Value::Array(before)), Some(Value::Array(after)), Some(Value::Array(now))) => {
            edits.push((path.clone(), Some(items(before, after, now))));
        }
        (None, Some(Value::Array(after)), Some(Value::Array(now))) => {
            edits.push((path.clone(), Some(items(&[], after, now))));
        }
        (before, after, Some(Value::Object(now))) => {
            members(path, object(before), object(after), now, edits);
        }
        _ => {}
    }
}

fn members(
    path: &mut Vec<String>,
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
    now: &Map<String, Value>,
    edits: &mut Vec<Edit>,
) {
    let of = |members: Option<&Map<String, Value>>| {
        members.into_iter().flat_map(Map::keys).cloned().collect::<Vec<String>>()
    };
    let mut keys = of(before);
    keys.extend(of(after).into_iter().filter(|key| before.is_none_or(|before| !before.contains_key(key))));
    for key in keys {
        let member =
            |members: Option<&Map<String, Value>>| members.and_then(|members| members.get(&key)).cloned();
        path.push(key.clone());
        compare(path, member(before).as_ref(), member(after).as_ref(), now.get(&key), edits);
        path.pop();
    }
}

fn object(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

/// The current items without those that the edit added, and with those that it removed.
fn items(before: &[Value], after: &[Value], now: &[Value]) -> Value {
    let added = |item: &&Value| after.contains(item) && !before.contains(item);
    let removed = before.iter().filter(|item| !after.contains(item) && !now.contains(item));
    Value::Array(now.iter().filter(|item| !added(item)).chain(removed).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, current: &str, expected: &str) {
        let reversed = reverse(before, after, current).unwrap();
        assert_eq!(jsonc::get(&reversed, &[]).unwrap(), jsonc::get(expected, &[]).unwrap());
    }

    #[test]
    fn members_of_the_edit_go_and_later_members_stay() {
        check(
            r#"{"mcpServers": {"a": 1}}"#,
            r#"{"mcpServers": {"plugbay": 2}}"#,
            r#"{"theme": "dark", "mcpServers": {"plugbay": 2, "new": 3}}"#,
            r#"{"theme": "dark", "mcpServers": {"new": 3, "a": 1}}"#,
        );
    }

    #[test]
    fn an_array_loses_only_the_items_of_the_edit() {
        check(
            r#"{"deny": ["x"]}"#,
            r#"{"deny": ["x", "y"]}"#,
            r#"{"deny": ["x", "y", "z"]}"#,
            r#"{"deny": ["x", "z"]}"#,
        );
    }

    #[test]
    fn a_member_that_somebody_else_changed_stays() {
        check(r#"{"a": 1}"#, r#"{"a": 2}"#, r#"{"a": 3}"#, r#"{"a": 3}"#);
        check("{}", r#"{"a": 2}"#, "{}", "{}");
    }

    #[test]
    fn a_comment_beside_the_edit_stays() {
        let after = "{ // mine\n  \"z\": 0,\n  \"a\": 1\n}\n";
        let current = "{ // mine\n  // later\n  \"z\": 0,\n  \"a\": 1\n} // end\n";
        let reversed = reverse("{ // mine\n  \"z\": 0\n}\n", after, current).unwrap();
        assert_eq!(reversed, "{ // mine\n  // later\n  \"z\": 0\n} // end\n");
    }
}
