//! Generated large inputs for every entry point that outside data reaches. Work that grows with the square of its input
//! would not end here; nothing is timed.

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::{
    apps::ToolUi,
    arguments::{self, CompiledSchema, Envelope, Mode, ResolvedTool, unwrap_call},
    catalog::{
        Allowance, Catalog, Change, HeaderParameter, Item, ItemKind, Items, Offer, ServerCapabilities, Tool,
        read_page,
    },
    era::Era,
    exposure::{self, Exposure},
    name::{self, ServerName},
    policy::Patterns,
    search::{Engine, ranking, reply},
    signature::Signature,
    skill,
    surface::{Layout, Snapshot, activate, instructions, suite},
    tokens,
};

/// Bytes of a long input: the square of it takes minutes. Where every input meets every schema, they are shorter.
const LONG: usize = 256 << 10;
const SHORT: usize = 4 << 10;

/// What texts are made of: letters with odd stems, scripts without spaces, marks, escapes, parts of patterns, of names,
/// of URIs and of JSON.
const PIECES: [&str; 29] = [
    "。",
    "y",
    "a",
    "Aa",
    "aB",
    "_",
    "-",
    ".",
    " ",
    "é\u{301}",
    "天",
    "א\u{5b0}",
    "İ",
    "🙂",
    "/",
    ":/",
    "__",
    "a__",
    "{a,",
    "[!a]*",
    "*",
    "?a",
    "(a+)+",
    "\\ud800",
    "\\\"",
    "```{",
    "'a':",
    "1,",
    "e.g. ",
];

/// A text of `length` bytes, made of one piece.
fn long(piece: &str, length: usize) -> String {
    piece.repeat(length / piece.len())
}

fn texts() -> impl Iterator<Item = String> {
    PIECES.iter().map(|piece| long(piece, LONG))
}

/// The same as JSON strings. Pieces that are escapes stay escapes.
fn quoted(length: usize) -> impl Iterator<Item = String> {
    PIECES.iter().map(move |piece| {
        let text = long(piece, length);
        if piece.starts_with('\\') {
            format!("\"{text}\"")
        } else {
            serde_json::Value::from(text).to_string()
        }
    })
}

/// Values with very many parts.
fn vast() -> Vec<String> {
    let members = |count: usize, key: &dyn Fn(usize) -> String| {
        (0..count).map(|number| format!("\"{}\":1", key(number))).collect::<Vec<_>>().join(",")
    };
    let deep =
        |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    vec![
        format!("{{{}}}", members(25_000, &|number| format!("key_{number}"))),
        format!(
            "{{{}}}",
            members(25_000, &|number| format!("{}a{}", "_".repeat(number % 200), "_".repeat(number / 200)))
        ),
        format!("{{{}}}", members(19_000, &|number| format!("kay{number}"))),
        format!("{{{}}}", members(9_000, &|number| format!("KEY_{number}"))),
        format!("{{\"list\":[{}1]}}", "1,".repeat(19_000)),
        format!("{{\"list\":[{}1]}}", "1,".repeat(LONG / 2)),
        format!("{{\"list\":[{}{{}}]}}", "{},".repeat(LONG / 3)),
        format!("{{\"list\":[{}\"\"]}}", "\"a\",".repeat(LONG / 4)),
        format!("{{\"number\":{}}}", "7".repeat(LONG)),
        deep("{\"a\":", "}", 60),
        deep("[", "]", 60),
        deep("{\"a\":", "}", LONG / 6),
    ]
}

/// Schemas that are wide, deep, lead to themselves, or ask for much.
fn schemas() -> Vec<String> {
    let names = |count: usize| (0..count).map(|number| format!("key{number}")).collect::<Vec<_>>();
    let properties = |count: usize, own: &str| {
        names(count).iter().map(|name| format!("\"{name}\":{own}")).collect::<Vec<_>>().join(",")
    };
    let own = r##"{"$ref":"#"}"##;
    vec![
        "{}".to_owned(),
        format!(r#"{{"properties":{{{}}},"required":{}}}"#, properties(8_000, r#"{"type":"string"}"#), serde_json::json!(names(8_000))),
        format!(r#"{{"properties":{{{}}},"additionalProperties":false}}"#, properties(8_000, "{}")),
        format!(r#"{{"properties":{{{}}}}}"#, properties(4_000, own)),
        format!(r#"{{"properties":{{"list":{{"anyOf":[{own}]}}}},"anyOf":[{}{own}]}}"#, format!("{own},").repeat(2_000)),
        format!(r#"{{"allOf":[{}{own}],"required":["x"]}}"#, format!("{own},").repeat(2_000)),
        r#"{"properties":{"list":{"type":"array","uniqueItems":true,"items":{"type":"integer"}}}}"#.to_owned(),
        format!(r#"{{"properties":{{"list":{{"items":{{"enum":{}}}}}}}}}"#, serde_json::json!(names(8_000))),
        r#"{"properties":{"text":{"type":"string","pattern":"^(a+)+$"},"list":{"items":{"pattern":"^(a|a)*b$"}}}}"#.to_owned(),
        format!(r#"{{"properties":{{"text":{{"pattern":"{}"}}}}}}"#, "(a{1,90}){1,9}".repeat(2_000)),
        r#"{"properties":{"number":{"type":"number","multipleOf":7}},"required":["x"]}"#.to_owned(),
        format!(r#"{{"properties":{{"text":{{"type":{}}}}}}}"#, serde_json::json!(vec!["integer"; 9_000])),
        format!(r#"{{"properties":{{"text":{{"anyOf":[{}{{}}]}}}},"required":["x"]}}"#, r#"{"type":"array"},"#.repeat(5_000)),
        format!(r#"{{"properties":{{"text":{{"enum":{}}}}}}}"#, serde_json::json!(names(8_000))),
        r#"{"properties":{"text":{"type":["array","object","integer","boolean","null"]}},"required":["text"]}"#.to_owned(),
        format!(r#"{{"properties":{{"a":{}}}}}"#, format!("{}1{}", "{\"properties\":{\"a\":".repeat(50), "}}".repeat(50))),
        format!(r#"{{"description":"{}","properties":{{"text":{{"const":"{}"}}}}}}"#, "x".repeat(100_000), "y".repeat(100_000)),
    ]
}

fn tool(name: &str, description: &str, schema: &str) -> Tool {
    let (name, description) = (serde_json::json!(name), serde_json::json!(description));
    let definition = format!(r#"{{"name":{name},"description":{description},"inputSchema":{schema}}}"#);
    Tool::parse(Bytes::from(definition)).unwrap()
}

fn server(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

fn snapshot(offers: Vec<(&str, Offer)>, exposure: &Exposure) -> Snapshot {
    let (mut catalog, mut exposures) = (Catalog::default(), std::collections::BTreeMap::new());
    for (name, offer) in offers {
        catalog = catalog.apply(Change::Listed(server(name), Arc::new(offer)));
        exposures.insert(server(name), exposure.clone());
    }
    let layout = Layout { exposures, name_limit: 64, ..Layout::default() };
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

fn offer(tools: Vec<Tool>) -> Offer {
    Offer::new(Era::Legacy, None, None, tools)
}

#[test]
fn search_takes_any_description_and_any_query() {
    let long: Vec<Tool> = texts().map(|text| tool("odd", &text, "{}")).collect();
    let plain = tool("create_issue", "Opens a ticket.", r#"{"properties":{"title":{}}}"#);
    let mut tools: Vec<(&str, &Tool)> = long.iter().map(|tool| ("odd", tool)).collect();
    tools.push(("github", &plain));
    let engine = Engine::build(&tools, None);
    let last = u32::try_from(tools.len() - 1).unwrap();
    assert_eq!(engine.search("create an issue", 3, None)[0].tool, last);
    for text in texts() {
        let _ = (engine.search(&text, 5, None), engine.explain(&text, last, ("github", &plain)));
        let _ = (reply::nothing(&text, &["github"; 50]), ranking::normalised(&text), ranking::names(&text));
    }
}

#[test]
fn names_and_patterns_of_any_length_are_compared() {
    let tools = (0..2_000).map(|number| tool(&format!("tool_{number}"), "", "{}")).collect();
    let snapshot = snapshot(vec![("git", offer(tools))], &Exposure::default());
    for text in texts() {
        let _ = (snapshot.plan(&text), snapshot.names.alike(&text), snapshot.executable(&text, Some(&text)));
        let _ = (
            name::nearest(&text, [text.as_str(), "git"]),
            name::folded(&text),
            name::is_slip(&text, &format!("{text}a")),
        );
        let short = &text[..text.floor_char_boundary(NAME)];
        let _ = (
            Patterns::compile([short]),
            activate::meant(short, &snapshot),
            suite::subtool(&server("git"), short, &snapshot),
        );
        let _ = (snapshot.resources.resources_at(&text), skill::directories(&text).count());
    }
}

#[test]
fn bare_names_of_two_servers_are_compared_once() {
    let tools = || (0..ITEMS).map(|number| tool(&format!("tool_{number}"), "", "{}")).collect();
    let bare = Exposure { bare: true, ..Exposure::default() };
    let snapshot = snapshot(vec![("one", offer(tools())), ("two", offer(tools()))], &bare);
    assert_eq!((snapshot.names.len(), snapshot.names.ambiguous.len()), (2 * ITEMS, ITEMS));
    assert_eq!(snapshot.names.alike("ONE.tool-7").map(|found| found.exposed.as_str()), Some("one__tool_7"));
    assert_eq!(snapshot.names.of(&server("two")).count(), ITEMS);
}

#[test]
fn arguments_of_any_size_are_checked_or_pass() {
    let holding = |text: String| format!(r#"{{"text":{text},"list":[{text}]}}"#);
    let nested =
        format!("{}{}{}", r#"{"arguments":"#.repeat(50), quoted(LONG).next().unwrap(), "}".repeat(50));
    let keys = quoted(SHORT).map(|text| format!("{{{text}:1}}"));
    let mut all: Vec<String> = quoted(SHORT).map(holding).chain(vast()).chain([nested]).chain(keys).collect();
    all.push(serde_json::json!(format!("{}=1", "a".repeat(LONG))).to_string());
    // Each input meets every third schema, and each schema every third input.
    for (number, schema) in schemas().into_iter().enumerate() {
        let compiled = Arc::new(CompiledSchema::new(schema.as_bytes()));
        let resolve = |name: &str, _: Option<&str>| {
            let schema = Some(Arc::clone(&compiled));
            Some(ResolvedTool { name: name.to_owned(), exact: name == "t", schema, tool: () })
        };
        for given in all.iter().skip(number % 3).step_by(3) {
            let mut outer = vec![format!(r#"{{"name":"t","args":{given}}}"#)];
            outer.extend((given.len() < LONG).then(|| format!(r#"{{"name":{given},"server":{given}}}"#)));
            for outer in outer {
                let call = unwrap_call(outer.as_bytes(), Envelope::EXECUTE, Mode::Repair, &resolve);
                let _ = call.map(|call| call.checked(Mode::Repair).map_err(|error| error.to_string()));
            }
        }
        // Long ones for one schema after the other.
        all.extend(
            PIECES
                .iter()
                .map(|piece| holding(serde_json::json!(long(piece, LONG)).to_string()))
                .nth(all.len() % PIECES.len()),
        );
    }
}

#[test]
fn a_call_with_very_many_keys_reaches_its_server_as_it_is() {
    for schema in &schemas()[..4] {
        let compiled = CompiledSchema::new(schema.as_bytes());
        for given in &vast()[..2] {
            let checked = arguments::check(&compiled, given.as_bytes(), Mode::Repair).unwrap();
            assert!(&*checked.arguments == given.as_bytes() && checked.repairs.is_empty());
        }
    }
}

#[test]
fn definitions_of_any_kind_are_told_in_a_line() {
    let mut tools: Vec<Tool> = schemas().iter().map(|schema| tool("t", "Does it.", schema)).collect();
    tools.extend(texts().map(|text| tool(&text, &text, "{}")));
    // Tools of one purpose: each sentence of one is compared with those of the others.
    let sentence = |of: usize, number: usize| format!("{}.", number + 900 * of.min(7));
    let sentences = |of| (0..900).map(|number| sentence(of, number)).collect::<Vec<_>>().join(" ");
    tools.extend((0..90).map(|of| tool("t", &format!("Same. {}", sentences(of)), "{}")));
    for tool in &tools {
        let line = Signature::of("s__t", tool).line(44);
        assert!(line.len() < 256 << 10, "{}", line.len());
        let _ = (tokens::estimate_definition(&tool.definition), HeaderParameter::of_tool(&tool.definition));
        let _ = (reply::definition(&tool.definition), tool.input_schema());
    }
    let found: Vec<reply::Found<'_>> =
        tools.iter().map(|tool| reply::Found { name: "s__t", tool, reads: true }).collect();
    let _ =
        (reply::found(&found, true, reply::Detail::Full, 4_000), reply::unknown("x", &found, "search_tools"));
}

#[test]
fn what_servers_say_is_summed_up() {
    let suites = Exposure { mode: Some(exposure::Mode::Suite), ..Exposure::default() };
    for text in texts() {
        let info = Bytes::from(
            serde_json::json!({ "name": "x", "description": &text[..text.floor_char_boundary(100_000)] })
                .to_string(),
        );
        let name = &text[..text.floor_char_boundary(NAME)];
        let tools = (0..100)
            .map(|number| tool(&format!("{name}{number}"), &text[..text.floor_char_boundary(9_000)], "{}"));
        let offer = Offer::new(Era::Legacy, Some(info), Some(text.clone()), tools.collect());
        let snapshot = snapshot(vec![("odd", offer)], &suites);
        let told = instructions(&snapshot, Some(&snapshot.listing), 2_000);
        assert!(told.len() <= 2_000);
        let _ = suite::introspect(
            &server("odd"),
            &snapshot,
            &suite::Wanted { full: true, ..suite::Wanted::default() },
        );
    }
}

#[test]
fn pages_of_lists_skills_and_apps_are_read() {
    let mut pages: Vec<String> =
        vast().iter().map(|value| format!(r#"{{"tools":[{value}],"nextCursor":{value}}}"#)).collect();
    pages.extend(quoted(LONG).map(|text| format!(r#"{{"tools":[{{"name":{text}}}],"nextCursor":{text}}}"#)));
    pages.push(format!(r#"{{"tools":[{}1]}}"#, "1,".repeat(LONG / 2)));
    for page in pages {
        let page = Bytes::from(page);
        let (definitions, _) = read_page(&page, &(0..page.len()), ItemKind::Tool, &mut Allowance::default());
        assert!(definitions.len() <= ITEMS);
        for definition in definitions {
            let _ = (Tool::parse(definition.clone()), Item::parse(definition, ItemKind::Resource));
        }
    }
    let link = r#""ui/resourceUri":"ui://x/","#;
    let meta = format!(
        r#"{{{}"ui":{{"visibility":[{}"app"]}}}}"#,
        link.repeat(20_000),
        r#""model","#.repeat(20_000)
    );
    let ui = ToolUi::read(meta.as_bytes(), &(0..meta.len())).unwrap();
    assert!(ui.for_app && ui.pages.len() <= 16);
}

#[test]
fn skills_within_skills_and_many_templates_are_indexed() {
    let skills = |scheme: &str| -> Vec<Item> {
        let uri = |depth: usize| format!("{scheme}://x{}/SKILL.md", "/a".repeat(depth));
        let entry = |depth: usize| {
            format!(r#"{{"uri":"{}","frontmatter":{{"name":"s{depth}","description":"d"}}}}"#, uri(depth))
        };
        (0..2_000).map(|depth| Item::parse(Bytes::from(entry(depth)), ItemKind::Skill).unwrap()).collect()
    };
    let templates =
        (0..ITEMS).map(|number| format!(r#"{{"uriTemplate":"ui://{}/{{x}}"}}"#, "a".repeat(number % 500)));
    let templates =
        templates.map(|json| Item::parse(Bytes::from(json), ItemKind::Template).unwrap()).collect();
    let pages = (0..2_000).map(|number| {
        let definition =
            format!(r#"{{"name":"t{number}","_meta":{{"ui/resourceUri":"ui://{}"}}}}"#, "a".repeat(number));
        Tool::parse(Bytes::from(definition)).unwrap()
    });
    let capabilities =
        ServerCapabilities { tools: true, resources: true, skills: true, ..ServerCapabilities::default() };
    let items = |templates| Items { templates, skills: skills("skill"), ..Items::default() };
    let one = offer(pages.collect()).with_items(capabilities, items(templates));
    let two = offer(Vec::new()).with_items(capabilities, items(Vec::new()));
    let snapshot = snapshot(vec![("one", one), ("two", two)], &Exposure::default());
    for text in texts() {
        let _ = (snapshot.skill_file_at(&text), snapshot.skill_at(&text), snapshot.skill_directory(&text));
        let _ = snapshot.resources.skills.found(&text, None, || None);
    }
    let at = snapshot.resources.resources_at(&format!("ui://{}/y", "a".repeat(499)));
    assert_eq!(at.iter().map(|place| place.server.as_str()).collect::<Vec<_>>(), ["one"]);
}
