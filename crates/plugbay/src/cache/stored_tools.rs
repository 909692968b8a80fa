//! The tools in a cache file: an index with their names and places, then the definitions. Read when they are needed.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use bytes::{BufMut as _, Bytes, BytesMut};
use plugbay_core::catalog::{Tool, ToolPlaces, ToolSource, Tools, ToolsBrief};
use serde::{Deserialize, Serialize};

use super::move_aside;

/// Where the tools of a list are, behind the head, and what is known of them without reading them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ToolsPlace {
    brief: ToolsBrief,
    /// Some say something about apps: these are read at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ui: bool,
    /// No definition has hidden characters: these need not be read to be cleaned of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    visible: bool,
    /// Where the index begins, counted from the end of the head.
    start: u64,
    /// The length of the index. The definitions follow it.
    index: u64,
    /// Of index and definitions.
    checksum: u64,
}

/// The names of tools in their order; of each the length of its definition, and where in it name and description are.
#[derive(Serialize, Deserialize)]
struct ToolsIndex {
    names: Vec<String>,
    places: Vec<(u32, [u32; 4])>,
}

/// The bytes behind the head of a cache file.
pub(super) enum Body {
    /// A small file was read whole.
    Read(Bytes),
    /// The file stays open, so that a writer that replaces it does not disturb.
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

    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Read(bytes) => Self::Read(bytes.clone()),
            Self::Open { file, start } => Self::Open { file: file.try_clone()?, start: *start },
        })
    }
}

impl ToolsPlace {
    /// Adds tools to what stands behind the head; `None` if they cannot be saved.
    pub(super) fn write(tools: &Tools, body: &mut Vec<u8>) -> Option<Self> {
        let place = |tool: &Tool| Some((u32::try_from(tool.definition.len()).ok()?, tool.places().numbers()));
        let places = tools.iter().map(place).collect::<Option<Vec<_>>>()?;
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        let start = body.len();
        serde_json::to_writer(&mut *body, &ToolsIndex { names, places }).ok()?;
        let index = body.len() - start;
        for tool in tools {
            body.put_slice(&tool.definition);
        }
        let (ui, visible) = (tools.have_ui(), !tools.have_hidden());
        let checksum = checksum(&body[start..]);
        let brief = tools.brief_to_save();
        Some(Self { brief, ui, visible, start: start as u64, index: index as u64, checksum })
    }

    /// The tools, to be read when they are needed. `None` if they are damaged, as far as that is seen at once.
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

    /// `None` if they are damaged.
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

struct Source {
    place: ToolsPlace,
    body: Body,
    path: PathBuf,
}

impl ToolSource for Source {
    fn read(self: Box<Self>) -> Vec<Tool> {
        // Without them the server has no tools until it lists again.
        self.place.read(&self.body).unwrap_or_else(|| {
            move_aside(&self.path);
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
}

/// Tells a damaged file; against somebody who wants to deceive it does not help.
fn checksum(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let sum = mix(sum, u64::from_le_bytes(last));
    sum ^ (sum >> 32)
}
