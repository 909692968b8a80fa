//! Files that describe servers, found through the patterns in another file.
//!
//! Each file stands alone: a broken one affects only its own servers, and one without approval is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use jsonc_parser::common::Range;
use plugbay_core::name::ServerName;

use super::{
    diagnostic::{Diagnostic, Severity, quote},
    document::{self, Document},
    entry::{denied_by_both, is_disabled, laid_over, tuning},
    files::{Files, Opened, Origin, Trust},
    found::Found,
    glob::Matches,
    paths::{Paths, is_switchboard},
    raw::{ConfigFile, Entry, EntryKind, Plugbay, Server, Servers, Suite},
    read::At,
    source::Source,
    switchboard::{Description, Descriptions},
};

const NOTHING: &str = "no file matches this pattern";
const TOO_MUCH: &str = "this pattern matches thousands of folders; plugbay searches only the first ones";

impl Files {
    /// Adds the files that the patterns of `naming` match. They have lower precedence than `naming` itself.
    pub(super) fn discover(&mut self, naming: &mut Document, trust: Trust, paths: &Paths) {
        if naming.config.discover.as_ref().is_none_or(Vec::is_empty) {
            return;
        }
        let found = self.matching(naming, paths);
        let folder = folder(&naming.source.path).to_owned();
        let mut descriptions = self.descriptions(&folder.join("mcp-descriptions.json"), trust, paths);
        let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
        for file in found {
            let Some(mut document) = self.describing(&file, trust, paths) else {
                continue;
            };
            // A host's file that contains plugbay must not make plugbay start itself for ever.
            document.config.retain(|entry| !runs_plugbay(&entry.server));
            self.each_once(&mut document, &mut names);
            for entry in &mut document.config {
                lend(naming, entry);
                describe(entry, descriptions.remove(&entry.key.value).unwrap_or_default());
            }
            let config = |servers| ConfigFile { servers: Some(Servers(servers)), ..ConfigFile::default() };
            self.used.push((document.map(config), Origin::Project));
        }
        if is_switchboard(&naming.source.path) {
            self.without_server(naming);
        }
    }

    /// The matching files, sorted, each once.
    fn matching(&mut self, naming: &Document, paths: &Paths) -> Vec<PathBuf> {
        let base = folder(&naming.source.path);
        let (mut files, mut excluded) = (BTreeSet::new(), BTreeSet::new());
        for pattern in naming.config.discover.iter().flatten() {
            let mut matches = Matches::of(&pattern.value.0, base, paths.home.as_deref());
            let finds_nothing = matches.files.is_empty() && !pattern.value.0.excludes;
            if matches.cut {
                self.warn(&naming.source, pattern.at, TOO_MUCH, "write out more of the path");
            } else if finds_nothing && pattern.is_written() {
                self.warn(&naming.source, pattern.at, NOTHING, "it is relative to the folder of this file");
            }
            if pattern.value.0.excludes {
                excluded.append(&mut matches.files);
                continue;
            }
            files.append(&mut matches.files);
            self.sources.extend(matches.absent);
            self.folders.extend(matches.folders);
        }
        let mut known: BTreeSet<PathBuf> = naming.source.path.canonicalize().into_iter().collect();
        let wanted = files.difference(&excluded).cloned();
        wanted.filter(|file| file.canonicalize().is_ok_and(|file| known.insert(file))).collect()
    }

    /// The servers that a file describes; `None` if the file may not be used.
    fn describing(&mut self, file: &Path, trust: Trust, paths: &Paths) -> Option<Document<Vec<Entry>>> {
        let bytes = match self.open(file, trust, paths) {
            Opened::Content(bytes) => bytes,
            Opened::Unreadable(reason) => return broken(file, reason),
            Opened::Absent | Opened::NotApproved => return None,
        };
        let mut document = match document::parse::<Found>(file, &bytes) {
            Ok(document) => document,
            Err(mut problems) => {
                let reason = problems.first().map(Diagnostic::one_line).unwrap_or_default();
                self.diagnostics.append(&mut problems);
                return broken(file, reason);
            }
        };
        self.diagnostics.append(&mut document.diagnostics);
        if let Found::One(entry) = &mut document.config {
            if entry.key.value.is_empty() {
                entry.key.value = folder_name(file);
            }
            let instructions = self.text(&folder(file).join("CLAUDE.md"), trust, paths);
            let plugbay = entry.server.plugbay.get_or_insert_default();
            plugbay.instructions = plugbay.instructions.take().or(instructions);
            if runs_wrapper(&entry.server) {
                document = self.unwrapped(document, trust, paths)?;
            }
        }
        Some(document.map(Found::into_entries))
    }

    /// Replaces a wrapper of Switchboard by the server that it starts. A wrapper only adds a tool for natural
    /// language, which plugbay has itself. If in doubt, the wrapper stays, but the server that it would start
    /// must be approved as well.
    fn unwrapped(
        &mut self,
        wrapper: Document<Found>,
        trust: Trust,
        paths: &Paths,
    ) -> Option<Document<Found>> {
        let file = folder(&wrapper.source.path).join("original/.mcp.json");
        let bytes = match self.open(&file, trust, paths) {
            Opened::Content(bytes) => bytes,
            Opened::NotApproved => return None,
            // plugbay cannot read it, but the wrapper may.
            Opened::Unreadable(_) if matches!(trust, Trust::Approved) => return None,
            Opened::Absent | Opened::Unreadable(_) => return Some(wrapper),
        };
        let mut original = match document::parse::<Found>(&file, &bytes) {
            Ok(original) => original,
            Err(mut problems) => {
                self.diagnostics.append(&mut problems);
                return Some(wrapper);
            }
        };
        self.diagnostics.append(&mut original.diagnostics);
        let place = wrapper.source.path.clone();
        match (&wrapper.config, &mut original.config) {
            (Found::One(wrapper), Found::One(original)) if original.problem.is_none() => {
                original.key.value.clone_from(&wrapper.key.value);
                let plugbay = laid_over(tuning(&wrapper.server), tuning(&original.server));
                original.server.plugbay = Some(plugbay);
                self.unwrapped.insert(wrapper.key.value.clone(), place);
            }
            _ => return Some(wrapper),
        }
        Some(original)
    }

    /// Among servers with the same name the first one is used; the others get a warning.
    fn each_once(&mut self, document: &mut Document<Vec<Entry>>, names: &mut BTreeMap<String, PathBuf>) {
        let Document { source, config, .. } = document;
        config.retain(|entry| {
            let name = entry.key.value.to_lowercase();
            match names.get(&name).filter(|other| **other != source.path) {
                None => {
                    names.insert(name, source.path.clone());
                    true
                }
                Some(other) => {
                    let message = format!(
                        "there is another server {} in {}; plugbay ignores this one",
                        quote(&entry.key.value),
                        other.display()
                    );
                    let help = Some("rename one of them".into());
                    self.diagnostics.push(source.diagnostic(Severity::Error, entry.key.at, message, help));
                    false
                }
            }
        });
    }

    /// The descriptions in `mcp-descriptions.json`, by server name.
    fn descriptions(&mut self, file: &Path, trust: Trust, paths: &Paths) -> BTreeMap<String, Description> {
        let Opened::Content(bytes) = self.open(file, trust, paths) else {
            return BTreeMap::new();
        };
        let (descriptions, mut problems) = match document::parse::<Descriptions>(file, &bytes) {
            Ok(document) => (document.config.servers, document.diagnostics),
            Err(problems) => (None, problems),
        };
        self.diagnostics.append(&mut problems);
        descriptions.unwrap_or_default()
    }

    fn text(&mut self, file: &Path, trust: Trust, paths: &Paths) -> Option<String> {
        let Opened::Content(bytes) = self.open(file, trust, paths) else {
            return None;
        };
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Warns of entries in Switchboard's `suites` for which no server was found. They do not describe
    /// servers themselves.
    fn without_server(&mut self, naming: &mut Document) {
        let Document { source, config, .. } = naming;
        for entry in config.servers.take().into_iter().flat_map(|servers| servers.0) {
            let message = format!("no server {} was found", quote(&entry.key.value));
            self.warn(source, entry.key.at, &message, "check the name, or remove it");
        }
    }

    fn warn(&mut self, source: &Source, at: Range, message: &str, help: &str) {
        self.diagnostics.push(source.diagnostic(Severity::Warning, at, message.into(), Some(help.into())));
    }
}

/// Shows a file that cannot be used as a failed server, under the name of its folder.
fn broken(file: &Path, reason: String) -> Option<Document<Vec<Entry>>> {
    let name = ServerName::suggest(&folder_name(file))?;
    let source = Source::new(file, b"").ok()?;
    let key = At::unwritten(name.to_string());
    let entry = Entry { key, server: Server::default(), problem: Some(reason), kind: EntryKind::Server };
    Some(Document { source, config: vec![entry], diagnostics: Vec::new() })
}

/// Adds settings that `naming` has for a server without describing the server itself. In Switchboard's own
/// files it is the other way round: there a server's file has precedence.
fn lend(naming: &mut Document, entry: &mut Entry) {
    let Some(Servers(lenders)) = &mut naming.config.servers else {
        return;
    };
    let same = |lender: &Entry| lender.key.value.eq_ignore_ascii_case(&entry.key.value);
    let lends = |lender: &Entry| same(lender) && lender.only_tunes() && !is_disabled(&lender.server);
    let Some(index) = lenders.iter().position(lends) else {
        return;
    };
    let lender = lenders.remove(index);
    let (lent, own) = (tuning(&lender.server), tuning(&entry.server));
    let deny = denied_by_both(lent.deny.clone(), own.deny.clone());
    let ca_file = own.ca_file.clone(); // relative to its own file
    let both = if is_switchboard(&naming.source.path) { laid_over(own, lent) } else { laid_over(lent, own) };
    entry.server.plugbay = Some(Plugbay { deny, ca_file, ..both });
    entry.server.exclude = None; // it is in `deny` now
    entry.problem = entry.problem.take().or(lender.problem);
}

fn describe(entry: &mut Entry, Description { role, instructions }: Description) {
    let suite = role.map(|role| Suite { description: Some(role), ..Suite::default() });
    let said = Plugbay { suite, instructions, ..Plugbay::default() };
    entry.server.plugbay = Some(laid_over(entry.server.plugbay.take().unwrap_or_default(), said));
}

fn runs_wrapper(server: &Server) -> bool {
    server.args.iter().flatten().any(|word| word.value.ends_with("-claude-wrapper.mjs"))
}

fn runs_plugbay(server: &Server) -> bool {
    let program = server.command.iter().flat_map(|argv| &argv.0);
    let words = program.chain(server.args.iter().flatten()).map(|word| Path::new(&word.value));
    let mut rest = words.skip_while(|word| word.file_name() != Some("plugbay".as_ref()));
    rest.any(|word| word == Path::new("serve"))
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

fn folder_name(file: &Path) -> String {
    folder(file).file_name().unwrap_or_default().to_string_lossy().into_owned()
}
