//! The tools in a cache file: an index with their names and places, then the definitions, then their search
//! index. They are read when they are needed.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use bytes::{BufMut as _, Bytes, BytesMut};
use plugbay_core::{
    catalog::{Tool, ToolPlaces, ToolSource, Tools, ToolsBrief},
    name::ServerName,
    search::{INDEX_VERSION, StoredIndex},
};
use serde::{Deserialize, Serialize};

use super::stored::SMALL;
use crate::embeddings;
use crate::files;

/// The place of a list's tools after the head, and the facts about them that are known without reading them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ToolsPlace {
    brief: ToolsBrief,
    /// Whether some have app metadata: then the whole list is read at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ui: bool,
    /// Whether no definition has hidden characters: then they need not be read to remove such characters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    visible: bool,
    /// Where the index begins, counted from the end of the head.
    start: u64,
    /// The length of the index. The definitions follow it.
    index: u64,
    /// The checksum of index and definitions.
    checksum: u64,
    /// Only for lists that are worth it. Earlier versions do not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search: Option<SearchPlace>,
}

/// The search index of a list, after its definitions.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SearchPlace {
    version: u32,
    /// The name under which the tools were indexed.
    server: String,
    length: u64,
    checksum: u64,
}

/// The names of the tools in order. For each, the length of its definition and the places of its name and
/// description.
#[derive(Serialize, Deserialize)]
struct ToolsIndex {
    names: Vec<String>,
    places: Vec<(u32, [u32; 4])>,
}

/// The bytes after the head of a cache file.
pub(super) enum Body {
    /// A small file was read whole.
    Read(Bytes),
    /// The file stays open, so that a writer that replaces it does not matter.
    Open { file: File, start: u64 },
}

impl Body {
    fn read(&self, start: u64, length: u64) -> io::Result<Bytes> {
        let damaged = || io::Error::new(io::ErrorKind::UnexpectedEof, "the file is too short");
        let behind = |before: u64| {
            let start = before.checked_add(start)?;
            Some(start..start.checked_add(length)?)
        };
        match self {
            Self::Read(bytes) => {
                let range = behind(0).filter(|range| range.end <= bytes.len() as u64).ok_or_else(damaged)?;
                let place = |at: u64| usize::try_from(at).map_err(|_| damaged());
                Ok(bytes.slice(place(range.start)?..place(range.end)?))
            }
            Self::Open { file, start: body } => {
                // The length is checked first: a damaged file must not reserve any amount of memory.
                let end = file.metadata()?.len();
                let range = behind(*body).filter(|range| range.end <= end).ok_or_else(damaged)?;
                let mut bytes = BytesMut::zeroed(usize::try_from(length).map_err(|_| damaged())?);
                file.read_exact_at(&mut bytes, range.start)?;
                Ok(bytes.freeze())
            }
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Read(bytes) => Self::Read(bytes.clone()),
            Self::Open { file, start } => Self::Open { file: file.try_clone()?, start: *start },
        })
    }
}

impl ToolsPlace {
    /// Adds tools to the body; `None` if they cannot be saved. If the previous file has an index of the same
    /// tools, that is copied.
    pub(super) fn write(
        server: &str,
        tools: &Tools,
        body: &mut Vec<u8>,
        before: &[SavedTools],
    ) -> Option<Self> {
        let place = |tool: &Tool| Some((u32::try_from(tool.definition.len()).ok()?, tool.places().numbers()));
        let places = tools.iter().map(place).collect::<Option<Vec<_>>>()?;
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        let start = body.len();
        serde_json::to_writer(&mut *body, &ToolsIndex { names, places }).ok()?;
        let index = body.len() - start;
        body.reserve(tools.iter().map(|tool| tool.definition.len()).sum());
        for tool in tools {
            body.put_slice(&tool.definition);
        }
        let (ui, visible) = (tools.have_ui(), !tools.have_hidden());
        let checksum = checksum(&body[start..]);
        let brief = tools.brief_to_save();
        let mut place =
            Self { brief, ui, visible, start: start as u64, index: index as u64, checksum, search: None };
        if place.is_worth_an_index() {
            let known = before.iter().find_map(|saved| saved.index_of(&place, server));
            let index =
                known.unwrap_or_else(|| StoredIndex::write(server, tools, embeddings::table()).into());
            place.search = Some(SearchPlace {
                version: INDEX_VERSION,
                server: server.to_owned(),
                length: index.len() as u64,
                checksum: self::checksum(&index),
            });
            body.put_slice(&index);
        }
        Some(place)
    }

    /// Whether their search index is saved. For few tools it is quickly made, and lists with apps are read at
    /// once.
    fn is_worth_an_index(&self) -> bool {
        !self.ui && self.brief.bytes as u64 > SMALL
    }

    /// Whether an earlier version has saved these tools without a usable index.
    pub(super) fn lacks_index(&self) -> bool {
        self.is_worth_an_index() && self.search.as_ref().is_none_or(|search| search.version < INDEX_VERSION)
    }

    fn search_of(&self, server: &str) -> Option<&SearchPlace> {
        self.search.as_ref().filter(|search| search.version == INDEX_VERSION && search.server == server)
    }

    fn read_index(&self, server: &str, body: &Body) -> Option<Bytes> {
        let search = self.search_of(server)?;
        let index = body.read(self.start.checked_add(self.length())?, search.length).ok()?;
        (checksum(&index) == search.checksum).then_some(index)
    }

    /// The tools, to be read when they are needed; `None` if damage shows already.
    pub(super) fn tools(self, body: &Body, path: &Path) -> Option<Tools> {
        if self.brief.count == 0 {
            return Some(Vec::new().into());
        }
        if self.ui {
            return self.read(body).map(Tools::from);
        }
        let brief = self.brief.clone();
        let source = Source { place: self, body: body.try_clone().ok()?, path: path.to_owned() };
        Some(Tools::later(brief, Box::new(source)))
    }

    fn length(&self) -> u64 {
        self.index.saturating_add(self.brief.bytes as u64)
    }

    /// Reads the tools; `None` if they are damaged.
    pub(super) fn read(&self, body: &Body) -> Option<Vec<Tool>> {
        let bytes = body.read(self.start, self.length()).ok()?;
        if checksum(&bytes) != self.checksum {
            return None;
        }
        let index = usize::try_from(self.index).ok()?;
        let (index, definitions) = (bytes.slice(..index), bytes.slice(index..));
        let ToolsIndex { places, .. } = serde_json::from_slice(&index).ok()?;
        let mut start = 0;
        let tool = |(length, numbers): (u32, [u32; 4])| {
            let end = start + length as usize;
            let definition = definitions.get(start..end).map(|_| definitions.slice(start..end))?;
            start = end;
            if self.ui {
                Tool::parse(definition)
            } else {
                Tool::remembered(definition, ToolPlaces::from_numbers(numbers))
            }
        };
        let tools = places.into_iter().map(tool).collect::<Option<Vec<_>>>()?;
        (tools.len() == self.brief.count).then_some(tools)
    }
}

/// The tools in a file that is being replaced.
pub(super) struct SavedTools {
    pub(super) place: ToolsPlace,
    pub(super) body: Body,
}

impl SavedTools {
    /// The index of these tools in the previous file, if it was made for the same tools of the same server.
    fn index_of(&self, tools: &ToolsPlace, server: &str) -> Option<Bytes> {
        let same = (self.place.checksum, self.place.length()) == (tools.checksum, tools.length());
        self.place.read_index(server, &self.body).filter(|_| same)
    }
}

struct Source {
    place: ToolsPlace,
    body: Body,
    path: PathBuf,
}

impl ToolSource for Source {
    fn read(&self) -> Vec<Tool> {
        // Without them the server has no tools until it lists again.
        self.place.read(&self.body).unwrap_or_else(|| {
            files::move_aside(&self.path, "the lists of a server", &"it cannot be parsed");
            Vec::new()
        })
    }

    fn names(&self) -> Vec<String> {
        let index = self.body.read(self.place.start, self.place.index).ok();
        let index = index.and_then(|index| serde_json::from_slice(&index).ok());
        index.map(|ToolsIndex { names, .. }| names).unwrap_or_default()
    }

    fn are_visible(&self) -> bool {
        self.place.visible
    }

    fn are(&self, tools: &[Tool]) -> bool {
        let ToolsPlace { brief, start, index, .. } = &self.place;
        let bytes: usize = tools.iter().map(|tool| tool.definition.len()).sum();
        if (brief.count, brief.bytes) != (tools.len(), bytes) {
            return false;
        }
        let Ok(saved) = self.body.read(start.saturating_add(*index), bytes as u64) else { return false };
        let mut rest = &saved[..];
        // Each is one JSON object, so the same bytes are the same definitions.
        tools.iter().all(|tool| {
            let (here, behind) = rest.split_at(tool.definition.len());
            rest = behind;
            here == tool.definition
        })
    }

    fn have_index(&self, server: &ServerName) -> bool {
        self.place.search_of(server.as_str()).is_some()
    }

    fn index(&self, server: &ServerName) -> Option<Bytes> {
        self.place.read_index(server.as_str(), &self.body)
    }
}

/// A checksum that detects damaged files. It gives no protection against deliberate changes.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let sum = mix(sum, u64::from_le_bytes(last));
    sum ^ (sum >> 32)
}
