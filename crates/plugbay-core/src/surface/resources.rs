//! Resources, resource templates and prompts: shown alike in every mode.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

use super::{
    Layout,
    names::allowed,
    skills::{Claims, ListedSkill, Skills},
    uri::{mapped, unmapped},
};
use crate::{
    apps::is_page,
    catalog::{Catalog, Item, ItemKind, Offer, ServerCapabilities},
    exposure::Exposure,
    extension::Extensions,
    name::{self, ServerName},
    skill,
};

/// What a host sees besides tools, ready to send, and whom it leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// JSON arrays of definitions.
    pub resources: Bytes,
    pub templates: Bytes,
    pub prompts: Bytes,
    /// What at least one server can do.
    pub capabilities: ServerCapabilities,
    pub extensions: Extensions,
    pub skills: Skills,
    prompt_index: HashMap<String, Place>,
    /// A URI that several servers have leads to all of them.
    pub(super) uri_index: HashMap<String, SmallVec<[Place; 1]>>,
    /// Templates in the order of their keys, each with its literal beginning; behind them the directories of skills.
    pub(super) template_index: Vec<(String, Place)>,
    /// Servers that have resources, and the schemes of those that they list.
    keepers: BTreeMap<ServerName, Vec<String>>,
    /// Servers whose tools have pages.
    paged: BTreeSet<ServerName>,
}

/// Where something is to be asked for, and by which key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub server: ServerName,
    /// The server's own key, as a JSON string.
    pub quoted: Bytes,
}

/// The servers that have a URI, each with its definition of it, if it lists it.
type Owners<'a> = BTreeMap<&'a ServerName, Option<&'a Item>>;

impl Resources {
    pub(super) fn new(catalog: &Catalog, layout: &Layout) -> Self {
        let mut resources = Self::default();
        let skills = ListedSkill::all(catalog);
        let claims = Claims::new(catalog, &skills, layout);
        for (server, entry) in catalog.iter() {
            resources.capabilities = resources.capabilities.or(entry.offer.capabilities);
            resources.extensions.join(&entry.offer.extensions);
            let Offer { capabilities, resources: listed, templates, skills, .. } = &*entry.offer;
            if capabilities.resources || capabilities.skills {
                let listed = listed.iter().chain(templates).chain(skills);
                let mut schemes: Vec<String> = listed.filter_map(|item| scheme(&item.key)).collect();
                schemes.sort();
                schemes.dedup();
                resources.keepers.insert(server.clone(), schemes);
            }
        }
        resources.shelve_prompts(catalog, layout);
        resources.resources = resources.shelve(catalog, layout, ItemKind::Resource, &claims);
        resources.templates = resources.shelve(catalog, layout, ItemKind::Template, &claims);
        resources.skills = Skills::new(&skills, &claims, catalog);
        resources.index_skills(&skills);
        resources.template_index.sort_by(|a, b| a.0.cmp(&b.0));
        // What is declared of skills depends on the host.
        resources.extensions = resources.extensions.with(skill::EXTENSION, None);
        resources
    }

    /// Whom a prompt of this exposed name is asked of.
    pub fn prompt(&self, name: &str) -> Option<&Place> {
        self.prompt_index.get(name)
    }

    pub fn nearest_prompts(&self, name: &str) -> Vec<&str> {
        name::nearest(name, self.prompt_index.keys().map(String::as_str))
    }

    /// Whom a resource, or a template as it is shown, may be asked of, in the order of their names: who lists it,
    /// who has a template that fits, who lists others of its kind, or the only one that has any at all.
    pub fn resources_at(&self, uri: &str) -> SmallVec<[Place; 1]> {
        let known = self.known_at(uri);
        // A URI that names a server is never another's.
        if !known.is_empty() || unmapped(uri).is_some() {
            return known;
        }
        let own = scheme(uri);
        let of_kind = self.only_keeper(|schemes| schemes.contains(own.as_ref()?).then_some(()));
        let server = of_kind.or_else(|| self.only_keeper(|_| Some(())));
        server.map(|server| unlisted(server, uri)).into_iter().collect()
    }

    /// The same without those that only might have it.
    pub fn known_at(&self, uri: &str) -> SmallVec<[Place; 1]> {
        if let Some(places) = self.uri_index.get(uri) {
            return places.clone();
        }
        if let Some((server, own)) = unmapped(uri) {
            let has_any = self.keepers.contains_key(&server) || self.paged.contains(&server);
            return has_any.then(|| Place { server, quoted: quoted(&own) }).into_iter().collect();
        }
        let servers: BTreeSet<&ServerName> =
            self.templates_at(uri).iter().map(|(_, place)| &place.server).collect();
        servers.into_iter().map(|server| unlisted(server, uri)).collect()
    }

    /// The templates with the longest beginning that a URI has. There may be many, so only those are looked at that are
    /// nearest before it in their order.
    fn templates_at(&self, uri: &str) -> &[(String, Place)] {
        let (mut before, mut wanted) = (&self.template_index[..], uri);
        loop {
            before = &before[..before.partition_point(|(start, _)| start.as_str() <= wanted)];
            let Some((start, _)) = before.last() else { return &[] };
            if wanted.starts_with(start.as_str()) {
                return &before[before.partition_point(|(other, _)| other < start)..];
            }
            // What is not behind this one and begins the URI is no longer than what both share.
            let shared = start.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
            wanted = &wanted[..wanted.floor_char_boundary(shared)];
        }
    }

    /// Whether tools of any server have pages.
    pub fn has_any_pages(&self) -> bool {
        !self.paged.is_empty()
    }

    /// Whether tools of a server have pages.
    pub fn has_pages(&self, server: &ServerName) -> bool {
        self.paged.contains(server)
    }

    /// The URI by which a host gets a page of this server, if its own would not lead there, or not there alone. It is a
    /// `ui://` URI too, because hosts take no other.
    pub fn moved_page(&self, server: &ServerName, uri: &str) -> Option<String> {
        let places = self.resources_at(uri);
        let leads_there = places.len() == 1 && places[0].server == *server && unmapped(uri).is_none();
        (is_page(uri) && !leads_there).then(|| mapped(server, uri))
    }

    fn only_keeper(&self, fits: impl Fn(&Vec<String>) -> Option<()>) -> Option<&ServerName> {
        let mut keepers = self.keepers.iter().filter(|(_, schemes)| fits(schemes).is_some());
        keepers.next().filter(|_| keepers.next().is_none()).map(|(server, _)| server)
    }

    fn shelve_prompts(&mut self, catalog: &Catalog, layout: &Layout) {
        let plain = Exposure::default();
        let mut shown: BTreeMap<String, Vec<(&ServerName, &Item)>> = BTreeMap::new();
        for (server, entry) in catalog.iter() {
            let exposure = layout.exposures.get(server).unwrap_or(&plain);
            for prompt in &entry.offer.prompts {
                let of_remote = exposure.remote && is_of_remote_server(&prompt.key, layout);
                let exposed = if exposure.bare || of_remote {
                    name::expose_bare(&prompt.key, layout.name_limit)
                } else {
                    name::expose(server, &prompt.key, layout.name_limit)
                };
                shown.entry(exposed).or_default().push((server, prompt));
            }
        }
        let mut list = List::default();
        for (exposed, wanted) in shown {
            let alone = wanted.len() == 1;
            for (server, prompt) in wanted {
                let full = || name::expose(server, &prompt.key, layout.name_limit);
                let exposed = if alone { exposed.clone() } else { full() };
                list.add(prompt, &exposed);
                self.prompt_index.insert(exposed, place(server, prompt));
            }
        }
        self.prompts = list.finish();
    }

    /// URIs stay as they are, unless several servers have the same one. That is still understood, for servers
    /// write it into what they answer, and hosts may know it from before. A page that a tool names is its server's,
    /// listed or not: no other server can take its place by listing the same URI.
    fn shelve(
        &mut self,
        catalog: &Catalog,
        layout: &Layout,
        item_kind: ItemKind,
        claims: &Claims<'_>,
    ) -> Bytes {
        let mut shown: BTreeMap<&str, Owners<'_>> = BTreeMap::new();
        for (server, entry) in catalog.iter() {
            let items =
                if item_kind == ItemKind::Template { &entry.offer.templates } else { &entry.offer.resources };
            for item in items {
                shown.entry(&item.key).or_default().insert(server, Some(item));
            }
        }
        let tools = allowed(catalog, layout).filter(|_| item_kind == ItemKind::Resource);
        for (server, link) in tools.flat_map(|(server, tool, _)| {
            tool.ui.iter().flat_map(|ui| &ui.pages).map(move |link| (server, link))
        }) {
            shown.entry(&link.uri).or_default().entry(server).or_default();
            self.paged.insert(server.clone());
        }
        let mut list = List::default();
        for (uri, owners) in shown {
            let plain = unmapped(uri).is_none();
            let alone =
                owners.len() == 1 && plain && owners.keys().all(|server| claims.is_exclusive(server, uri));
            for (server, item) in owners {
                let mapped = (!alone).then(|| mapped(server, uri));
                if let Some(item) = item {
                    list.add(item, mapped.as_deref().unwrap_or(uri));
                }
                let place = || item.map_or_else(|| unlisted(server, uri), |item| place(server, item));
                if item_kind == ItemKind::Template && plain {
                    let start = uri.split('{').next().unwrap_or_default().to_owned();
                    self.template_index.push((start, place()));
                }
                let own = plain.then(|| uri.to_owned());
                for shown in mapped.into_iter().chain(own) {
                    self.uri_index.entry(shown).or_default().push(place());
                }
            }
        }
        list.finish()
    }
}

fn place(server: &ServerName, item: &Item) -> Place {
    Place { server: server.clone(), quoted: item.definition.slice(item.key_span.clone()) }
}

fn unlisted(server: &ServerName, uri: &str) -> Place {
    Place { server: server.clone(), quoted: quoted(uri) }
}

/// Whether a remote's prompt has the name of a server there, and of none here: the remote's own prompts, such as
/// `status`, have none.
fn is_of_remote_server(key: &str, layout: &Layout) -> bool {
    let server = name::split(key).and_then(|(server, _)| ServerName::parse(server).ok());
    server.is_some_and(|server| !layout.exposures.contains_key(&server))
}

pub(super) fn scheme(uri: &str) -> Option<String> {
    uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase())
}

pub(super) fn quoted(text: &str) -> Bytes {
    Bytes::from(serde_json::Value::from(text).to_string())
}

/// Definitions as their servers wrote them, but for their keys.
#[derive(Default)]
struct List(BytesMut);

impl List {
    fn add(&mut self, item: &Item, exposed: &str) {
        self.0.put_u8(if self.0.is_empty() { b'[' } else { b',' });
        if item.key == exposed {
            return self.0.put_slice(&item.definition);
        }
        self.0.put_slice(&item.definition[..item.key_span.start]);
        self.0.put_slice(&quoted(exposed));
        self.0.put_slice(&item.definition[item.key_span.end..]);
    }

    fn finish(mut self) -> Bytes {
        self.0.put_slice(if self.0.is_empty() { b"[]" } else { b"]" });
        self.0.freeze()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        catalog::{Change, Items},
        era::Era,
    };

    fn items(item_kind: ItemKind, definitions: &[&str]) -> Vec<Item> {
        definitions
            .iter()
            .map(|json| Item::parse(Bytes::from((*json).to_owned()), item_kind).unwrap())
            .collect()
    }

    fn server(
        catalog: &Catalog,
        name: &str,
        resources: &[&str],
        templates: &[&str],
        prompts: &[&str],
    ) -> Catalog {
        let capabilities =
            ServerCapabilities { resources: true, prompts: true, ..ServerCapabilities::default() };
        let items = Items {
            resources: items(ItemKind::Resource, resources),
            templates: items(ItemKind::Template, templates),
            prompts: items(ItemKind::Prompt, prompts),
            ..Items::default()
        };
        let offer = Offer::new(Era::Legacy, None, None, Vec::new()).with_items(capabilities, items);
        catalog.apply(Change::Listed(ServerName::parse(name).unwrap(), Arc::new(offer)))
    }

    fn resources(catalog: &Catalog) -> Resources {
        Resources::new(catalog, &Layout { name_limit: 64, ..Layout::default() })
    }

    fn asked(resources: &Resources, uri: &str) -> Option<(String, String)> {
        let place = resources.resources_at(uri).into_iter().next()?;
        Some((place.server.to_string(), String::from_utf8(place.quoted.to_vec()).unwrap()))
    }

    #[test]
    fn a_uri_stays_as_it_is_unless_two_servers_have_it() {
        let one = server(
            &Catalog::default(),
            "a",
            &[r#"{"uri":"x://1" ,"n":1.0}"#, r#"{"uri":"x://2"}"#],
            &[],
            &[],
        );
        let both = server(&one, "b", &[r#"{"uri":"x://2"}"#], &[], &[]);
        let resources = resources(&both);
        assert_eq!(
            resources.resources,
            r#"[{"uri":"x://1" ,"n":1.0},{"uri":"plugbay://a/x://2"},{"uri":"plugbay://b/x://2"}]"#
        );
        let place = |server: &str, uri: &str| Some((server.to_owned(), format!("\"{uri}\"")));
        assert_eq!(asked(&resources, "x://1"), place("a", "x://1"));
        assert_eq!(asked(&resources, "plugbay://b/x://2"), place("b", "x://2"));
        assert_eq!(asked(&resources, "plugbay://b/y://3"), place("b", "y://3"));
        assert_eq!(asked(&resources, "x://2"), place("a", "x://2"), "the first by name");
        let all: Vec<_> =
            resources.resources_at("x://2").into_iter().map(|place| place.server.to_string()).collect();
        assert_eq!(all, ["a", "b"]);
    }

    #[test]
    fn a_uri_that_names_a_server_is_never_asked_of_another() {
        let templates = [r#"{"uriTemplate":"plugbay://{+x}"}"#, r#"{"uriTemplate":"ui://plugbay/{+x}"}"#];
        let only = server(&Catalog::default(), "only", &[], &templates, &[]);
        let resources = resources(&only);
        for uri in ["plugbay://gone/x://1", "ui://plugbay/gone/app/main"] {
            assert_eq!(resources.resources_at(uri).len(), 0, "{uri}");
        }
        assert_eq!(resources.resources_at("plugbay://only/x://1").len(), 1);
    }

    #[test]
    fn what_nobody_lists_is_asked_of_who_may_have_it() {
        let one = server(&Catalog::default(), "files", &[], &[r#"{"uriTemplate":"file:///{path}"}"#], &[]);
        let both = server(
            &one,
            "notes",
            &[r#"{"uri":"note:1"}"#],
            &[r#"{"uriTemplate":"file:///notes/{id}"}"#],
            &[],
        );
        let resources = resources(&both);
        let whose = |uri: &str| asked(&resources, uri).map(|(server, _)| server);
        assert_eq!(whose("file:///etc/x").as_deref(), Some("files"));
        assert_eq!(whose("file:///notes/7").as_deref(), Some("notes"));
        assert_eq!(whose("note:99").as_deref(), Some("notes"));
        assert_eq!(whose("other:1"), None);
        let twin = server(&both, "twin", &[], &[r#"{"uriTemplate":"file:///{path}"}"#], &[]);
        let may_have = |uri: &str| super::Resources::new(&twin, &Layout::default()).resources_at(uri).len();
        assert_eq!(
            ["file:///etc/x", "file:///notes/7", "plugbay://twin/file:///etc/x"].map(may_have),
            [2, 1, 1]
        );
        let alone = server(&Catalog::default(), "files", &[], &[], &[]);
        assert!(super::Resources::new(&alone, &Layout::default()).resources_at("other:1").len() == 1);
    }

    #[test]
    fn prompts_are_named_like_tools() {
        let catalog = server(&Catalog::default(), "a", &[], &[], &[r#"{ "name":"review","arguments":[]}"#]);
        let resources = resources(&catalog);
        assert_eq!(resources.prompts, r#"[{ "name":"a__review","arguments":[]}]"#);
        assert_eq!(resources.prompt("a__review").unwrap().quoted, "\"review\"");
        assert_eq!(
            (resources.prompt("review"), resources.nearest_prompts("review")),
            (None, vec!["a__review"])
        );
        assert_eq!(resources.templates, "[]");
    }
}
