//! Two callers of one gateway, told apart by their tokens.

use plugbay_testkit::{Config, HttpGateway, Workspace, write_program};

use crate::trial::Trial;

pub(crate) const ONE: &str = "Bearer token-of-caller-number-one-0123456789";
pub(crate) const TWO: &str = "Bearer token-of-caller-number-two-0123456789";

/// Starts `plugbay serve --http` for both callers.
pub(crate) fn serve(trial: &Trial, workspace: &Workspace, config: &Config) -> HttpGateway {
    serve_with(trial, workspace, config, None)
}

/// Like `serve`, with a limit of descriptors.
pub(crate) fn serve_with(
    trial: &Trial,
    workspace: &Workspace,
    config: &Config,
    descriptors: Option<usize>,
) -> HttpGateway {
    let file = workspace.path().join("tokens");
    let tokens = [ONE, TWO].map(|header| header.trim_start_matches("Bearer ")).join("\n");
    std::fs::write(&file, tokens).expect("tokens");
    let options = ["--token-file", &file.to_string_lossy()];
    let own;
    let trial = match descriptors {
        Some(descriptors) => {
            let program = workspace.path().join("limited");
            let script =
                format!("#!/bin/sh\nulimit -n {descriptors}\nexec '{}' \"$@\"\n", trial.gateway.display());
            write_program(&program, &script);
            own = Trial { gateway: program, ..*trial };
            &own
        }
        None => trial,
    };
    trial.serve_http_as(workspace, config, &options, &[("authorization", ONE)])
}
