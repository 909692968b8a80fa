//! `plugbay completions`: a script that completes commands and options in a shell.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::output::Output;

/// Print a script for completions in a shell.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  plugbay completions bash > ~/.local/share/bash-completion/completions/plugbay
  plugbay completions zsh > ~/.zfunc/_plugbay
  plugbay completions fish > ~/.config/fish/completions/plugbay.fish";

pub fn completions(output: Output, args: &CompletionsArgs, mut command: clap::Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "plugbay", &mut script);
    output.raw(script);
    ExitCode::SUCCESS
}
