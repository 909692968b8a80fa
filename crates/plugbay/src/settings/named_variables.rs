//! Which environment variables are set, for checks that must not see their values.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

use plugbay_upstream::process::is_inherited;

/// The environment variables of this process by name. Values are kept only of those that hold no secrets.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    pub names: BTreeSet<String>,
    /// The variables that every server inherits.
    pub inherited: BTreeSet<String>,
    plain: BTreeMap<String, String>,
}

/// Switches of Claude Code that decide whether it defers tools.
const PLAIN: [&str; 2] = ["ENABLE_TOOL_SEARCH", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"];

impl Variables {
    pub fn of(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut variables = Self::default();
        for (name, value) in all {
            if is_inherited(name.as_ref(), value.as_ref()) {
                variables.inherited.insert(name.clone());
            }
            if PLAIN.contains(&name.as_str()) {
                variables.plain.insert(name.clone(), value);
            }
            variables.names.insert(name);
        }
        variables
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.plain.get(name).map(String::as_str)
    }
}

pub fn variables() -> Variables {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    Variables::of(env::vars_os().map(|(name, value)| (text(name), text(value))))
}
