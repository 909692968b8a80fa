//! `plugbay schema`: what a configuration file may hold, for editors.

use crate::{config, output::Output};

pub fn schema(output: Output) {
    output.raw(config::schema_json());
}
