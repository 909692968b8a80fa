//! `plugbay status`: which gateways run, for which hosts, and how their servers are.

use std::process::ExitCode;

use serde::Serialize;

use super::{CommandError, Context};
use crate::status_file::{self, Running};

#[derive(Debug, Serialize)]
pub struct Status {
    /// The oldest first.
    pub gateways: Vec<Running>,
    /// In seconds since 1970.
    #[serde(skip)]
    pub now: u64,
}

pub fn status(context: &Context, as_json: bool) -> Result<ExitCode, CommandError> {
    let folder = context.source.paths.running().ok_or_else(|| {
        CommandError::failed("gateways have no folder to tell in that they run")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    let unreadable =
        |error| CommandError::failed(format!("it cannot be told what runs: {}: {error}", folder.display()));
    let mut gateways = Vec::new();
    for found in status_file::read(&folder).map_err(unreadable)? {
        match found {
            Ok(running) => gateways.push(running),
            Err(page) => {
                let page = page.display();
                context.output.note(format!("a gateway of another version runs, and wrote {page}"));
            }
        }
    }
    gateways.sort_by_key(|running| (running.since, running.pid));
    let failed = gateways.iter().flat_map(|running| &running.servers).any(|server| server.trouble.is_some());
    context.output.show(&Status { gateways, now: status_file::now() }, as_json);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
