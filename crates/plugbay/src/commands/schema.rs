//! `plugbay schema`: the JSON Schema of configuration files, for editors.

use std::process::ExitCode;

use crate::{config, output::Output};

/// Print the JSON Schema of the configuration file.
#[derive(Debug, clap::Args)]
pub struct SchemaArgs {}

pub fn schema(output: Output) -> ExitCode {
    output.raw(config::schema_json());
    ExitCode::SUCCESS
}
