//! A host's own command for changing its file: a host that runs may write the file itself at any time.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use plugbay_hosts::{
    edit::OwnEntry,
    known::{Host, OwnCommand},
    read::Found,
};

use crate::settings;

/// The command of one host on this machine.
#[derive(Debug)]
pub struct HostProgram {
    host: &'static Host,
    command: &'static OwnCommand,
    path: PathBuf,
    /// Where it runs for an entry of the user.
    folder: PathBuf,
}

impl HostProgram {
    /// `None` if the host has no such command, or its program is not on the search path.
    pub fn of(host: &'static Host, folder: &Path) -> Option<Self> {
        let command = host.command.as_ref()?;
        let path = settings::find_program(&command.program)?;
        Some(Self { host, command, path, folder: folder.to_owned() })
    }

    /// What a user would type, for messages.
    pub fn name(&self) -> String {
        format!("{} mcp", self.command.program)
    }

    /// Adds plugbay's entry, then removes the entries that move.
    pub fn wire(&self, own: Option<&OwnEntry>, moved: &[Found]) -> Result<(), String> {
        if let Some(own) = own {
            self.run(&self.command.add_args(self.host, own), &self.folder)?;
        }
        for found in moved {
            let mut args = self.command.remove_args(&found.entry.name);
            // The entries of a project are in another scope, and the program finds the project by its folder.
            let folder = found.project.as_ref().map_or(self.folder.clone(), PathBuf::from);
            if found.project.is_some() {
                args.iter_mut().filter(|arg| *arg == "user").for_each(|arg| "local".clone_into(arg));
            }
            self.run(&args, &folder)?;
        }
        Ok(())
    }

    /// Removes one entry of the user.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        self.run(&self.command.remove_args(name), &self.folder)
    }

    fn run(&self, args: &[String], folder: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.path);
        command.args(args).current_dir(folder).stdin(Stdio::null());
        let output =
            command.output().map_err(|error| format!("cannot start {}: {error}", self.path.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stderr, output.stdout].concat();
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        Err(format!("`{}` failed: {}", self.name(), line.trim()))
    }
}
