//! Skills over MCP (`io.modelcontextprotocol/skills`): entries, and the places of URIs in answers.

use crate::{
    size_limit,
    wire::{Head, Kind, Members, Span, elements, string_value},
};

/// The name by which servers declare it.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The setting of a server that lists directories.
pub const DIRECTORY_READ: &str = "directoryRead";
/// The ending of every skill's URI. The part before it is the skill's root.
pub const FILE: &str = "/SKILL.md";

/// A server's declaration of skills, in its `capabilities`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared {
    /// It lists directories.
    pub directory_read: bool,
}

impl Declared {
    pub fn read(bytes: &[u8], capabilities: &Span) -> Option<Self> {
        let extensions = Members::find(bytes, capabilities, "extensions")?;
        let skills = Members::find(bytes, &extensions, EXTENSION)?;
        let directory_read = Members::find(bytes, &skills, DIRECTORY_READ);
        Some(Self { directory_read: directory_read.is_some_and(|span| &bytes[span] == b"true") })
    }
}

/// An entry as `skills/list` and `skills/get` have it, as far as a gateway reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub description: String,
    /// The URIs of its files; `None` for a skill whose files are not known in advance.
    pub files: Option<Vec<String>>,
    /// The places of URIs in the entry, with their quotes.
    pub uris: Vec<Span>,
}

impl Entry {
    /// `entry` is the object.
    pub fn read(bytes: &[u8], entry: &Span) -> Self {
        let mut read = Self::default();
        for member in Members::of(bytes, entry).flatten() {
            match &*member.key {
                "uri" => read.uris.push(member.value),
                "frontmatter" => {
                    let text =
                        |key| text(bytes, Members::find(bytes, &member.value, key)).unwrap_or_default();
                    (read.name, read.description) = (text("name"), text("description"));
                }
                "resources" if bytes[member.value.start] == b'[' => {
                    let uris = uris_of_each(bytes, &member.value);
                    read.files =
                        Some(uris.iter().filter_map(|span| text(bytes, Some(span.clone()))).collect());
                    read.uris.extend(uris);
                }
                _ => {}
            }
        }
        read.uris.retain(|span| bytes[span.start] == b'"');
        read
    }
}

/// The directory of a skill: its URI without the file's name. `None` if it is not the URI of a skill, or if everything
/// of its scheme would lie in it.
pub fn root(uri: &str) -> Option<&str> {
    uri.strip_suffix(FILE).filter(|root| !root.ends_with(":/"))
}

/// Whether a URI is that of a file or directory below this one.
pub fn is_below(uri: &str, root: &str) -> bool {
    uri.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

/// The directories that a URI lies in, the innermost first. One that is longer than any URI of a list is left out.
pub fn directories(uri: &str) -> impl Iterator<Item = &str> {
    let uri = &uri[..uri.floor_char_boundary(size_limit::URI + 1)];
    uri.rmatch_indices('/').map(|(at, _)| &uri[..at])
}

/// The places of URIs in a result of `skills/get` or `resources/directory/read`, in the order of the text.
pub fn uris_of_result(bytes: &[u8], head: &Head) -> Vec<Span> {
    let (Kind::Result { .. }, Some(result)) = (&head.kind, &head.payload) else { return Vec::new() };
    let mut uris = Vec::new();
    for member in Members::of(bytes, result).flatten() {
        match &*member.key {
            "skill" => uris.extend(Entry::read(bytes, &member.value).uris),
            "resources" => uris.extend(uris_of_each(bytes, &member.value)),
            _ => {}
        }
    }
    uris.retain(|span| bytes[span.start] == b'"');
    uris.sort_by_key(|span| span.start);
    uris
}

fn uris_of_each(bytes: &[u8], array: &Span) -> Vec<Span> {
    elements(bytes, array).iter().filter_map(|element| Members::find(bytes, element, "uri")).collect()
}

fn text(bytes: &[u8], span: Option<Span>) -> Option<String> {
    string_value(&bytes[span?]).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_declares_skills_with_or_without_directories() {
        let read = |text: &str| Declared::read(text.as_bytes(), &(0..text.len()));
        let declared = |value: &str| format!(r#"{{"extensions":{{"{EXTENSION}":{value}}}}}"#);
        assert_eq!(read(&declared("{}")), Some(Declared { directory_read: false }));
        assert_eq!(read(&declared(r#"{"directoryRead":true}"#)), Some(Declared { directory_read: true }));
        assert_eq!(read(&declared(r#"{"directoryRead":"true"}"#)), Some(Declared { directory_read: false }));
        assert_eq!(read(r#"{"extensions":{}}"#), None);
    }

    #[test]
    fn an_entry_is_read_with_its_files() {
        let text = r#"{"resources":[{"uri":"skill:\/\/a/SKILL.md","digest":"sha256:0"},{"digest":7}],"frontmatter":{"name":"a","description":"é"},"uri":"skill://a/SKILL.md"}"#;
        let entry = Entry::read(text.as_bytes(), &(0..text.len()));
        assert_eq!((entry.name.as_str(), entry.description.as_str()), ("a", "é"));
        assert_eq!(entry.files, Some(vec!["skill://a/SKILL.md".to_owned()]));
        let uris: Vec<&str> = entry.uris.iter().map(|span| &text[span.clone()]).collect();
        assert_eq!(uris, [r#""skill:\/\/a/SKILL.md""#, r#""skill://a/SKILL.md""#]);
        let dynamic = r#"{"uri":7,"resources":"dynamic"}"#;
        assert_eq!(Entry::read(dynamic.as_bytes(), &(0..dynamic.len())), Entry::default());
    }

    #[test]
    fn results_are_searched_for_uris_where_the_protocol_has_them() {
        let uris = |result: &str| {
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let head = Head::read(message.as_bytes()).unwrap();
            let uris = uris_of_result(message.as_bytes(), &head);
            uris.into_iter().map(|span| message[span].to_owned()).collect::<Vec<_>>().join(" ")
        };
        let skill = r#"{"skill":{"resources":[{"uri":"b"}],"uri":"a","x":{"uri":"no"}},"uri":"no"}"#;
        assert_eq!(uris(skill), r#""b" "a""#);
        assert_eq!(uris(r#"{"resources":[{"uri":"a"},{"uri":1},{"x":"no"}]}"#), r#""a""#);
        assert_eq!(uris(r#"{"skill":7,"resources":"x","contents":[{"uri":"no"}]}"#), "");
    }

    #[test]
    fn a_file_lies_in_the_directories_of_its_path() {
        let all: Vec<&str> = directories("skill://a/b/c.md").collect();
        assert_eq!(all, ["skill://a/b", "skill://a", "skill:/", "skill:"]);
        assert!(is_below("skill://a/b", "skill://a") && !is_below("skill://ab", "skill://a"));
        assert_eq!((root("skill://a/SKILL.md"), root("skill://a/OTHER.md")), (Some("skill://a"), None));
    }
}
