//! plugbay's own configuration in JSONC and YAML: read whole, with every problem at a place in the file.
#![no_main]

use std::{fs, path::PathBuf, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use plugbay::config::{Paths, load};

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

// The first line says `yaml` or `jsonc`.
fuzz_target!(|input: &str| {
    let (syntax, text) = input.split_once('\n').unwrap_or(("", input));
    let yaml = syntax == "yaml";
    let folder = FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("plugbay-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    });
    let file = folder.join(if yaml { "config.yaml" } else { "config.jsonc" });
    fs::write(&file, text).unwrap();
    let paths = Paths { user_file: None, state_folder: None, home: None, start: folder.clone() };
    let settings = load(Some(&file), &paths, &|_| None);
    drop(format!("{settings:?}"));
});
