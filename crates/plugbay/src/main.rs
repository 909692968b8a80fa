//! One plug panel for all your MCP servers.

use std::process::ExitCode;

fn main() -> ExitCode {
    plugbay::run()
}
