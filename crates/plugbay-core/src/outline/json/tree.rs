//! Trees of files as JSON: objects with `name`, `type` and `children`.

use super::super::{page::Page, text::listing::Listing};
use crate::{
    shape::profile::{Profile, ROOT},
    text::string_start,
    wire::{Cursor, ScanError, Walk},
};

/// The longest name of a file or folder; a longer one is cut.
const NAME: usize = 255;

/// Writes counts of folders and kinds of files, if the JSON is a tree of files.
pub(super) fn write(page: &mut Page, json: &[u8], profile: &Profile) -> bool {
    if !is_tree(profile) {
        return false;
    }
    let mut reader = Reader { json, listing: Listing::default() };
    let _ = reader.value(&mut Cursor::new(json, 0), Place::ROOT); // it has been read before
    let root = &profile.nodes[ROOT];
    page.line(if root.arrays.count > 0 {
        "tree: .[] | {name, type, children?: […]}; all entries: .. | objects | select(.name)"
    } else {
        "tree: {name, type, children?: […]}; all entries: .. | objects | select(.name)"
    });
    reader.listing.write(page);
    true
}

fn is_tree(profile: &Profile) -> bool {
    let root = &profile.nodes[ROOT];
    let Some(entry) =
        root.arrays.item.map_or((root.objects.count > 0).then_some(root), |id| Some(&profile.nodes[id]))
    else {
        return false;
    };
    let child = |name: &[u8]| {
        let key = entry.objects.keys.iter().find(|key| *key.raw == *name)?;
        Some(&profile.nodes[key.node?])
    };
    let is_type = |value: &[u8]| {
        matches!(value, b"file" | b"directory" | b"dir" | b"folder" | b"symlink" | b"blob" | b"tree")
    };
    let types = child(b"type").and_then(|types| types.strings.distinct.as_ref());
    child(b"name").is_some_and(|name| name.strings.count > 0)
        && types.is_some_and(|types| !types.is_empty() && types.iter().all(|(value, _)| is_type(value)))
        && child(b"children").is_some_and(|children| children.arrays.count > 0)
}

/// Reads entries into a listing.
struct Reader<'a> {
    json: &'a [u8],
    listing: Listing,
}

/// The place of an entry in the tree.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The entry at the top of the tree that contains this one.
    top: Option<&'a str>,
    depth: u32,
}

impl<'a> Place<'a> {
    const ROOT: Self = Self { top: None, depth: 0 };

    fn inside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// The place of the children of an entry with this name. Files are not counted by a single root.
    fn below(self, name: &'a str) -> Self {
        let top = if self.depth > 0 { self.top.or(Some(name)) } else { None };
        Self { top, depth: self.depth + 1 }
    }
}

impl Reader<'_> {
    /// Reads one entry, or an array of entries.
    fn value(&mut self, cursor: &mut Cursor<'_>, place: Place<'_>) -> Result<(), ScanError> {
        match cursor.peek()? {
            b'[' => {
                let mut elements = Walk::open(cursor, b'[', place.depth)?;
                while elements.advance(cursor)? {
                    self.value(cursor, place.inside())?;
                }
            }
            b'{' => self.entry(cursor, place)?,
            _ => _ = cursor.value(place.depth)?,
        }
        Ok(())
    }

    /// Members may come in any order, so children wait until the name is known.
    fn entry(&mut self, cursor: &mut Cursor<'_>, place: Place<'_>) -> Result<(), ScanError> {
        let (mut name, mut children, mut is_folder) = (String::new(), None, false);
        let mut members = Walk::open(cursor, b'{', place.depth)?;
        while members.advance(cursor)? {
            let (key, _) = cursor.string()?;
            cursor.expect(b':')?;
            let first = cursor.peek()?;
            let start = cursor.at();
            match (&self.json[key.start + 1..key.end - 1], first) {
                (b"name", b'"') => {
                    let (span, _) = cursor.string()?;
                    name = string_start(&self.json[span.start + 1..span.end - 1], NAME).0;
                }
                (b"children", b'[') if !name.is_empty() => {
                    is_folder = true;
                    self.value(cursor, place.below(&name))?;
                }
                (b"children", b'[') => {
                    is_folder = true;
                    children = Some(start);
                    cursor.value(place.depth + 1)?;
                }
                (b"type", b'"') => {
                    let (span, _) = cursor.string()?;
                    let kind = &self.json[span];
                    is_folder |= matches!(kind, b"\"directory\"" | b"\"dir\"" | b"\"folder\"" | b"\"tree\"");
                }
                _ => _ = cursor.value(place.depth + 1)?,
            }
        }
        if let Some(start) = children {
            self.value(&mut Cursor::new(self.json, start), place.below(&name))?;
        }
        if place.depth > 0 {
            self.listing.note(place.top, &name, is_folder);
        }
        Ok(())
    }
}
