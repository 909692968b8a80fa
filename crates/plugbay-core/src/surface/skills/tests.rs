//! Skills of two servers: what hosts see of them, and the servers that their URIs lead to.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::{
    catalog::{Change, Item, ItemKind, Items, Offer, ServerCapabilities, Tool},
    era::Era,
    exposure::Mode,
    extension::Extensions,
    surface::Layout,
};

/// What a server of a test has.
#[derive(Default)]
struct Server<'a> {
    skills: &'a [&'a str],
    resources: &'a [&'a str],
    templates: &'a [&'a str],
    directory_read: bool,
}

/// An entry with these files below its directory; without any, a dynamic one.
fn entry(root: &str, files: &[&str]) -> String {
    let file = |name: &&str| format!(r#"{{"uri":"{root}/{name}","digest":"sha256:00","size":1}}"#);
    let files: Vec<String> = files.iter().map(file).collect();
    let resources =
        if files.is_empty() { r#""dynamic""#.to_owned() } else { format!("[{}]", files.join(",")) };
    let name = root.rsplit('/').next().unwrap();
    format!(
        r#"{{"resources":{resources}, "uri":"{root}/SKILL.md","frontmatter":{{"name":"{name}","description":"About {name}","n":1.0}}}}"#
    )
}

fn with(catalog: &Catalog, name: &str, server: &Server<'_>) -> Catalog {
    let items = |item_kind, definitions: Vec<String>| {
        let parse = |json: String| Item::parse(Bytes::from(json), item_kind).unwrap();
        definitions.into_iter().map(parse).collect()
    };
    let listed = |uris: &[&str], key: &str| uris.iter().map(|uri| json!({ key: uri }).to_string()).collect();
    let items = Items {
        resources: items(ItemKind::Resource, listed(server.resources, "uri")),
        templates: items(ItemKind::Template, listed(server.templates, "uriTemplate")),
        skills: items(ItemKind::Skill, server.skills.iter().map(|&text| text.to_owned()).collect()),
        ..Items::default()
    };
    let capabilities = ServerCapabilities {
        resources: true,
        skills: !server.skills.is_empty(),
        directory_read: server.directory_read,
        ..ServerCapabilities::default()
    };
    let declared = format!(
        r#"{{"extensions":{{"{}":{{"directoryRead":{},"x":1.0}}}}}}"#,
        skill::EXTENSION,
        server.directory_read
    );
    let extensions = Extensions::read(declared.as_bytes(), &(0..declared.len()));
    let tools = vec![Tool::parse(Bytes::from_static(br#"{"name":"t"}"#)).unwrap()];
    let offer =
        Offer::new(Era::Modern, None, None, tools).with_items(capabilities, items).extended(extensions);
    catalog.apply(Change::Listed(ServerName::parse(name).unwrap(), Arc::new(offer)))
}

fn snapshot(catalog: &Catalog, mode: Mode) -> Snapshot {
    let skill = OwnSkill::new("---\nname: plugbay\ndescription: Ours\n---\nBody\n").map(Arc::new);
    let layout = Layout { mode: Some(mode), name_limit: 64, skill, ..Layout::default() };
    Snapshot::new(Arc::new(catalog.clone()), Arc::new(layout), true)
}

/// Two servers, `a` and `b`.
fn two(a: &Server<'_>, b: &Server<'_>) -> Snapshot {
    snapshot(&with(&with(&Catalog::default(), "a", a), "b", b), Mode::All)
}

fn uris(snapshot: &Snapshot) -> Vec<String> {
    snapshot.resources.skills.iter().map(|skill| skill.uri.clone()).collect()
}

fn listed(snapshot: &Snapshot) -> Value {
    serde_json::from_slice(&snapshot.skills(None).unwrap().skills).unwrap()
}

fn at(server: &str, uri: &str) -> SkillPlace {
    SkillPlace::At(Place { server: ServerName::parse(server).unwrap(), quoted: quoted(uri) })
}

fn several(uri: &str) -> SkillPlace {
    SkillPlace::Several(vec![format!("plugbay://a/{uri}"), format!("plugbay://b/{uri}")])
}

#[test]
fn skill_entries_stay_as_they_are_unless_two_servers_have_a_uri() {
    let (git, pdf) = (entry("skill://git", &["SKILL.md", "x/A.md"]), entry("skill://pdf", &["SKILL.md"]));
    let apart = two(
        &Server { skills: &[&git], ..Server::default() },
        &Server { skills: &[&pdf], ..Server::default() },
    );
    assert_eq!(apart.skills(None).unwrap().skills, format!("[{git},{pdf}]"));
    assert_eq!(apart.skill_at("skill://git/SKILL.md"), at("a", "skill://git/SKILL.md"));
    assert_eq!(apart.skill_at("plugbay://b/skill://pdf/SKILL.md"), at("b", "skill://pdf/SKILL.md"));

    let same = two(
        &Server { skills: &[&git, &pdf], ..Server::default() },
        &Server { skills: &[&git], ..Server::default() },
    );
    let mapped = |server: &str| git.replace("skill://", &format!("plugbay://{server}/skill://"));
    assert_eq!(same.skills(None).unwrap().skills, format!("[{},{},{pdf}]", mapped("a"), mapped("b")));
    assert_eq!(same.skill_at("plugbay://b/skill://git/SKILL.md"), at("b", "skill://git/SKILL.md"));
    assert_eq!(same.skill_at("skill://git/SKILL.md"), several("skill://git/SKILL.md"));
    assert_eq!(same.skill_at("skill://pdf/SKILL.md"), at("a", "skill://pdf/SKILL.md"));
}

#[test]
fn files_of_skills_lead_to_the_server_of_the_skill() {
    let (git, pdf) = (entry("skill://git", &[]), entry("skill://pdf", &["SKILL.md"]));
    let template = ["skill://{+path}"];
    let snapshot = two(
        &Server { skills: &[&git], templates: &template, ..Server::default() },
        &Server { skills: &[&pdf], templates: &template, ..Server::default() },
    );
    for uri in ["skill://git/references/X.md", "skill://git/references", "skill://git"] {
        assert_eq!(snapshot.skill_file_at(uri), at("a", uri));
    }
    assert_eq!(snapshot.skill_file_at("skill://pdf/unlisted.md"), at("b", "skill://pdf/unlisted.md"));
    let unlisted = "skill://new/SKILL.md";
    let both = ["a", "b"].map(|name| ServerName::parse(name).unwrap()).to_vec();
    assert_eq!(snapshot.skill_file_at(unlisted), SkillPlace::Perhaps(both.clone()));
    assert_eq!(snapshot.skill_at(unlisted), SkillPlace::Perhaps(both));
    assert_eq!(snapshot.skill_file_at("plugbay://b/skill://git/x"), at("b", "skill://git/x"));
    assert_eq!(snapshot.skill_file_at("other:1"), SkillPlace::Nowhere);
    assert_eq!(snapshot.skill_at("plugbay://c/skill://git/SKILL.md"), SkillPlace::Nowhere);
}

#[test]
fn no_server_takes_over_a_file_of_anothers_skill() {
    let git = entry("skill://git", &["SKILL.md", "A.md"]);
    let mine = Server { skills: &[&git], ..Server::default() };
    let lister = two(&mine, &Server { resources: &["skill://git/A.md"], ..Server::default() });
    assert_eq!(uris(&lister), ["plugbay://a/skill://git/SKILL.md"]);
    assert_eq!(lister.resources.resources, r#"[{"uri":"plugbay://b/skill://git/A.md"}]"#);
    assert_eq!(lister.skill_file_at("skill://git/A.md"), several("skill://git/A.md"));

    let (around, within) = (entry("skill://git/deep/er", &[]), entry("skill://git/deep", &["SKILL.md"]));
    for other in [&around, &within] {
        let nested = two(&mine, &Server { skills: &[other], ..Server::default() });
        assert!(uris(&nested).iter().all(|uri| uri.starts_with("plugbay://")), "{:?}", uris(&nested));
    }
    let own =
        two(&mine, &Server { skills: &[&entry("skill://plugbay", &["SKILL.md"])], ..Server::default() });
    assert_eq!(uris(&own), ["plugbay://b/skill://plugbay/SKILL.md", "skill://git/SKILL.md"]);
}

#[test]
fn a_file_that_no_entry_names_is_never_anothers_either() {
    let dynamic = entry("skill://dyn", &[]);
    let mine = Server { skills: &[&dynamic], ..Server::default() };
    let claims = [
        Server { resources: &["skill://dyn/how.md"], ..Server::default() },
        Server { templates: &["skill://dyn/ho{x}"], ..Server::default() },
        Server { templates: &["skill://dyn/{x}"], ..Server::default() },
    ];
    for evil in claims {
        let both = two(&mine, &evil);
        assert_eq!(uris(&both), ["plugbay://a/skill://dyn/SKILL.md"]);
        let file = "plugbay://a/skill://dyn/how.md";
        assert_eq!(both.skill_file_at(file), at("a", "skill://dyn/how.md"));
    }
    let elsewhere = two(&mine, &Server { resources: &["skill://dynamo/how.md"], ..Server::default() });
    assert_eq!(uris(&elsewhere), ["skill://dyn/SKILL.md"]);
    let root = entry("skill:/", &["SKILL.md"]);
    let of_all = two(&mine, &Server { skills: &[&root], ..Server::default() });
    assert_ne!(of_all.skill_file_at("skill://hidden/SKILL.md"), at("b", "skill://hidden/SKILL.md"));
}

#[test]
fn resources_of_a_mapped_skill_are_mapped_alike() {
    let git = entry("skill://git", &["SKILL.md"]);
    let skills = [git.as_str()];
    let listing =
        Server { skills: &skills, resources: &["skill://git/SKILL.md", "x:1"], ..Server::default() };
    let snapshot = two(&listing, &Server { skills: &skills, ..Server::default() });
    let expected = r#"[{"uri":"plugbay://a/skill://git/SKILL.md"},{"uri":"x:1"}]"#;
    assert_eq!(snapshot.resources.resources, expected);
}

#[test]
fn our_own_skill_is_there_with_the_tools_that_it_is_about() {
    let git = entry("skill://git", &["SKILL.md"]);
    let catalog = with(&Catalog::default(), "a", &Server { skills: &[&git], ..Server::default() });
    for (mode, count) in [(Mode::All, 1), (Mode::Search, 2), (Mode::Activate, 2), (Mode::Suite, 2)] {
        let snapshot = snapshot(&catalog, mode);
        assert_eq!(listed(&snapshot).as_array().unwrap().len(), count, "{mode:?}");
        let own = if count == 2 { SkillPlace::Own } else { at("a", "skill://plugbay/SKILL.md") };
        assert_eq!(snapshot.skill_at("skill://plugbay/SKILL.md"), own);
    }
    let tools = with(&Catalog::default(), "a", &Server::default());
    let (all, search) = (snapshot(&tools, Mode::All), snapshot(&tools, Mode::Search));
    assert!(!all.has_skills() && all.skills_declaration().is_none());
    assert_eq!(listed(&search)[0]["uri"], "skill://plugbay/SKILL.md");
    assert_eq!(search.skills_declaration().unwrap(), r#"{"directoryRead":true}"#);
}

#[test]
fn directories_are_declared_if_every_one_can_be_read() {
    let (known, dynamic) = (entry("skill://k", &["SKILL.md"]), entry("skill://d", &[]));
    let (known, dynamic) = ([known.as_str()], [dynamic.as_str()]);
    let reads = |skills| Server { skills, directory_read: true, ..Server::default() };
    let lacks = |skills| Server { skills, ..Server::default() };
    assert!(two(&reads(&dynamic), &lacks(&known)).reads_directories());
    assert!(!two(&lacks(&dynamic), &reads(&known)).reads_directories());
    assert!(!two(&lacks(&known), &lacks(&[])).reads_directories());
    let alone = two(&reads(&known), &Server::default());
    assert_eq!(alone.skills_declaration().unwrap(), r#"{"directoryRead":true,"x":1.0}"#);
    let both = two(&reads(&known), &lacks(&dynamic));
    assert_eq!(both.skills_declaration().unwrap(), "{}");
}

#[test]
fn a_directory_is_known_from_the_files_of_an_entry() {
    let git = entry("skill://git", &["SKILL.md", "t/a.md", "t/r/b.md"]);
    let snapshot = two(&Server { skills: &[&git], ..Server::default() }, &Server::default());
    let read =
        |uri: &str| snapshot.skill_directory(uri).map(|text| serde_json::from_slice::<Value>(&text).unwrap());
    let expected = json!([
        { "uri": "skill://git/SKILL.md", "name": "SKILL.md" },
        { "uri": "skill://git/t", "name": "t", "mimeType": "inode/directory" },
    ]);
    assert_eq!(read("skill://git"), Some(expected));
    let below = json!([
        { "uri": "skill://git/t/a.md", "name": "a.md" },
        { "uri": "skill://git/t/r", "name": "r", "mimeType": "inode/directory" },
    ]);
    assert_eq!(read("skill://git/t"), Some(below));
    assert_eq!([read("skill://git/SKILL.md"), read("skill://gi"), read("skill://git/x")], [None, None, None]);
}

#[test]
fn pages_of_skills_hold_whole_entries_and_join_to_the_list() {
    let files: Vec<String> = (0..500).map(|n| format!("{n:0300}.md")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let entries: Vec<String> = (0..9).map(|n| entry(&format!("skill://s{n}"), &files)).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let catalog = with(&Catalog::default(), "a", &Server { skills: &entries, ..Server::default() });
    let snapshot = snapshot(&catalog, Mode::Search);
    let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = snapshot.skills(cursor.as_deref()).unwrap();
        let skills: Vec<Value> = serde_json::from_slice(&page.skills).unwrap();
        seen.extend(skills.iter().map(|skill| skill["uri"].as_str().unwrap().to_owned()));
        pages += 1;
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    let expected = ["plugbay", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"];
    assert_eq!(seen, expected.map(|name| format!("skill://{name}/SKILL.md")));
    assert_eq!(pages, 9, "an entry is longer than half a page");
    assert_eq!(snapshot.skills(Some("2")), None);
    let behind = snapshot.skills(Some("skills from skill://z")).unwrap();
    assert_eq!(behind, SkillPage { skills: Bytes::from_static(b"[]"), next: None });
}

#[test]
fn skills_are_found_by_what_they_are_for() {
    let text = |name: &str, description: &str| {
        format!(
            r#"{{"uri":"skill://{name}/SKILL.md","frontmatter":{{"name":"{name}","description":"{description}"}},"resources":"dynamic"}}"#
        )
    };
    let git = text("git-workflow", "Follow this team's Git conventions for branching and commits");
    let pdf = text("pdf-processing", "Extract, fill and assemble PDF documents");
    let snapshot = two(
        &Server { skills: &[&git], ..Server::default() },
        &Server { skills: &[&pdf], ..Server::default() },
    );
    let found = |query: &str, server: Option<&str>| {
        let server = server.map(|server| ServerName::parse(server).unwrap());
        let found = snapshot.resources.skills.found(query, server.as_ref(), || None);
        found.into_iter().map(|skill| skill.name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("fill a pdf", None), "pdf-processing");
    assert_eq!(found("git commit conventions", None), "git-workflow");
    assert_eq!(found("git commit conventions", Some("b")), "");
    assert_eq!(found("send a mail to the pdf team tomorrow", None), "");
}
