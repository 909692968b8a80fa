//! Trees of files as JSON: objects with `name`, `type` and `children`.

use super::super::{page::Page, text::listing::Listing};
use crate::{
    shape::profile::{Profile, ROOT},
    text::string_start,
    wire::{Cursor, ScanError, Walk},
};

/// A longer name or folder is cut.
const NAME: usize = 255;

/// Writes counts of folders and kinds of files, if the JSON is a tree of files.
pub(super) fn write(page: &mut Page, json: &[u8], profile: &Profile) -> bool {
    if !is_tree(profile) {
        return false;
    }
    let mut listing = Listing::default();
    let _ = value(&mut Cursor::new(json, 0), json, None, 0, &mut listing);
    let root = &profile.nodes[ROOT];
    page.line(if root.arrays.count > 0 {
        "tree: .[] | {name, type, children?: […]}; all entries: .. | objects | select(.name)"
    } else {
        "tree: {name, type, children?: […]}; all entries: .. | objects | select(.name)"
    });
    listing.write(page);
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

/// Reads one entry, or an array of entries. `top` is the entry at the top of the tree in which this one is.
fn value(
    cursor: &mut Cursor<'_>,
    json: &[u8],
    top: Option<&str>,
    depth: u32,
    out: &mut Listing,
) -> Result<(), ScanError> {
    match cursor.peek()? {
        b'[' => {
            let mut elements = Walk::open(cursor, b'[', depth)?;
            while elements.advance(cursor)? {
                value(cursor, json, top, depth + 1, out)?;
            }
        }
        b'{' => entry(cursor, json, top, depth, out)?,
        _ => _ = cursor.value(depth)?,
    }
    Ok(())
}

/// Members may come in any order, so children wait until the name is known.
fn entry(
    cursor: &mut Cursor<'_>,
    json: &[u8],
    top: Option<&str>,
    depth: u32,
    out: &mut Listing,
) -> Result<(), ScanError> {
    let (mut name, mut children, mut is_folder) = (String::new(), None, false);
    // A single root is no folder to count by.
    let below = |name: &str| (depth > 0).then(|| top.unwrap_or(name).to_owned());
    let mut members = Walk::open(cursor, b'{', depth)?;
    while members.advance(cursor)? {
        let (key, _) = cursor.string()?;
        cursor.expect(b':')?;
        let first = cursor.peek()?;
        let start = cursor.at();
        match (&json[key.start + 1..key.end - 1], first) {
            (b"name", b'"') => {
                let (span, _) = cursor.string()?;
                name = string_start(&json[span.start + 1..span.end - 1], NAME).0;
            }
            (b"children", b'[') if !name.is_empty() => {
                is_folder = true;
                value(cursor, json, below(&name).as_deref(), depth + 1, out)?;
            }
            (b"children", b'[') => {
                is_folder = true;
                children = Some(start);
                cursor.value(depth + 1)?;
            }
            (b"type", b'"') => {
                let (span, _) = cursor.string()?;
                is_folder |=
                    matches!(&json[span], b"\"directory\"" | b"\"dir\"" | b"\"folder\"" | b"\"tree\"");
            }
            _ => _ = cursor.value(depth + 1)?,
        }
    }
    if let Some(start) = children {
        value(&mut Cursor::new(json, start), json, below(&name).as_deref(), depth + 1, out)?;
    }
    if depth > 0 {
        out.note(top, &name, is_folder);
    }
    Ok(())
}
