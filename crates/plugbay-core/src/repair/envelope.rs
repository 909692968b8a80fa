//! The arguments of `execute_tool` itself: the tool's name, and what belongs below `arguments`.

use std::borrow::Cow;

use super::{
    Fault, Mode, Problem, Refusal, Repair,
    mend::WRAPPERS,
    raw::{self, Entry, Kind},
};

/// Names for the tool that models use beside `name`.
const NAMES: [&str; 4] = ["name", "tool", "tool_name", "toolName"];

/// A call as it was meant, its arguments not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    pub name: String,
    pub arguments: Cow<'a, [u8]>,
    pub repairs: Vec<Repair>,
}

/// Finds the tool's name and its arguments. `own` are further parameters of the calling tool, such as
/// `timeout`: they are never taken for the inner tool's.
pub fn unwrap_call<'a>(outer: &'a [u8], own: &[&str], mode: Mode) -> Result<Call<'a>, Refusal> {
    let refuse = |message: &str| Refusal::new(vec![Problem::root(message)]);
    if !raw::is_json(outer) || Kind::of(outer) != Kind::Object {
        return Err(refuse("expected an object with `name` and `arguments`"));
    }
    let mut entries = raw::entries(outer);
    let mut repairs = Vec::new();
    // The whole call, once more below `arguments`.
    if let [only] = entries.as_slice()
        && WRAPPERS.contains(&only.key.as_str())
        && mode == Mode::Repair
        && let Cow::Borrowed(inner) = only.value
        && find(&raw::entries(inner), &NAMES).is_some()
    {
        repairs.push(Repair { place: String::new(), fault: Fault::Nested });
        entries = raw::entries(inner);
    }
    let names: &[&str] = if mode == Mode::Repair { &NAMES } else { &NAMES[..1] };
    let missing = || refuse("`name` is missing: the tool to call, as search_tools shows it");
    let at = find(&entries, names).ok_or_else(missing)?;
    let tool = entries.remove(at);
    let name = raw::text(&tool.value).ok_or_else(|| refuse("`name` must be a string"))?.trim().to_owned();
    if tool.key != "name" {
        repairs.push(Repair { place: "name".to_owned(), fault: Fault::KeySpelling });
    }
    entries.retain(|entry| !own.contains(&entry.key.as_str()));

    let wrappers: &[&str] = if mode == Mode::Repair { &WRAPPERS } else { &WRAPPERS[..1] };
    let arguments = match (find(&entries, wrappers), entries.len()) {
        (None, 0) => Cow::Borrowed(b"{}".as_slice()),
        (Some(at), 1) => {
            let entry = entries.remove(at);
            if entry.key != WRAPPERS[0] {
                repairs.push(Repair { place: String::new(), fault: Fault::KeySpelling });
            }
            entry.value
        }
        _ if mode == Mode::CheckOnly => {
            return Err(refuse("the tool's parameters belong below `arguments`"));
        }
        (Some(at), _) if is_empty(&entries[at]) => {
            entries.remove(at);
            flattened(&entries, &mut repairs)
        }
        (Some(_), _) => return Err(refuse("parameters stand both below `arguments` and beside it")),
        (None, _) => flattened(&entries, &mut repairs),
    };
    Ok(Call { name, arguments, repairs })
}

fn flattened(entries: &[Entry<'_>], repairs: &mut Vec<Repair>) -> Cow<'static, [u8]> {
    repairs.push(Repair { place: String::new(), fault: Fault::Flattened });
    raw::object(entries).into()
}

fn is_empty(entry: &Entry<'_>) -> bool {
    matches!(&*entry.value, b"null" | b"\"\"" | b"\"{}\"")
        || Kind::of(&entry.value) == Kind::Object && raw::entries(&entry.value).is_empty()
}

/// Where the first of these names stands, in the order of the names.
fn find(entries: &[Entry<'_>], names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| entries.iter().position(|entry| entry.key == *name))
}
