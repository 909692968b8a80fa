//! plugbay's own configuration in JSONC and YAML: the whole text is read, and every problem has a position in
//! the file.
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
    for problem in &settings.diagnostics {
        drop((problem.to_string(), problem.one_line()));
        let Some(position) = problem.position else { continue };
        // The position right after the end of the file is also valid.
        let line = text.split('\n').nth(position.line.wrapping_sub(1)).expect("the line is in the file");
        assert!((1..=line.chars().count() + 1).contains(&position.column), "{problem}");
    }
});
