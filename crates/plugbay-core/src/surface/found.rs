//! A tool under the name that it is called by, and its definition as hosts get it.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::{BufMut, Bytes, BytesMut};

use super::{Resources, names::is_for_model};
use crate::{
    arguments::ResolvedTool,
    catalog::Tool,
    exposure::Mode,
    name::ServerName,
    text,
    wire::{Members, Span, string_value},
};

/// A tool that can be called, whether it is listed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub exposed: String,
    pub target: Target,
    /// The tool with the description that the user wants it to have.
    pub tool: Tool,
    /// How its server is shown, if the user has said so.
    pub mode: Option<Mode>,
    /// Listed in every mode, because the user wants it so.
    pub pinned: bool,
}

/// A tool of a server by its own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub server: ServerName,
    pub tool: String,
    /// The tool's name as a JSON string, ready to be put into a request.
    pub quoted: Bytes,
}

impl Target {
    pub(super) fn of(server: &ServerName, tool: &Tool) -> Self {
        let quoted = tool.definition.slice(tool.name_span());
        Self { server: server.clone(), tool: tool.name.clone(), quoted }
    }
}

/// A tool that can be called by name.
#[derive(Debug, Clone)]
pub enum Callable<'s> {
    Listed(&'s Found),
    /// A tool of a server that has never listed any: the server decides whether it exists.
    Unlisted(Target),
}

impl<'s> Callable<'s> {
    pub fn target(&self) -> &Target {
        match self {
            Self::Listed(found) => &found.target,
            Self::Unlisted(target) => target,
        }
    }

    /// Its entry, if its server has listed it.
    pub fn found(&self) -> Option<&'s Found> {
        match self {
            Self::Listed(found) => Some(found),
            Self::Unlisted(_) => None,
        }
    }
}

/// The effect of a call, ordered from harmless to harmful.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    #[default]
    Reads,
    /// Adds something, and takes nothing away.
    Writes,
    Destroys,
}

/// Keeps a tool in sight of a model whose host hides tools behind a search of its own.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";
/// The key under which a definition in the list of all tools names its server and its own name.
const SOURCE: &str = "plugbay/source";

/// The additions to a definition that one host needs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Additions {
    /// The host is not to hide the tool.
    pub(super) always_load: bool,
    /// The title names server and tool.
    pub(super) titled: bool,
}

impl Found {
    /// The tool as the result of looking up a name.
    pub(super) fn resolved(&self, exact: bool) -> ResolvedTool<Callable<'_>> {
        ResolvedTool {
            name: self.exposed.clone(),
            exact,
            schema: self.tool.input_schema(),
            tool: Callable::Listed(self),
        }
    }

    /// Its server's name for it; the exposed name if hidden characters of the former would hide in a text.
    pub fn own_name(&self) -> &str {
        let tool = &self.target.tool;
        if text::hidden_in(tool).is_empty() { tool } else { &self.exposed }
    }

    /// Its definition as a host gets it: under the name that it is called by.
    pub fn definition(&self) -> Bytes {
        let mut definition = BytesMut::new();
        self.write(&mut definition, Additions::default());
        definition.freeze()
    }

    pub(super) fn write(&self, out: &mut BytesMut, additions: Additions) {
        let mut edits = vec![(self.tool.name_span(), quoted(&self.exposed))];
        edits.extend(additions.titled.then(|| self.title()));
        edits.extend(additions.always_load.then(|| mark(&self.tool, ALWAYS_LOAD, "true")).flatten());
        put_edited(out, &self.tool.definition, edits);
    }

    /// The words that identify a tool: its server, its name there, and the title that its server gave it.
    fn title(&self) -> (Span, String) {
        let (server, tool) = (&self.target.server, self.own_name());
        let definition = &self.tool.definition;
        let own = Members::find(definition, &(0..definition.len()), "title");
        let said = own.as_ref().and_then(|span| string_value(&definition[span.clone()]));
        let title = match said.filter(|said| !said.is_empty()) {
            Some(said) => format!("{server} {tool}: {said}"),
            None => format!("{server} {tool}"),
        };
        match own {
            Some(span) => (span, quoted(&title)),
            None => (
                self.tool.name_span().end..self.tool.name_span().end,
                format!(",\"title\":{}", quoted(&title)),
            ),
        }
    }

    /// The definition with its server and its own name in `_meta`.
    pub(super) fn write_with_source(&self, out: &mut BytesMut) {
        let Target { server, tool, .. } = &self.target;
        let source = format!(r#"{{"server":"{server}","tool":{}}}"#, quoted(tool));
        let mut edits = vec![(self.tool.name_span(), quoted(&self.exposed))];
        edits.extend(mark(&self.tool, SOURCE, &source));
        put_edited(out, &self.tool.definition, edits);
    }

    /// Whether its server says that it changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.hint("readOnlyHint") == Some(b"true")
    }

    /// The worst effect that it may have. No tool counts as harmless unless its server says so.
    pub fn effect(&self) -> Effect {
        match self.hint("destructiveHint") {
            _ if self.is_read_only() => Effect::Reads,
            Some(b"false") => Effect::Writes,
            _ => Effect::Destroys,
        }
    }

    /// Whether models may call it; otherwise only pages of its server may.
    pub fn is_for_model(&self) -> bool {
        is_for_model(&self.tool)
    }

    /// Whether pages of its server may call it.
    pub fn is_for_app(&self) -> bool {
        self.tool.ui.as_ref().is_none_or(|ui| ui.for_app)
    }

    /// Whether hosts show a page for it.
    pub fn has_page(&self) -> bool {
        self.tool.ui.as_ref().is_some_and(|ui| !ui.pages.is_empty())
    }

    fn hint(&self, key: &str) -> Option<&[u8]> {
        let annotations = self.tool.raw("annotations")?;
        Members::find(annotations, &(0..annotations.len()), key).map(|span| &annotations[span])
    }
}

/// The tool with the description that the user wants it to have.
pub(super) fn described<'a>(tool: &'a Tool, describe: &BTreeMap<String, String>) -> Cow<'a, Tool> {
    let wanted = describe.get(&tool.name).and_then(|text| saying(tool, text));
    wanted.map_or(Cow::Borrowed(tool), Cow::Owned)
}

fn saying(tool: &Tool, text: &str) -> Option<Tool> {
    let edit = match tool.description_span() {
        Some(span) => (span, quoted(text)),
        None => (tool.name_span().end..tool.name_span().end, format!(",\"description\":{}", quoted(text))),
    };
    let mut definition = BytesMut::new();
    put_edited(&mut definition, &tool.definition, vec![edit]);
    Tool::parse(definition.freeze())
}

/// The tool with URIs of pages that lead to its own server.
pub(super) fn with_own_pages(tool: Cow<'_, Tool>, server: &ServerName, resources: &Resources) -> Tool {
    let links = tool.ui.iter().flat_map(|ui| &ui.pages);
    let moved = |uri: &str| resources.moved_page(server, uri).map(|uri| quoted(&uri));
    let edits: Vec<_> = links.filter_map(|link| Some((link.span.clone(), moved(&link.uri)?))).collect();
    if edits.is_empty() {
        return tool.into_owned();
    }
    let mut definition = BytesMut::new();
    put_edited(&mut definition, &tool.definition, edits);
    Tool::parse(definition.freeze()).unwrap_or_else(|| tool.into_owned())
}

/// A member for the tool's `_meta`, and where to insert it, unless the server has set that member itself.
fn mark(tool: &Tool, key: &str, value: &str) -> Option<(Span, String)> {
    let definition = &tool.definition;
    let Some(meta) = Members::find(definition, &(0..definition.len()), "_meta") else {
        let end = tool.name_span().end;
        return Some((end..end, format!(r#","_meta":{{"{key}":{value}}}"#)));
    };
    if definition[meta.start] != b'{' || Members::find(definition, &meta, key).is_some() {
        return None;
    }
    let comma = if Members::of(definition, &meta).next().is_some() { "," } else { "" };
    let inside = meta.start + 1;
    Some((inside..inside, format!(r#""{key}":{value}{comma}"#)))
}

/// Writes the server's own bytes with these edits only.
fn put_edited(out: &mut BytesMut, definition: &[u8], mut edits: Vec<(Span, String)>) {
    edits.sort_by_key(|(span, _)| span.start);
    let mut done = 0;
    for (span, text) in edits {
        out.put_slice(&definition[done..span.start]);
        out.put_slice(text.as_bytes());
        done = span.end;
    }
    out.put_slice(&definition[done..]);
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(definition: &'static str) -> Found {
        let tool = Tool::parse(Bytes::from_static(definition.as_bytes())).unwrap();
        let target =
            Target { server: ServerName::parse("s").unwrap(), tool: tool.name.clone(), quoted: Bytes::new() };
        Found { exposed: "s__t".to_owned(), target, tool, mode: None, pinned: false }
    }

    fn marked(definition: &'static str) -> String {
        let mut out = BytesMut::new();
        found(definition).write(&mut out, Additions { always_load: true, titled: false });
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn a_mark_goes_beside_what_the_server_says() {
        assert_eq!(marked(r#"{"name":"t"}"#), r#"{"name":"s__t","_meta":{"anthropic/alwaysLoad":true}}"#);
        let kept = r#"{"_meta":{ "x":1.0},"name":"t"}"#;
        assert_eq!(marked(kept), r#"{"_meta":{"anthropic/alwaysLoad":true, "x":1.0},"name":"s__t"}"#);
        let empty = r#"{"name":"t","_meta":{}}"#;
        assert_eq!(marked(empty), r#"{"name":"s__t","_meta":{"anthropic/alwaysLoad":true}}"#);
        let settled = r#"{"name":"t","_meta":{"anthropic/alwaysLoad":false}}"#;
        assert_eq!(marked(settled), settled.replace("\"t\"", "\"s__t\""));
    }

    #[test]
    fn a_title_tells_server_and_tool_and_keeps_what_the_server_calls_it() {
        let titled = |definition| {
            let mut out = BytesMut::new();
            found(definition).write(&mut out, Additions { always_load: false, titled: true });
            String::from_utf8(out.to_vec()).unwrap()
        };
        assert_eq!(titled(r#"{"name":"t","x":1.0}"#), r#"{"name":"s__t","title":"s t","x":1.0}"#);
        assert_eq!(titled(r#"{"title":"A \"T\"","name":"t"}"#), r#"{"title":"s t: A \"T\"","name":"s__t"}"#);
        assert_eq!(titled(r#"{"title":null,"name":"t"}"#), r#"{"title":"s t","name":"s__t"}"#);
    }

    #[test]
    fn the_source_of_a_tool_goes_beside_the_meta_of_its_server() {
        let sourced = |definition| {
            let mut out = BytesMut::new();
            found(definition).write_with_source(&mut out);
            String::from_utf8(out.to_vec()).unwrap()
        };
        let source = r#""plugbay/source":{"server":"s","tool":"t"}"#;
        assert_eq!(
            sourced(r#"{"name":"t","x":1.0}"#),
            format!(r#"{{"name":"s__t","_meta":{{{source}}},"x":1.0}}"#)
        );
        assert_eq!(
            sourced(r#"{"_meta":{"a":1},"name":"t"}"#),
            format!(r#"{{"_meta":{{{source},"a":1}},"name":"s__t"}}"#)
        );
        for kept in [r#"{"name":"t","_meta":{"plugbay/source":7}}"#, r#"{"name":"t","_meta":null}"#] {
            assert_eq!(sourced(kept), kept.replace("\"t\"", "\"s__t\""));
        }
    }

    #[test]
    fn only_a_plain_yes_makes_a_tool_read_only() {
        assert!(found(r#"{"name":"t","annotations":{"readOnlyHint":true}}"#).is_read_only());
        for other in [r#"{"name":"t"}"#, r#"{"name":"t","annotations":{"readOnlyHint":"true"}}"#] {
            assert!(!found(other).is_read_only(), "{other}");
        }
    }

    #[test]
    fn what_is_not_called_harmless_may_destroy() {
        for (annotations, effect) in [
            (r#"{"readOnlyHint":true,"destructiveHint":true}"#, Effect::Reads),
            (r#"{"destructiveHint":false}"#, Effect::Writes),
            (r#"{"readOnlyHint":false}"#, Effect::Destroys),
            ("{}", Effect::Destroys),
            ("7", Effect::Destroys),
        ] {
            let definition = format!(r#"{{"name":"t","annotations":{annotations}}}"#);
            assert_eq!(found(definition.leak()).effect(), effect, "{annotations}");
        }
        assert_eq!(found(r#"{"name":"t"}"#).effect(), Effect::Destroys);
        assert!(Effect::Reads < Effect::Writes && Effect::Writes < Effect::Destroys);
    }
}
