//! The permission rules of hosts: a rule that names a tool of a server behind plugbay gets a counterpart.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use plugbay_hosts::{
    known::{Host, Places},
    permissions,
    read::{self, Found},
};

use super::{
    OWN_NAME,
    plan::{Edit, Server},
    survey::{FileProblem, SurveyedHost, read_text},
};
use crate::journal::{self, Change, OpenError, Part};

/// The changes of earlier setups: a server's name in a host may differ from its name in plugbay.
#[derive(Debug)]
pub struct Past {
    folder: PathBuf,
    changes: Vec<Change>,
}

impl Past {
    pub fn read(folder: PathBuf) -> Result<Self, OpenError> {
        Ok(Self { changes: journal::read(&folder)?, folder })
    }

    /// The servers that a host had before plugbay changed its file.
    pub fn servers_of(&self, host: &Host) -> Vec<Found> {
        let is_own =
            |change: &&Change| change.part == Part::Servers && change.host.as_ref() == Some(&host.id);
        let texts = self.changes.iter().filter(is_own).filter_map(|change| {
            let (before, _) = journal::copies(&self.folder, change);
            String::from_utf8(before?).ok()
        });
        texts.flat_map(|text| read::read(host, &text).unwrap_or_default().found).collect()
    }
}

/// The permission rules of one host.
pub struct Rules {
    host: &'static Host,
    /// The names of servers behind plugbay: the host's name of each, and plugbay's. A name that the host uses
    /// twice, for the user and for a project, needs two maps.
    names: Vec<BTreeMap<String, String>>,
}

impl Rules {
    /// The rules of one host. A name means the server that has this name in the host, now or before an
    /// `earlier` setup. Only a name without such a server means plugbay's server of this name: another
    /// project may have rules for it.
    pub fn of(
        surveyed: &SurveyedHost,
        servers: &[Server],
        known: &[String],
        earlier: &[(String, String)],
    ) -> Self {
        let host = surveyed.host;
        let (moving, staying): (Vec<&Server>, Vec<&Server>) =
            servers.iter().partition(|server| server.fate.moves());
        let mut own: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let now = moving.iter().flat_map(|server| {
            server.of_host(host).map(|found| (found.entry.name.as_str(), server.name.as_str()))
        });
        let before = earlier.iter().map(|(name, ours)| (name.as_str(), ours.as_str()));
        for (name, ours) in now.chain(before) {
            own.entry(name).or_default().insert(ours);
        }
        let mut stays: BTreeSet<&str> = staying
            .iter()
            .flat_map(|server| server.of_host(host).map(|found| found.entry.name.as_str()))
            .collect();
        stays.extend(surveyed.staying.iter().map(|staying| staying.name.as_str()));
        let all = known.iter().map(String::as_str).chain(moving.iter().map(|server| server.name.as_str()));
        for name in all.filter(|name| !stays.contains(name)) {
            own.entry(name).or_insert_with(|| BTreeSet::from([name]));
        }
        Self { host, names: layers(&own) }
    }

    /// The text with the counterparts added.
    pub fn applied(&self, file: &Path, text: String) -> Result<String, FileProblem> {
        self.names.iter().try_fold(text, |text, names| {
            let added = permissions::counterparts_for(self.host, &text, names, OWN_NAME);
            Ok(added.map_err(|error| self.problem(file, &error))?.unwrap_or(text))
        })
    }

    /// The edits of files that have rules but no servers.
    pub fn edits(&self, wired: &Path, places: &Places) -> Result<Vec<Edit>, FileProblem> {
        let mut edits = Vec::new();
        for file in self.host.permission_files(places).into_iter().filter(|file| file.path != wired) {
            let Some(old) = read_text(&file.path).map_err(|error| self.problem(&file.path, &error))? else {
                continue;
            };
            let new = self.applied(&file.path, old.clone())?;
            edits.push(Edit { path: file.path, old: Some(old), new });
        }
        edits.retain(Edit::changes);
        Ok(edits)
    }

    fn problem(&self, file: &Path, error: &dyn std::fmt::Display) -> FileProblem {
        FileProblem { host: self.host.id.clone(), file: file.to_owned(), reason: error.to_string() }
    }
}

/// As many maps as the most ambiguous name needs. Each has every name, because the longest name that fits a
/// rule is used.
fn layers(own: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<BTreeMap<String, String>> {
    let depth = own.values().map(BTreeSet::len).max().unwrap_or_default();
    let layer = |index: usize| {
        let named = own.iter().filter_map(|(name, ours)| {
            let ours = ours.iter().nth(index.min(ours.len() - 1))?;
            Some(((*name).to_owned(), (*ours).to_owned()))
        });
        named.collect()
    };
    (0..depth).map(layer).collect()
}
