//! `plugbay man`: manual pages, one per command.

use std::{fs, path::PathBuf, process::ExitCode};

use clap_mangen::Man;

use super::{CommandError, Context};

/// Print the manual page, or write a page per command to a folder.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ManArgs {
    /// The folder to write plugbay.1, plugbay-list.1 and so on to.
    folder: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  plugbay man | man -l -
  plugbay man ~/.local/share/man/man1";

pub fn man(context: &Context, args: &ManArgs, command: clap::Command) -> Result<ExitCode, CommandError> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
        context.output.raw(page);
        return Ok(ExitCode::SUCCESS);
    };
    let failed = |error| CommandError::failed(format!("cannot write to {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    let pages = pages(&command);
    clap_mangen::generate_to(command, folder).map_err(failed)?;
    context.output.note(format!("wrote {pages} pages to {}", folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// The pages of a command and of all commands below it.
fn pages(command: &clap::Command) -> usize {
    1 + command.get_subcommands().filter(|below| !below.is_hide_set()).map(pages).sum::<usize>()
}
