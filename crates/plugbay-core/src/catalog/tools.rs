//! The tools of one server, read when they are first needed.

use std::{
    borrow::Cow,
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use super::{Tool, summary::summary};
use crate::{
    name::{ServerName, is_clean},
    size_limit,
};

/// The tools of one server, in the order of their names: some servers list in a new order each time. Clones share them.
#[derive(Clone)]
pub struct Tools(Arc<Shared>);

struct Shared {
    made: OnceLock<Vec<Tool>>,
    /// The source that they are read from, if they were remembered.
    source: Option<Box<dyn ToolSource>>,
    /// Tools of a source have one from the beginning.
    brief: OnceLock<ToolsBrief>,
    summary: OnceLock<String>,
    /// Some of them say something about apps.
    ui: bool,
}

/// What is known of tools before they are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ToolsBrief {
    pub count: usize,
    /// The length of all definitions together.
    pub bytes: usize,
    /// The length of the longest name; `None` if hosts do not take every name as it is.
    pub longest_name: Option<usize>,
    /// The first names.
    pub first: Vec<String>,
    /// The summary of all names; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
}

/// Tools whose definitions have no more bytes than this are read in a moment.
const MOMENT: usize = 4 << 20;
/// How many names are enough to tell what a server is for.
pub const FIRST_NAMES: usize = 8;

/// Reads tools that were remembered, in the order of their names. None of them says anything about apps.
pub trait ToolSource: Send + Sync {
    fn read(&self) -> Vec<Tool>;

    /// Their names alone, which takes less time.
    fn names(&self) -> Vec<String>;

    /// Whether it is known that no definition has hidden characters.
    fn are_visible(&self) -> bool;

    /// Whether these are the same tools. It keeps nothing of what it reads for that.
    fn are(&self, tools: &[Tool]) -> bool;

    /// Whether their search index was stored with them, as that of this server.
    fn have_index(&self, server: &ServerName) -> bool;

    /// The stored index, as it was saved; `None` also if it is damaged.
    fn index(&self, server: &ServerName) -> Option<Bytes>;
}

impl Tools {
    /// Tools that are read when somebody needs more of them than `brief`.
    pub fn later(mut brief: ToolsBrief, source: Box<dyn ToolSource>) -> Self {
        let summary = OnceLock::new();
        if !brief.summary.is_empty() {
            let _ = summary.set(std::mem::take(&mut brief.summary));
        }
        let source = Some(source);
        Self(Arc::new(Shared { made: OnceLock::new(), source, brief: brief.into(), summary, ui: false }))
    }

    /// Whether they have been read, so that nobody has to wait for them.
    pub fn are_read(&self) -> bool {
        self.0.made.get().is_some()
    }

    /// Reads them, if nobody has needed them yet.
    pub fn read(&self) {
        let _: &[Tool] = self;
    }

    /// Whether these are the very same, not only equal ones.
    pub fn are_those(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn len(&self) -> usize {
        self.0.made.get().map_or_else(|| self.brief().count, Vec::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of all definitions together.
    pub fn bytes(&self) -> usize {
        self.brief().bytes
    }

    /// What can be known of them without reading them, except the summary.
    pub fn brief(&self) -> &ToolsBrief {
        self.0.brief.get_or_init(|| ToolsBrief::of(self))
    }

    /// The summary: what the server is for, gathered from the names of its tools.
    pub fn summary(&self) -> &str {
        self.0.summary.get_or_init(|| summary(self.names().iter().map(AsRef::as_ref)))
    }

    /// The brief to save, so that it is known before they are read the next time.
    pub fn brief_to_save(&self) -> ToolsBrief {
        ToolsBrief { summary: self.summary().to_owned(), ..self.brief().clone() }
    }

    /// Whether some of them say something about apps.
    pub fn have_ui(&self) -> bool {
        self.0.ui
    }

    /// Whether it is known of tools that are not read that no definition has hidden characters.
    pub(super) fn are_visible(&self) -> bool {
        self.0.source.as_ref().is_some_and(|source| source.are_visible())
    }

    /// Whether the search index of these tools of a server is stored: then they need not be read for it.
    pub fn have_index(&self, server: &ServerName) -> bool {
        self.0.source.as_ref().is_some_and(|source| source.have_index(server))
    }

    /// Whether these tools of a server need not be read in advance: a search does not need them, and any
    /// other use reads them in a moment.
    pub fn can_wait(&self, server: &ServerName) -> bool {
        !self.are_read() && self.bytes() <= MOMENT && self.have_index(server)
    }

    /// The stored search index, as it was saved; `None` also if it is damaged.
    pub fn index(&self, server: &ServerName) -> Option<Bytes> {
        self.0.source.as_ref()?.index(server)
    }

    /// The names, in their order.
    pub fn names(&self) -> Vec<Cow<'_, str>> {
        match self.unread() {
            Some(source) => source.names().into_iter().map(Cow::Owned).collect(),
            None => self.iter().map(|tool| Cow::Borrowed(tool.name.as_str())).collect(),
        }
    }

    /// Their source, if they have not been read.
    fn unread(&self) -> Option<&dyn ToolSource> {
        self.0.source.as_deref().filter(|_| !self.are_read())
    }
}

impl ToolsBrief {
    fn of(tools: &[Tool]) -> Self {
        let names = || tools.iter().map(|tool| &tool.name);
        Self {
            count: tools.len(),
            bytes: tools.iter().map(|tool| tool.definition.len()).sum(),
            longest_name: names().try_fold(0, |most, name| is_clean(name).then(|| most.max(name.len()))),
            first: names().take(FIRST_NAMES).cloned().collect(),
            summary: String::new(),
        }
    }
}

impl From<Vec<Tool>> for Tools {
    fn from(mut tools: Vec<Tool>) -> Self {
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        tools.truncate(size_limit::ITEMS);
        tools.shrink_to_fit();
        let ui = tools.iter().any(|tool| tool.ui.is_some());
        let (brief, summary) = Default::default();
        Self(Arc::new(Shared { made: tools.into(), source: None, brief, summary, ui }))
    }
}

impl Default for Tools {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl Deref for Tools {
    type Target = [Tool];

    fn deref(&self) -> &[Tool] {
        let read = || self.0.source.as_ref().map(|source| source.read()).unwrap_or_default();
        self.0.made.get_or_init(read)
    }
}

impl<'a> IntoIterator for &'a Tools {
    type Item = &'a Tool;
    type IntoIter = std::slice::Iter<'a, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Tools {
    fn eq(&self, other: &Self) -> bool {
        match (self.unread(), other.unread()) {
            _ if self.are_those(other) => true,
            // If a server lists the same again, the stored tools need not be brought into memory.
            (Some(source), None) => source.are(other),
            (None, Some(source)) => source.are(self),
            _ => **self == **other,
        }
    }
}

impl Eq for Tools {}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.made.get() {
            Some(tools) => tools.fmt(f),
            None => self.brief().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    struct Source;

    impl ToolSource for Source {
        fn read(&self) -> Vec<Tool> {
            ["a", "b"].map(|name| Tool::parse(Bytes::from(format!(r#"{{"name":"{name}"}}"#))).unwrap()).into()
        }

        fn names(&self) -> Vec<String> {
            vec!["a".to_owned(), "b".to_owned()]
        }

        fn are_visible(&self) -> bool {
            true
        }

        fn are(&self, tools: &[Tool]) -> bool {
            self.read() == tools
        }

        fn have_index(&self, _: &ServerName) -> bool {
            false
        }

        fn index(&self, _: &ServerName) -> Option<Bytes> {
            None
        }
    }

    #[test]
    fn remembered_tools_are_read_when_they_are_needed_and_not_before() {
        let read: Tools = Source.read().into();
        let saved = read.brief_to_save();
        let tools = Tools::later(saved.clone(), Box::new(Source));
        assert_eq!((tools.len(), tools.bytes(), tools.names().len()), (2, 24, 2));
        assert_eq!((saved.longest_name, &saved.first[..]), (Some(1), &["a".to_owned(), "b".to_owned()][..]));
        assert_eq!((tools.summary(), &*saved.summary), ("a b", "a b"));
        let clone = tools.clone();
        assert!(tools == clone && tools == read);
        assert!(tools != Vec::new().into());
        assert!(!tools.are_read());
        assert_eq!((clone[1].name.as_str(), tools.brief()), ("b", read.brief()));
        assert!(tools.are_read() && tools.names() == ["a", "b"]);
    }
}
