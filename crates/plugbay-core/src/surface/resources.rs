//! Resources, resource templates and prompts: shown the same in every mode.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

use super::{
    BuiltinPrompt, Layout,
    beginnings::Beginnings,
    names::allowed,
    skills::{Claims, ListedSkill, Skills},
    uri::{mapped, unmapped},
};
use crate::{
    apps::is_page,
    catalog::{Catalog, Item, ItemKind, Offer, ServerCapabilities},
    exposure::Exposure,
    extension::Extensions,
    name::{self, ServerName, ServerPrefixes},
    skill,
};

/// What a host sees besides tools, ready to send, and the servers that it leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// JSON arrays of definitions.
    pub resources: Bytes,
    pub templates: Bytes,
    pub prompts: Bytes,
    /// The capabilities that at least one server has.
    pub capabilities: ServerCapabilities,
    pub extensions: Extensions,
    pub skills: Skills,
    prompt_index: HashMap<String, Place>,
    pub(super) uri_index: HashMap<String, Known>,
    /// The beginnings of templates that contain at least a scheme.
    template_starts: Beginnings,
    /// Servers with templates whose beginning tells nothing of their URIs.
    open_templates: Beginnings,
    /// The directories of skills, each with a slash at its end.
    pub(super) directories: Beginnings,
    /// Servers that have resources, and the schemes of the resources that they list.
    keepers: BTreeMap<ServerName, Vec<String>>,
    /// Servers whose tools have pages.
    paged: BTreeSet<ServerName>,
}

/// The server to ask for something, and the key to ask by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub server: ServerName,
    /// The server's own key, as a JSON string.
    pub quoted: Bytes,
}

/// The servers that have a URI. If there are several, it leads to all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) places: SmallVec<[Place; 1]>,
    /// Servers with a template that fits have it too. They are looked up on demand: each could fit any URI.
    with_templates: bool,
}

/// The servers that have a URI, each with its definition if it lists the URI.
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
        for (server, entry) in catalog.iter() {
            for template in entry.offer.templates.iter().filter(|template| unmapped(&template.key).is_none())
            {
                let start = template.key.split('{').next().unwrap_or_default();
                let starts = if start.contains(':') {
                    &mut resources.template_starts
                } else {
                    &mut resources.open_templates
                };
                starts.add(start.to_owned(), server);
            }
        }
        resources.resources = resources.index_by_uri(catalog, layout, ItemKind::Resource, &claims);
        resources.templates = resources.index_by_uri(catalog, layout, ItemKind::Template, &claims);
        resources.skills = Skills::new(&skills, &claims, catalog);
        resources.index_skills(&skills);
        // The declaration of skills depends on the host.
        resources.extensions = resources.extensions.with(skill::EXTENSION, None);
        resources
    }

    /// The server to ask for a prompt of this exposed name.
    pub fn prompt(&self, name: &str) -> Option<&Place> {
        self.prompt_index.get(name)
    }

    pub fn nearest_prompts(&self, name: &str) -> Vec<&str> {
        name::nearest(name, self.prompt_index.keys().map(String::as_str))
    }

    /// The servers that may have a resource, or a template as it is shown, in the order of their names. If
    /// there are several, the URI does not tell which. Those that list it or have a template that fits; else
    /// those that list others of its scheme, or nothing at all; else the only one that has any resources.
    pub fn resources_at(&self, uri: &str) -> SmallVec<[Place; 1]> {
        let known = self.known_at(uri);
        // A URI that names a server never leads to another.
        if !known.is_empty() || unmapped(uri).is_some() {
            return known;
        }
        let scheme = scheme(uri);
        let lists = |schemes: &[String]| scheme.as_ref().is_some_and(|scheme| schemes.contains(scheme));
        let may_have = |schemes: &[String]| schemes.is_empty() || lists(schemes);
        let is_listed = self.keepers.values().any(|schemes| lists(schemes));
        let keepers =
            self.keepers.iter().filter(|(_, schemes)| if is_listed { may_have(schemes) } else { true });
        let keepers: SmallVec<[Place; 1]> = keepers.map(|(server, _)| unlisted(server, uri)).collect();
        if is_listed || keepers.len() == 1 { keepers } else { SmallVec::new() }
    }

    /// The same without servers that only might have it.
    pub fn known_at(&self, uri: &str) -> SmallVec<[Place; 1]> {
        if let Some(Known { places, with_templates }) = self.uri_index.get(uri) {
            let mut places = places.clone();
            let fitting = with_templates.then(|| self.template_starts.of(uri)).into_iter().flatten();
            for server in fitting {
                if let Err(at) = places.binary_search_by_key(&server, |place| &place.server) {
                    places.insert(at, unlisted(server, uri));
                }
            }
            return places;
        }
        if let Some((server, own)) = unmapped(uri) {
            let has_any = self.keepers.contains_key(&server) || self.paged.contains(&server);
            return has_any.then(|| Place { server, quoted: quoted(&own) }).into_iter().collect();
        }
        let sources = [&self.directories, &self.template_starts, &self.open_templates];
        let servers = sources.iter().map(|source| source.of(uri)).find(|servers| !servers.is_empty());
        servers.into_iter().flatten().map(|server| unlisted(server, uri)).collect()
    }

    /// Whether tools of any server have pages.
    pub fn has_any_pages(&self) -> bool {
        !self.paged.is_empty()
    }

    /// Whether tools of a server have pages.
    pub fn has_pages(&self, server: &ServerName) -> bool {
        self.paged.contains(server)
    }

    /// The URI by which a host gets a page of this server, if the page's own URI leads elsewhere, or to
    /// several servers. It is a `ui://` URI too, because hosts accept no other.
    pub fn moved_page(&self, server: &ServerName, uri: &str) -> Option<String> {
        let places = self.resources_at(uri);
        let leads_there = places.len() == 1 && places[0].server == *server && unmapped(uri).is_none();
        (is_page(uri) && !leads_there).then(|| mapped(server, uri))
    }

    /// The URI by which a host gets this server's resource, even if others have the same URI.
    pub fn of_server(&self, server: &ServerName, uri: &str) -> String {
        mapped(server, uri)
    }

    fn shelve_prompts(&mut self, catalog: &Catalog, layout: &Layout) {
        let plain = Exposure::default();
        let servers =
            ServerPrefixes::new(layout.exposures.keys().chain(catalog.iter().map(|(name, _)| name)));
        let mut shown: BTreeMap<String, Vec<(&ServerName, &Item)>> = BTreeMap::new();
        for (server, entry) in catalog.iter() {
            let exposure = layout.exposures.get(server).unwrap_or(&plain);
            for prompt in &entry.offer.prompts {
                let of_remote = exposure.remote && is_of_remote_server(&prompt.key, layout);
                let bare = name::expose_bare(&prompt.key, layout.name_limit);
                let is_free = !servers.claim(server, &bare) && !BuiltinPrompt::is_alike(&bare);
                let exposed = if (exposure.bare || of_remote) && is_free {
                    bare
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

    /// Lists and indexes items by URI. URIs stay as they are, unless several servers have the same one. The
    /// original is still understood then: servers write it into their answers, and hosts may know it from
    /// before. A page that a tool names belongs to its server, listed or not: no other can take its place by
    /// listing the same URI.
    fn index_by_uri(
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
        let have_ui =
            |server: &ServerName| catalog.get(server).is_some_and(|entry| entry.offer.tools.have_ui());
        let paged = catalog.only(|server| item_kind == ItemKind::Resource && have_ui(server));
        let tools = allowed(&paged, layout);
        for (server, link) in tools.flat_map(|(server, tool, _)| {
            tool.ui.iter().flat_map(|ui| &ui.pages).map(move |link| (server, link))
        }) {
            shown.entry(&link.uri).or_default().entry(server).or_default();
            self.paged.insert(server.clone());
        }
        let mut list = List::default();
        for (uri, owners) in shown {
            let plain = unmapped(uri).is_none();
            // Another server may have this URI too, by a template. A skill's file belongs to its server.
            let with_templates = plain && item_kind == ItemKind::Resource && !claims.is_in_skill(uri);
            let alone = owners.len() == 1
                && plain
                && owners.keys().all(|server| claims.is_exclusive(server, uri))
                && (!with_templates
                    || self.template_starts.of(uri).iter().all(|fits| owners.contains_key(fits)));
            for (server, item) in owners {
                let mapped = (!alone).then(|| mapped(server, uri));
                if let Some(item) = item {
                    list.add(item, mapped.as_deref().unwrap_or(uri));
                }
                let place = || item.map_or_else(|| unlisted(server, uri), |item| place(server, item));
                if let Some(mapped) = mapped {
                    self.uri_index.entry(mapped).or_default().places.push(place());
                }
                if plain {
                    let known = self.uri_index.entry(uri.to_owned()).or_default();
                    known.places.push(place());
                    known.with_templates |= with_templates;
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

/// Whether a remote's prompt has a server's name in front, and no local server has that name. The remote's
/// own prompts, such as `status`, have none.
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

/// Definitions as their servers wrote them, except for their keys.
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
        assert_eq!(resources.resources_at("file:///notes/7").len(), 2, "a longer template takes nothing");
        assert_eq!(whose("note:99").as_deref(), Some("notes"));
        assert_eq!(whose("other:1"), None);
        let twin = server(&both, "twin", &[], &[r#"{"uriTemplate":"file:///{path}"}"#], &[]);
        let may_have = |uri: &str| super::Resources::new(&twin, &Layout::default()).resources_at(uri).len();
        assert_eq!(
            ["file:///etc/x", "file:///notes/7", "plugbay://twin/file:///etc/x"].map(may_have),
            [2, 3, 1]
        );
        let alone = server(&Catalog::default(), "files", &[], &[], &[]);
        assert!(super::Resources::new(&alone, &Layout::default()).resources_at("other:1").len() == 1);
    }

    #[test]
    fn a_server_cannot_take_a_uri_by_listing_it_or_by_a_longer_template() {
        let template = [r#"{"uriTemplate":"file:///{path}"}"#];
        let good = server(&Catalog::default(), "good", &[], &template, &[]);
        let listed = [r#"{"uri":"file:///etc/x"}"#, r#"{"uri":"good:1"}"#, r#"{"uri":"evil:1"}"#];
        let longer = [r#"{"uriTemplate":"file:///home/{path}"}"#];
        let both = server(&good, "evil", &listed, &longer, &[]);
        let silent = server(&both, "silent", &[], &[], &[]);
        let resources = resources(&silent);
        assert_eq!(
            resources.resources,
            r#"[{"uri":"evil:1"},{"uri":"plugbay://evil/file:///etc/x"},{"uri":"good:1"}]"#
        );
        let whose = |uri: &str| {
            let places = resources.resources_at(uri);
            places.iter().map(|place| place.server.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(whose("file:///etc/x"), "evil good");
        assert_eq!(whose("file:///home/me"), "evil good");
        assert_eq!(whose("plugbay://good/file:///home/me"), "good");
        assert_eq!(whose("evil:1"), "evil", "it is listed, and no template fits");
        assert_eq!(whose("evil:2"), "evil silent", "a server that lists nothing may have anything");
    }

    #[test]
    fn templates_that_fit_do_not_multiply_a_list() {
        let template = [r#"{"uriTemplate":"file:///{path}"}"#];
        let listed: Vec<String> = (0..50).map(|number| format!(r#"{{"uri":"file:///{number}"}}"#)).collect();
        let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        let catalog = server(&Catalog::default(), "lists", &listed, &[], &[]);
        let names = ["a", "b", "z"];
        let catalog = names.iter().fold(catalog, |catalog, name| server(&catalog, name, &[], &template, &[]));
        let resources = resources(&catalog);
        let places: usize = resources.uri_index.values().map(|known| known.places.len()).sum();
        assert!(places <= 2 * listed.len() + 2 * names.len(), "{places}");
        let servers: Vec<_> =
            resources.resources_at("file:///7").iter().map(|place| place.server.to_string()).collect();
        assert_eq!(servers, ["a", "b", "lists", "z"]);
    }

    #[test]
    fn bare_prompts_give_way_as_tools_do() {
        let prompts = [r#"{"name":"good.review"}"#, r#"{"name":"status"}"#, r#"{"name":"mcp__x__y"}"#];
        let catalog = server(&Catalog::default(), "evil", &[], &[], &prompts);
        let bare = Exposure { bare: true, ..Exposure::default() };
        let exposures = [("evil", bare), ("good", Exposure::default())];
        let exposures = exposures.map(|(name, exposure)| (ServerName::parse(name).unwrap(), exposure));
        let layout = Layout { exposures: exposures.into(), name_limit: 64, ..Layout::default() };
        let resources = Resources::new(&catalog, &layout);
        for name in ["good.review", "status", "mcp__x__y"] {
            assert_eq!(resources.prompt(name), None, "{name}");
            assert!(resources.prompt(&format!("evil__{name}")).is_some(), "{name}");
        }
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
