//! New names for tools, from the configuration.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use jsonc_parser::ast::Value;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{
    read::{At, Read},
    report::Report,
};

/// New names for tools, no two the same.
#[derive(Debug, Clone)]
pub(super) struct Renames(pub(super) BTreeMap<String, String>);

impl Read for Renames {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut renames = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for (tool, new) in BTreeMap::<String, At<String>>::read(value, report)? {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if new.value.is_empty() || !new.value.chars().all(is_plain) {
                report.invalid(
                    new.at,
                    "not a name that hosts accept",
                    "use letters, digits, `_`, `-` and `.`",
                );
            } else if !taken.insert(new.value.clone()) {
                report.invalid(new.at, "two tools get this name", "give each a name of its own");
            } else {
                renames.insert(tool, new.value);
            }
        }
        Some(Self(renames))
    }
}

impl JsonSchema for Renames {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Renames".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, String>::json_schema(generator)
    }
}
