//! Writes the binary content of a result to files, so that the user need not read base64.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::CommandError;

/// Writes each image, audio clip and blob to a file in the folder, or in a new temporary folder that only the
/// user may read. Returns the files by the index of the item in `content`.
pub(super) fn save(
    result: &[u8],
    folder: Option<&Path>,
    tool: &str,
) -> Result<BTreeMap<usize, PathBuf>, CommandError> {
    let result: Value = serde_json::from_slice(result).unwrap_or_default();
    let items = result["content"].as_array().into_iter().flatten().enumerate();
    let binary: Vec<_> = items.filter_map(|(index, item)| Some((index, Binary::of(item)?))).collect();
    if binary.is_empty() {
        return Ok(BTreeMap::new());
    }
    let failed = |error: io::Error| CommandError::failed(format!("the result cannot be saved: {error}"));
    let folder = match folder {
        Some(folder) => fs::create_dir_all(folder).map(|()| folder.to_owned()),
        None => tempfile::Builder::new().prefix("plugbay-").tempdir().map(tempfile::TempDir::keep),
    };
    let folder = folder.map_err(failed)?;
    let mut saved = BTreeMap::new();
    for (index, Binary { bytes, extension }) in binary {
        let path = write(&folder, &stem(tool), extension, &bytes).map_err(failed)?;
        saved.insert(index, path);
    }
    Ok(saved)
}

struct Binary {
    bytes: Vec<u8>,
    extension: &'static str,
}

impl Binary {
    /// `None` for text, and for anything that is not base64.
    fn of(item: &Value) -> Option<Self> {
        let source = if item["type"] == "resource" { &item["resource"] } else { item };
        let data = source["data"].as_str().or(source["blob"].as_str())?;
        let bytes = BASE64_STANDARD.decode(data).ok()?;
        Some(Self { bytes, extension: extension(source["mimeType"].as_str().unwrap_or_default()) })
    }
}

/// Writes a file, but never over an existing one.
fn write(folder: &Path, stem: &str, extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    for number in 1.. {
        let path = folder.join(format!("{stem}-{number}.{extension}"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return file?.write_all(bytes).map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The tool's name as a valid file name.
fn stem(tool: &str) -> String {
    tool.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect()
}

fn extension(mime_type: &str) -> &'static str {
    match mime_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/ogg" => "ogg",
        "video/mp4" => "mp4",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" => "zip",
        "text/plain" => "txt",
        "text/html" => "html",
        "text/csv" => "csv",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_content_of_a_result_is_written_to_new_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep");
        let result = br#"{"content":[
            {"type":"text","text":"x"},
            {"type":"image","mimeType":"image/png","data":"UE5H"},
            {"type":"image","mimeType":"image/png","data":"no base64!"},
            {"type":"resource","resource":{"uri":"a:b","mimeType":"application/pdf","blob":"UERG"}}]}"#;
        let saved = save(result, Some(&folder), "shot.take/it").unwrap();
        let names = |saved: &BTreeMap<usize, PathBuf>| -> Vec<(usize, String)> {
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            saved.iter().map(|(index, path)| (*index, name(path))).collect()
        };
        assert_eq!(
            names(&saved),
            [(1, "shot-take-it-1.png".to_owned()), (3, "shot-take-it-1.pdf".to_owned())]
        );
        assert_eq!(fs::read(&saved[&1]).unwrap(), b"PNG");
        let again = save(result, Some(&folder), "shot.take/it").unwrap();
        assert_eq!(names(&again)[0].1, "shot-take-it-2.png");
        assert!(save(br#"{"content":[]}"#, Some(&root.path().join("none")), "t").unwrap().is_empty());
        assert!(!root.path().join("none").exists());
    }
}
