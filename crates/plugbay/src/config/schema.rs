//! The JSON Schema that editors use for completion and checking.

use schemars::generate::SchemaSettings;

use super::raw::ConfigFile;

/// The schema of a configuration file, as text that ends with a newline.
pub fn schema_json() -> String {
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<ConfigFile>();
    // The order of maps depends on features that other crates turn on; the text must not.
    let mut value = schema.to_value();
    value.sort_all_objects();
    let mut text = format!("{value:#}");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use super::*;

    /// Set `UPDATE_SCHEMA=1` to rewrite the file.
    #[test]
    fn the_published_schema_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plugbay.schema.json");
        if env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(&path, schema_json()).unwrap();
        }
        let published = fs::read_to_string(&path).unwrap_or_default();
        assert!(published == schema_json(), "run the tests with UPDATE_SCHEMA=1 and commit the result");
    }
}
