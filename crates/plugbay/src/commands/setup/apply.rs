//! Makes the changes of a plan. Each is recorded in the journal first.

use std::path::{Path, PathBuf};

use super::{
    plan::{Edit, HostPlan},
    program::{Failure, HostProgram},
    skill::Skill,
};
use crate::journal::{ChangeError, Journal, Part, Target};

/// Makes changes on behalf of one command.
#[derive(Debug)]
pub struct Writer<'a> {
    pub journal: &'a mut Journal,
    /// The command that the journal names.
    pub command: &'static str,
    /// The folder in which a host's own command runs.
    pub folder: &'a Path,
}

impl Writer<'_> {
    /// Writes a file of plugbay's own.
    pub fn configuration(&mut self, edit: &Edit) -> Result<(), ChangeError> {
        self.write(None, Part::Configuration, edit)
    }

    /// Changes the files of one host. Its permission rules come first, so that no tool is ever without its
    /// rule.
    pub fn host(&mut self, plan: &HostPlan) -> Result<(), ChangeError> {
        let id = Some(&plan.host.id);
        for edit in &plan.permissions {
            self.write(id, Part::Permissions, edit)?;
        }
        if !plan.servers.changes() {
            return Ok(());
        }
        // Nobody else writes a file that does not exist yet.
        let program = plan.servers.old.as_ref().and_then(|_| HostProgram::of(plan.host, self.folder));
        match program {
            Some(program) => self.by_program(plan, &program),
            None => self.write(id, Part::Servers, &plan.servers),
        }
    }

    /// Installs the skill as a link to plugbay's own copy.
    pub fn skill(&mut self, host: &str, skill: &Skill) -> Result<(), ChangeError> {
        let host = host.to_owned();
        self.write(Some(&host), Part::Skill, &skill.copy)?;
        let target = self.target(Some(&host), Part::Skill, &skill.link);
        self.journal.link(target, &skill.copy.path).map(drop)
    }

    fn by_program(&mut self, plan: &HostPlan, program: &HostProgram) -> Result<(), ChangeError> {
        let Edit { path, old, .. } = &plan.servers;
        let target = self.target(Some(&plan.host.id), Part::Servers, path);
        let expected = old.as_deref().map(str::as_bytes);
        let mut is_silent = false;
        let run = || {
            program.wire(plan.own.as_ref(), &plan.moved).map_err(|failure| {
                is_silent = matches!(failure, Failure::Silent(_));
                failure.to_string()
            })
        };
        match self.journal.by_program(target, expected, run) {
            // The command was killed, so plugbay changes the file itself, if it is still as the user has seen
            // it.
            Err(_) if is_silent => self.write(Some(&plan.host.id), Part::Servers, &plan.servers),
            done => done.map(drop),
        }
    }

    fn write(&mut self, host: Option<&String>, part: Part, edit: &Edit) -> Result<(), ChangeError> {
        if !edit.changes() {
            return Ok(());
        }
        let expected = edit.old.as_deref().map(str::as_bytes);
        let target = self.target(host, part, &edit.path);
        self.journal.write(target, expected, edit.new.as_bytes()).map(drop)
    }

    fn target(&self, host: Option<&String>, part: Part, path: &Path) -> Target {
        Target { command: self.command, host: host.cloned(), part, path: PathBuf::from(path) }
    }
}
