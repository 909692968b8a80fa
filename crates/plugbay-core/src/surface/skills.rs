//! Skills: the entries of all servers as one list, and the server of each skill and of its files.

mod claims;
mod found;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bytes::{BufMut, Bytes, BytesMut};

pub(super) use self::claims::{Claims, ListedSkill};
use self::found::EngineCell;
use super::{
    OwnSkill, Place, Resources, Snapshot,
    resources::{quoted, scheme},
    uri::{unmapped, with_server},
};
use crate::{catalog::Catalog, name::ServerName, skill, wire::Span};

/// Roughly how many bytes of entries a page has: entries may be long, and no host needs all at once.
const PAGE: usize = 256 << 10;
/// The scheme that skills usually have.
const SCHEME: &str = "skill";
/// The prefix of the URI in a cursor.
const CURSOR: &str = "skills from ";

/// The skills of all servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    /// All entries, separated by commas, in the order of the URIs that hosts see.
    pub entries: Bytes,
    shown: Vec<Skill>,
    /// The servers with skills, and whether they list directories.
    servers: BTreeMap<ServerName, bool>,
    /// The directories of skills, by the URIs of their servers.
    roots: BTreeSet<String>,
    engine: EngineCell,
}

/// A skill as hosts see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub uri: String,
    pub server: ServerName,
    pub name: String,
    pub description: String,
    /// The URIs of its files, if they are known in advance.
    pub files: Option<Vec<String>>,
    /// Its entry within all entries.
    entry: Span,
}

/// A page of `skills/list`.
#[derive(Debug, PartialEq, Eq)]
pub struct SkillPage {
    /// A JSON array of entries.
    pub skills: Bytes,
    pub next: Option<String>,
}

/// The place to ask for a skill or a file of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillPlace {
    /// It is the gateway's own.
    Own,
    At(Place),
    /// Several servers have it; these URIs tell them apart.
    Several(Vec<String>),
    /// No list has it, but any of these servers may.
    Perhaps(Vec<ServerName>),
    Nowhere,
}

impl Skills {
    pub(super) fn new(listed: &[ListedSkill<'_>], claims: &Claims<'_>, catalog: &Catalog) -> Self {
        let servers = catalog.iter().filter(|(_, entry)| entry.offer.capabilities.skills);
        let servers = servers.map(|(name, entry)| (name.clone(), entry.offer.capabilities.directory_read));
        let roots = listed.iter().filter_map(|skill| skill::root(skill.uri())).map(str::to_owned).collect();
        let mut shown: Vec<(Skill, Bytes)> = listed.iter().map(|skill| show(skill, claims)).collect();
        shown.sort_by(|(a, _), (b, _)| a.uri.cmp(&b.uri));
        let mut entries = BytesMut::new();
        let shown = shown.into_iter().map(|(skill, entry)| {
            if !entries.is_empty() {
                entries.put_u8(b',');
            }
            let start = entries.len();
            entries.put_slice(&entry);
            Skill { entry: start..entries.len(), ..skill }
        });
        let (shown, servers) = (shown.collect(), servers.collect());
        Self { shown, entries: entries.freeze(), servers, roots, engine: EngineCell::default() }
    }

    /// All skills, in the order of their URIs.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.shown.iter()
    }

    /// The servers that have the extension, whether they list skills or not.
    pub fn servers(&self) -> impl Iterator<Item = &ServerName> {
        self.servers.keys()
    }

    /// Whether the server has the extension.
    pub fn has(&self, server: &ServerName) -> bool {
        self.servers.contains_key(server)
    }

    /// Whether the server lists directories.
    pub fn lists_directories(&self, server: &ServerName) -> bool {
        self.servers.get(server) == Some(&true)
    }

    /// The skill of this URI, as hosts know it.
    pub fn get(&self, uri: &str) -> Option<&Skill> {
        self.shown.binary_search_by(|skill| skill.uri.as_str().cmp(uri)).ok().map(|at| &self.shown[at])
    }

    /// Whether a server's URI is that of a skill's directory, or of something in it.
    fn are_around(&self, uri: &str) -> bool {
        self.roots.contains(uri) || skill::directories(uri).any(|directory| self.roots.contains(directory))
    }

    /// Whether skills have URIs of this scheme.
    fn have_scheme(&self, uri: &str) -> bool {
        let scheme = scheme(uri);
        scheme.as_deref() == Some(SCHEME) || self.roots.iter().any(|root| self::scheme(root) == scheme)
    }

    /// The entries from this URI on that fit on a page, and the URI at which the next begins.
    fn page(&self, from: Option<&str>) -> (&[u8], Option<&str>) {
        let first = from.map_or(0, |from| self.shown.partition_point(|skill| skill.uri.as_str() < from));
        let Some(start) = self.shown.get(first).map(|skill| skill.entry.start) else { return (b"", None) };
        let fits = |skill: &&Skill| skill.entry.end - start <= PAGE;
        // An entry that is longer than a page has a page for itself.
        let count = self.shown[first..].iter().take_while(fits).count().max(1);
        let (last, next) = (&self.shown[first + count - 1], self.shown.get(first + count));
        (&self.entries[start..last.entry.end], next.map(|skill| skill.uri.as_str()))
    }
}

/// The entry as hosts see it: only URIs that another server has too are changed.
fn show(listed: &ListedSkill<'_>, claims: &Claims<'_>) -> (Skill, Bytes) {
    let ListedSkill { server, item, entry } = listed;
    let (name, description) = (entry.name.clone(), entry.description.clone());
    let skill = Skill {
        uri: item.key.clone(),
        server: (*server).clone(),
        name,
        description,
        files: entry.files.clone(),
        entry: 0..0,
    };
    if claims.are_exclusive(listed) {
        return (skill, item.definition.clone());
    }
    let shown = |uri: &String| with_server(server, uri);
    let (mut written, mut done) = (BytesMut::new(), 0);
    let mut uris = entry.uris.clone();
    uris.sort_by_key(|span| span.start);
    for span in uris {
        written.put_slice(&item.definition[done..=span.start]);
        written.put_slice(with_server(server, "").as_bytes());
        done = span.start + 1;
    }
    written.put_slice(&item.definition[done..]);
    let files = skill.files.as_ref().map(|files| files.iter().map(shown).collect());
    (Skill { uri: shown(&skill.uri), files, ..skill }, written.freeze())
}

impl Resources {
    /// Indexes the files of skills by server: those that entries name, and everything in their directories.
    pub(super) fn index_skills(&mut self, listed: &[ListedSkill<'_>]) {
        for ListedSkill { server, item, entry } in listed {
            let root = skill::root(&item.key);
            let files = entry.files.iter().flatten().map(String::as_str);
            for uri in [item.key.as_str()].into_iter().chain(files).chain(root) {
                if unmapped(uri).is_some() {
                    continue;
                }
                let places = &mut self.uri_index.entry(uri.to_owned()).or_default().places;
                if places.iter().all(|place| place.server != **server) {
                    places.push(Place { server: (*server).clone(), quoted: quoted(uri) });
                }
            }
            if let Some(root) = root.filter(|root| unmapped(root).is_none()) {
                self.directories.add(format!("{root}/"), server);
            }
        }
    }
}

impl Snapshot {
    /// The gateway's own skill, if this host sees tools that it is about.
    pub fn own_skill(&self) -> Option<&OwnSkill> {
        self.layout.skill.as_deref().filter(|_| self.listing.has_own_skill())
    }

    /// Whether `skills/list` and `skills/get` are answered.
    pub fn has_skills(&self) -> bool {
        self.own_skill().is_some() || !self.resources.skills.servers.is_empty()
    }

    /// Whether `resources/directory/read` is answered: for every directory of every skill.
    pub fn reads_directories(&self) -> bool {
        let skills = &self.resources.skills;
        let known = |skill: &Skill| skill.files.is_some() || skills.lists_directories(&skill.server);
        let any = self.own_skill().is_some() || skills.servers.values().any(|lists| *lists);
        any && skills.shown.iter().all(known)
    }

    /// The declaration of skills. A single server's own declaration is kept if there is nothing to add.
    pub fn skills_declaration(&self) -> Option<Bytes> {
        if !self.has_skills() {
            // A server that has not listed yet may have some.
            return (!self.settled).then(|| Bytes::from_static(b"{}"));
        }
        let mut servers = self.resources.skills.servers();
        if let (Some(only), None, None) = (servers.next(), servers.next(), self.own_skill()) {
            let declared =
                self.catalog.get(only).and_then(|entry| entry.offer.extensions.get(skill::EXTENSION));
            return declared.cloned();
        }
        let declared = if self.reads_directories() { r#"{"directoryRead":true}"# } else { "{}" };
        Some(Bytes::from_static(declared.as_bytes()))
    }

    /// A page of all skills, the gateway's own first. `None`: `cursor` is not one of this list.
    pub fn skills(&self, cursor: Option<&str>) -> Option<SkillPage> {
        let from = cursor.map(|cursor| cursor.strip_prefix(CURSOR).ok_or(())).transpose().ok()?;
        let own = self.own_skill().filter(|_| from.is_none()).map(|own| &own.entry);
        let (entries, next) = self.resources.skills.page(from);
        let mut skills = BytesMut::from("[");
        skills.put_slice(own.map_or(b"", |own| own));
        if own.is_some() && !entries.is_empty() {
            skills.put_u8(b',');
        }
        skills.put_slice(entries);
        skills.put_u8(b']');
        Some(SkillPage { skills: skills.freeze(), next: next.map(|uri| format!("{CURSOR}{uri}")) })
    }

    /// The place to ask for the entry of a skill.
    pub fn skill_at(&self, uri: &str) -> SkillPlace {
        if self.own_skill().is_some_and(|own| own.uri == uri) {
            return SkillPlace::Own;
        }
        let skills = &self.resources.skills;
        let places = self.resources.known_at(uri);
        let known: Vec<&Place> = places.iter().filter(|place| skills.has(&place.server)).collect();
        match &known[..] {
            [only] if places.len() == 1 => SkillPlace::At((*only).clone()),
            [] if unmapped(uri).is_some() => SkillPlace::Nowhere,
            [] => perhaps(uri, skills.servers()),
            several if skills.are_around(uri) => several_have(uri, several.iter().copied()),
            several => perhaps(uri, several.iter().map(|place| &place.server)),
        }
    }

    /// The place to ask for a file or directory that may be one of a skill. A URI that two servers have leads
    /// to neither: a model must not take the words of one for those of the other. `Nowhere`: the URI is not
    /// about skills.
    pub fn skill_file_at(&self, uri: &str) -> SkillPlace {
        if self.own_skill().is_some_and(|own| own.uri == uri || own.root() == uri) {
            return SkillPlace::Own;
        }
        let skills = &self.resources.skills;
        let known = self.resources.known_at(uri);
        match &known[..] {
            [only] => return SkillPlace::At(only.clone()),
            _ if unmapped(uri).is_some() => return SkillPlace::Nowhere,
            [_, ..] if skills.are_around(uri) => return several_have(uri, known.iter()),
            _ => {}
        }
        if skills.have_scheme(uri) {
            // If templates fit, only their servers may have it; else all: other URIs of the scheme tell
            // nothing.
            let fitting = known.iter().map(|place| &place.server).filter(|server| skills.has(server));
            let servers: Vec<&ServerName> = fitting.collect();
            if servers.is_empty() {
                return perhaps(uri, skills.servers());
            }
            return perhaps(uri, servers.into_iter());
        }
        match &self.resources.resources_at(uri)[..] {
            [only] => SkillPlace::At(only.clone()),
            _ => SkillPlace::Nowhere,
        }
    }

    /// Whether a request to this server with this URI is about skills, as far as the URI tells.
    pub fn is_of_skill(&self, uri: &str, server: &ServerName) -> bool {
        let own = unmapped(uri).map_or(uri.into(), |(_, own)| own);
        self.resources.skills.has(server) && self.resources.skills.have_scheme(&own)
    }

    /// The children of a skill's directory, from the entries of its server: a JSON array. `None`: no entry
    /// names a file in it.
    pub fn skill_directory(&self, uri: &str) -> Option<Bytes> {
        let uri = uri.strip_suffix('/').unwrap_or(uri);
        let skills = self.resources.skills.iter();
        let files = skills.filter_map(|skill| skill.files.as_ref()).flatten();
        let mut children: BTreeMap<&str, bool> = BTreeMap::new();
        for below in files.filter_map(|file| file.strip_prefix(uri)?.strip_prefix('/')) {
            let (name, is_directory) = below.split_once('/').map_or((below, false), |(name, _)| (name, true));
            *children.entry(name).or_default() |= is_directory;
        }
        let child = |(name, is_directory): (&str, bool)| {
            let mut child = serde_json::json!({ "uri": format!("{uri}/{name}"), "name": name });
            if is_directory {
                child["mimeType"] = "inode/directory".into();
            }
            child.to_string()
        };
        let children: Vec<String> = children.into_iter().map(child).collect();
        (!children.is_empty()).then(|| Bytes::from(format!("[{}]", children.join(","))))
    }
}

fn several_have<'a>(uri: &str, places: impl Iterator<Item = &'a Place>) -> SkillPlace {
    let servers: BTreeSet<&ServerName> = places.map(|place| &place.server).collect();
    SkillPlace::Several(servers.into_iter().map(|server| with_server(server, uri)).collect())
}

/// The place of a skill, or a file of one, that no list has but these servers may have.
fn perhaps<'a>(uri: &str, servers: impl Iterator<Item = &'a ServerName>) -> SkillPlace {
    let servers: Vec<ServerName> = servers.cloned().collect();
    match &servers[..] {
        [] => SkillPlace::Nowhere,
        [only] => SkillPlace::At(Place { server: only.clone(), quoted: quoted(uri) }),
        _ => SkillPlace::Perhaps(servers),
    }
}
