//! The arguments of `execute_tool` itself: the tool's name, and what belongs below `arguments`.

use std::borrow::Cow;

use super::{
    Fault, Mode, Problem, Refusal, Repair,
    mend::WRAPPERS,
    raw::{self, Entry, Kind},
};

/// How a call is put into the arguments of another tool.
#[derive(Debug, Clone, Copy)]
pub struct Envelope {
    /// What the tool's name is called: as it should be first, then as models write it.
    names: &'static [&'static str],
    /// What its arguments are called, should they not be called `arguments`.
    arguments: &'static str,
    /// Further parameters of the calling tool: they are never taken for the inner tool's.
    own: &'static [&'static str],
    /// Such that mean nothing for a call: they are the inner tool's, unless its arguments stand where they belong.
    aside: &'static [&'static str],
    /// Where the name is to be had from.
    source: &'static str,
}

impl Envelope {
    /// `execute_tool`.
    pub const EXECUTE: Self = Self {
        names: &["name", "tool", "tool_name", "toolName"],
        arguments: "arguments",
        own: &["timeout"],
        aside: &[],
        source: "search_tools",
    };
    /// A server as one tool.
    pub const SUITE: Self = Self {
        names: &["subtool", "sub_tool", "subTool", "tool", "name", "tool_name", "toolName"],
        arguments: "args",
        own: &["action", "timeout"],
        aside: &["detail", "query", "names"],
        source: "introspect",
    };
}

/// A call as it was meant, its arguments not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    pub name: String,
    pub arguments: Cow<'a, [u8]>,
    pub repairs: Vec<Repair>,
}

/// Finds the tool's name and its arguments.
pub fn unwrap_call(outer: &[u8], envelope: Envelope, mode: Mode) -> Result<Call<'_>, Refusal> {
    let Envelope { names: all_names, arguments: right, own, aside, source } = envelope;
    let refuse = |message: &str| Refusal::new(vec![Problem::root(message)]);
    if !raw::is_json(outer) || Kind::of(outer) != Kind::Object {
        return Err(refuse(&format!("expected an object with `{}` and `{right}`", all_names[0])));
    }
    let mut entries = raw::entries(outer);
    let mut repairs = Vec::new();
    // The whole call, once more below `arguments`.
    if let [only] = entries.as_slice()
        && WRAPPERS.contains(&only.key.as_str())
        && mode == Mode::Repair
        && let Cow::Borrowed(inner) = only.value
        && find(&raw::entries(inner), all_names).is_some()
    {
        repairs.push(Repair { place: String::new(), fault: Fault::Nested });
        entries = raw::entries(inner);
    }
    let names = if mode == Mode::Repair { all_names } else { &all_names[..1] };
    let missing = || refuse(&format!("`{}` is missing: the tool to call, as {source} shows it", names[0]));
    let at = find(&entries, names).ok_or_else(missing)?;
    let tool = entries.remove(at);
    let name = raw::text(&tool.value)
        .ok_or_else(|| refuse(&format!("`{}` must be a string", names[0])))?
        .trim()
        .to_owned();
    if tool.key != names[0] {
        repairs.push(Repair { place: names[0].to_owned(), fault: Fault::KeySpelling });
    }
    entries.retain(|entry| !own.contains(&entry.key.as_str()));

    let wrapper = |entries: &[Entry<'_>]| {
        find(entries, &[right]).or_else(|| find(entries, &WRAPPERS).filter(|_| mode == Mode::Repair))
    };
    if wrapper(&entries).is_some_and(|at| !is_empty(&entries[at])) {
        entries.retain(|entry| !aside.contains(&entry.key.as_str()));
    }
    let wrapper = wrapper(&entries);
    let arguments = match (wrapper, entries.len()) {
        (None, 0) => Cow::Borrowed(b"{}".as_slice()),
        (Some(at), 1) => {
            let entry = entries.remove(at);
            if entry.key != right {
                repairs.push(Repair { place: String::new(), fault: Fault::KeySpelling });
            }
            entry.value
        }
        _ if mode == Mode::CheckOnly => {
            return Err(refuse(&format!("the tool's parameters belong below `{right}`")));
        }
        (Some(at), _) if is_empty(&entries[at]) => {
            entries.remove(at);
            flattened(&entries, &mut repairs)
        }
        (Some(_), _) => {
            return Err(refuse(&format!("parameters stand both below `{right}` and beside it")));
        }
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
