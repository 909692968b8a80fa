//! Searches: what they find, and in which order.

use bytes::Bytes;

use super::*;

fn tools(definitions: &[(&'static str, &str)]) -> Vec<(&'static str, Tool)> {
    let tool = |json: &str| Tool::parse(Bytes::from(json.to_owned())).unwrap();
    definitions.iter().map(|(server, json)| (*server, tool(json))).collect()
}

fn found(tools: &[(&'static str, Tool)], query: &str) -> Vec<String> {
    let borrowed: Vec<(&str, &Tool)> = tools.iter().map(|(server, tool)| (*server, tool)).collect();
    let engine = Engine::build(&borrowed, None);
    engine.search(query, 3, None).iter().map(|hit| tools[hit.tool as usize].1.name.clone()).collect()
}

fn catalog() -> Vec<(&'static str, Tool)> {
    tools(&[
        ("github", r#"{"name":"create_issue","description":"Opens a ticket in a repository"}"#),
        ("github", r#"{"name":"list_issues","description":"All issues"}"#),
        (
            "mail",
            r#"{"name":"sendMessage","description":"Sends an email","inputSchema":{"properties":{"recipient":{"type":"string","description":"whom to write to"},"format":{"enum":["markdown","plain"]}}}}"#,
        ),
        ("weather", r#"{"name":"getForecast","description":"天气预报 for a place"}"#),
    ])
}

#[test]
fn names_descriptions_and_parameters_are_searched() {
    for (query, first) in [
        ("create issue", "create_issue"),
        ("open a bug ticket please", "create_issue"),
        ("listing of issues", "list_issues"),
        ("sendmessage", "sendMessage"),
        ("recipients", "sendMessage"),
        ("markdown", "sendMessage"),
        ("天气", "getForecast"),
    ] {
        assert_eq!(found(&catalog(), query).first().map(String::as_str), Some(first), "{query}");
    }
}

#[test]
fn what_no_tool_is_for_finds_nothing() {
    assert_eq!(found(&catalog(), "zebra"), Vec::<String>::new());
    assert_eq!(found(&catalog(), "please can you"), Vec::<String>::new());
    assert_eq!(found(&[], "anything"), Vec::<String>::new());
}

#[test]
fn a_query_of_few_words_must_be_answered_better_to_find_a_tool() {
    let servers = many(8, 300);
    let engine = Engine::build(&servers.iter().flat_map(group).collect::<Vec<_>>(), None);
    let verdict = |query| engine.search(query, 1, None).first().map(|hit| hit.verdict);
    assert_eq!(verdict("thing12 quux"), None, "half of two words");
    assert_eq!(verdict("server2 verb3 thing12 quux"), Some(Verdict::Poor), "three of four");
    assert_eq!(verdict("thing12"), Some(Verdict::Likely));
    for query in ["thing12 quux …", "‘thing12’ quux"] {
        assert_eq!(verdict(query), None, "a mark that is not ASCII changes nothing");
    }
}

#[test]
fn what_names_say_is_doubtful_and_not_in_vain() {
    let servers = many(8, 300);
    let engine = Engine::build(&servers.iter().flat_map(group).collect::<Vec<_>>(), None);
    let verdict = |query| engine.search(query, 5, None).first().map(|hit| hit.verdict);
    assert_eq!(verdict("word7 the thing12"), Some(Verdict::Poor), "tools are about things");
    assert_eq!(verdict("thing12 word7"), None, "and none about words");
    assert_eq!(verdict("quux the thing12"), None);
}

#[test]
fn a_mistyped_word_of_a_query_is_read_like_the_word_that_was_meant() {
    let tools = tools(&[
        ("files", r#"{"name":"list_directory","description":"All files of a directory"}"#),
        ("books", r#"{"name":"find_by_doi","description":"A paper by its DOI"}"#),
    ]);
    let engine = Engine::build(&tools.iter().map(|(server, tool)| (*server, tool)).collect::<Vec<_>>(), None);
    for (typed, meant) in [
        ("list my foldr", "list my folder"),
        ("files aobut papers", "files about papers"),
        ("wht files", "what files"),
        ("list diretory", "list directory"),
    ] {
        let [typed, meant] = [typed, meant].map(|query| engine.read(query));
        assert_eq!((&typed.whole.terms, &typed.reading.asked), (&meant.whole.terms, &meant.reading.asked));
        assert_eq!(typed.reading.unknown.to_bits(), meant.reading.unknown.to_bits());
        assert!(!typed.whole.terms.is_empty());
    }
    assert!(
        engine.read("what files do I have").reading.asked.iter().all(|asked| asked.typed.len() < 2),
        "`do I`"
    );
}

#[test]
fn a_query_finds_by_memory_alone_only_what_was_called_after_nearly_all_of_its_words() {
    let tools = catalog();
    let engine = Engine::build(&tools.iter().map(|(server, tool)| (*server, tool)).collect::<Vec<_>>(), None);
    let recalled = |words: &[(&str, f32)]| -> Vec<Recalled> {
        words
            .iter()
            .map(|(stem, weight)| Recalled { stem: (*stem).to_owned(), tool: 2, weight: *weight })
            .collect()
    };
    let first = |words| {
        engine.search_recalling("zebra quux", 5, None, &recalled(words), None).first().map(|hit| hit.tool)
    };
    assert_eq!(first(&[]), None);
    assert_eq!(first(&[("zebra", 1.0)]), None, "half of the words");
    assert_eq!(
        first(&[("zebra", 0.5), ("quux", 0.5)]),
        None,
        "once, by a search before the one that was followed"
    );
    assert_eq!(first(&[("zebra", 1.0), ("quux", 1.0)]), Some(2));
}

#[test]
fn a_query_that_is_the_name_of_one_tool_is_clear() {
    let definitions = [
        ("git", r#"{"name":"git_log","description":"Logs of git"}"#),
        ("git", r#"{"name":"git_log_graph","description":"git log git log"}"#),
        ("a", r#"{"name":"fetch","description":"Gets it"}"#),
        ("b", r#"{"name":"fetch","description":"Gets it too"}"#),
    ];
    let tools = tools(&definitions);
    let engine = Engine::build(&tools.iter().map(|(server, tool)| (*server, tool)).collect::<Vec<_>>(), None);
    let first = |query| engine.search(query, 5, None).first().map(|hit| (hit.tool, hit.is_clear()));
    assert_eq!(first("git_log"), Some((0, true)));
    assert_eq!(first("git log graph"), Some((1, true)));
    assert_eq!(first("fetch").map(|(_, clear)| clear), Some(false), "two tools have the name");
    assert_eq!(first("b.fetch"), Some((3, true)));
}

#[test]
fn tools_that_a_query_names_come_first() {
    let definitions = [
        ("files", r#"{"name":"delete_all","description":"delete delete delete"}"#),
        ("redis", r#"{"name":"delete","description":"Removes a key"}"#),
        ("git", r#"{"name":"create_branch","description":"A new branch"}"#),
        ("evil", r#"{"name":"git_create_branch","description":"git create branch"}"#),
    ];
    let tools = tools(&definitions);
    let engine = Engine::build(&tools.iter().map(|(server, tool)| (*server, tool)).collect::<Vec<_>>(), None);
    let found = |query, exposed| -> Vec<(u32, bool)> {
        let hits = engine.search_recalling(query, 2, None, &[], exposed);
        hits.iter().map(|hit| (hit.tool, hit.is_clear())).collect()
    };
    assert_eq!(found("delete", None).first(), Some(&(1, true)));
    assert_eq!(found("git_create_branch", None), [(2, false), (3, false)], "both are named so");
    assert_eq!(
        found("git__create_branch", Some(2)).first(),
        Some(&(2, true)),
        "the exposed name is one tool's"
    );
    assert_eq!(engine.search("delete", 5, Some(2..3)).len(), 0, "it is not among these");
}

#[test]
fn a_command_that_is_the_name_of_a_tool_finds_it() {
    let tools = tools(&[
        ("everything", r#"{"name":"echo","description":"Says it again"}"#),
        ("files", r#"{"name":"write_file","description":"Writes a file"}"#),
        ("git", r#"{"name":"git_commit","description":"Commits changes"}"#),
    ]);
    let engine = Engine::build(&tools.iter().map(|(server, tool)| (*server, tool)).collect::<Vec<_>>(), None);
    let found = |query| engine.search(query, 3, None).iter().map(|hit| hit.tool).collect::<Vec<_>>();
    assert_eq!(found("echo hello").first(), Some(&0));
    assert_eq!(found("tee notes").first(), Some(&1));
    assert!(
        !engine.search("git stash", 3, None).iter().any(|hit| hit.verdict == Verdict::Likely),
        "no tool stashes"
    );
}

#[test]
fn a_query_of_names_alone_is_never_in_vain() {
    let tools = catalog();
    let borrowed: Vec<(&str, &Tool)> = tools.iter().map(|(server, tool)| (*server, tool)).collect();
    let engine = Engine::build(&borrowed, None);
    let is_named = |query, tool| engine.is_named(&engine.read(query), tool);
    assert!(is_named("github", 0) && is_named("create a github issue", 0));
    assert!(!is_named("github ticket", 0), "it is in the description");
    assert!(!is_named("github zebra", 0) && !is_named("github", 2));
}

#[test]
fn a_request_of_several_sentences_finds_a_tool_for_each() {
    let both = found(&catalog(), "Send an email message to Ada. Then create an issue about the email bug.");
    assert!(both[..2].contains(&"sendMessage".to_owned()), "{both:?}");
    assert!(both[..2].contains(&"create_issue".to_owned()), "{both:?}");
}

#[test]
fn twins_come_after_other_choices() {
    let tools = tools(&[
        ("s", r#"{"name":"find_film","description":"find a film"}"#),
        ("s", r#"{"name":"Find_Film","description":"find a film"}"#),
        ("s", r#"{"name":"rent_film","description":"rent a film somewhere near to watch"}"#),
    ]);
    assert_eq!(found(&tools, "find film"), ["find_film", "rent_film", "Find_Film"]);
}

fn clear(tools: &[(&'static str, Tool)], query: &str) -> bool {
    let borrowed: Vec<(&str, &Tool)> = tools.iter().map(|(server, tool)| (*server, tool)).collect();
    Engine::build(&borrowed, None).search(query, 1, None).first().is_some_and(Hit::is_clear)
}

#[test]
fn a_hit_is_clear_by_its_lead_and_by_what_it_answers() {
    assert!(clear(&catalog(), "send an email"));
    assert!(!clear(&catalog(), "issues"), "two tools are about them");
    assert!(
        !clear(&catalog(), "book a plane in a format for tomorrow"),
        "nothing else is about anything of it"
    );
    let files = tools(&[
        ("git", r#"{"name":"create_branch","description":"Creates a branch"}"#),
        ("git", r#"{"name":"delete_file","description":"Deletes a file"}"#),
        ("git", r#"{"name":"list_branches","description":"All branches"}"#),
    ]);
    assert!(clear(&files, "delete a file"));
    assert!(!clear(&files, "delete a branch"), "the only tool that deletes knows no branches");
    assert!(!clear(&files, "delete a file on GitLab"), "no tool knows that name");
    let mail = tools(&[
        ("a", r#"{"name":"delete_key","description":"Deletes a key. Returns: an error message"}"#),
        ("b", r#"{"name":"send_message","description":"Sends a message"}"#),
    ]);
    assert!(!clear(&mail, "delete a message"), "a word of its description says little");
}

#[test]
fn of_one_server_is_found_what_would_be_lost_among_others() {
    let others = (0..500).map(|number| format!(r#"{{"name":"list","description":"list list {number}"}}"#));
    let mut tools: Vec<(&str, Tool)> =
        others.map(|json| ("other", Tool::parse(Bytes::from(json)).unwrap())).collect();
    let wanted = r#"{"name":"read_graph","description":"a list of all that is remembered in the long run"}"#;
    tools.push(("memory", Tool::parse(Bytes::from(wanted)).unwrap()));
    let borrowed: Vec<(&str, &Tool)> = tools.iter().map(|(server, tool)| (*server, tool)).collect();
    let engine = Engine::build(&borrowed, None);
    let found =
        |within| engine.search("list", 5, Some(within)).iter().map(|hit| hit.tool).collect::<Vec<_>>();
    assert_eq!(found(500..501), [500]);
    assert!(found(0..500).iter().all(|tool| *tool < 500));
    assert!(found(0..0).is_empty());
}

/// Four words in two embeddings: rain and weather point the same way.
pub(super) fn table() -> Arc<EmbeddingTable> {
    let mut table = b"TVEC".to_vec();
    table.extend(4u32.to_le_bytes());
    table.extend(2u32.to_le_bytes());
    table.extend([1.0f32; 4].iter().flat_map(|scale| scale.to_le_bytes()));
    table.extend([0, 100, 5, 99, 100, 0, 99, 5]);
    table.extend(b"letter\nmail\nrain\nweather\n");
    Arc::new(EmbeddingTable::read(table.leak()).unwrap())
}

#[test]
fn a_query_word_that_no_tool_has_is_found_by_its_embedding() {
    let table = table();
    let tools = tools(&[
        ("a", r#"{"name":"mail","description":"mail"}"#),
        ("b", r#"{"name":"weather","description":"weather"}"#),
    ]);
    let borrowed: Vec<(&str, &Tool)> = tools.iter().map(|(server, tool)| (*server, tool)).collect();
    let engine = Engine::build(&borrowed, Some(table));
    let best = |query| engine.search(query, 5, None).first().map(|hit| (hit.tool, hit.is_clear()));
    assert_eq!(best("rain"), Some((1, false)), "near, but not said");
    assert_eq!(best("letter"), Some((0, false)));
    assert_eq!(best("mail"), Some((0, true)));
    assert!(EmbeddingTable::read(b"TVEC\xff\xff\xff\xff\xff\xff\xff\xff").is_none());
}

/// Tools of several servers, with words that many of them share and some that few have.
fn many(servers: usize, each: usize) -> Vec<(String, Vec<Tool>)> {
    let tool = |server: usize, number: usize| {
        let (a, b) = (number % 7, (server * 31 + number * 17) % 97);
        let definition = format!(
            r#"{{"name":"verb{a}_thing{b}","description":"Does thing{b} with word{} and part{}. Twice: thing{b}.","inputSchema":{{"properties":{{"key{a}":{{"description":"the word{}"}}}}}}}}"#,
            (server + number) % 53,
            number % 11,
            number % 5,
        );
        Tool::parse(Bytes::from(definition)).unwrap()
    };
    (0..servers)
        .map(|server| (format!("server{server}"), (0..each).map(|number| tool(server, number)).collect()))
        .collect()
}

fn group(server: &(String, Vec<Tool>)) -> Vec<(&str, &Tool)> {
    server.1.iter().map(|tool| (server.0.as_str(), tool)).collect()
}

const QUERIES: [&str; 5] = [
    "verb3 thing12",
    "word7 of server2",
    "key1 part4. verb2 thing40 word9",
    "twice thing5 unknownword",
    "server1",
];

fn assert_same(one: &Engine, other: &Engine) {
    for query in QUERIES {
        assert_eq!(one.search(query, 20, None), other.search(query, 20, None), "{query}");
        assert_eq!(one.search(query, 20, Some(300..700)), other.search(query, 20, Some(300..700)), "{query}");
    }
}

#[test]
fn a_search_index_made_in_two_halves_ranks_like_one_made_at_once() {
    let servers = many(8, 300);
    let groups = || servers.iter().map(|server| ToolGroup::New(group(server))).collect();
    let at_once = Engine::build(&servers.iter().flat_map(group).collect::<Vec<_>>(), None);
    let second_first: Join = |first, second| {
        second();
        first();
    };
    let halves = Engine::of_groups(groups(), None, None, second_first).0;
    assert_eq!(halves.index.dictionary().len(), at_once.index.dictionary().len());
    assert_same(&halves, &at_once);
}

#[test]
fn a_search_index_after_a_change_of_one_server_ranks_like_a_new_one() {
    let mut servers = many(6, 300);
    let groups = servers.iter().map(|server| ToolGroup::New(group(server))).collect();
    let (before, segments) = Engine::of_groups(groups, None, None, one_after_the_other);
    servers[2].1.truncate(250);
    let added = r#"{"name":"brandnew_thing12","description":"word7 and brandnew words"}"#;
    servers[2].1.push(Tool::parse(Bytes::from_static(added.as_bytes())).unwrap());
    let parts = servers.iter().zip(&segments).enumerate().map(|(at, (server, segment))| {
        if at == 2 { ToolGroup::New(group(server)) } else { ToolGroup::Kept(Arc::clone(segment)) }
    });
    let (after, kept) = Engine::of_groups(parts.collect(), Some(&before), None, one_after_the_other);
    assert!(Arc::ptr_eq(&kept[5], &segments[5]) && !Arc::ptr_eq(&kept[2], &segments[2]));
    let fresh = Engine::build(&servers.iter().flat_map(group).collect::<Vec<_>>(), None);
    assert_same(&after, &fresh);
    assert_eq!(after.search("brandnew", 1, None), fresh.search("brandnew", 1, None));
    assert!(!after.is_outdated());
}

#[test]
fn words_that_no_tool_has_any_more_are_not_found() {
    let servers = many(1, 300);
    let groups = vec![ToolGroup::New(group(&servers[0]))];
    let (before, _) = Engine::of_groups(groups, None, None, one_after_the_other);
    let other = tools(&[("s", r#"{"name":"weather","description":"rain"}"#)]);
    let next = vec![ToolGroup::New(vec![("s", &other[0].1)])];
    let (after, _) = Engine::of_groups(next, Some(&before), None, one_after_the_other);
    assert!(after.search("thing12", 5, None).is_empty() && after.is_outdated());
    assert_eq!(after.search("rain", 5, None).len(), 1);
}

/// A memory in which a tool was called after every word, as often as can be.
fn poisoned(query: &str, tool: u32) -> Vec<Recalled> {
    let words = memory::remembered_words(query).into_iter();
    words.map(|stem| Recalled { stem, tool, weight: 10.0 }).collect()
}

#[test]
fn a_poisoned_memory_lifts_no_tool_over_an_exact_name() {
    let tools = catalog();
    let borrowed: Vec<(&str, &Tool)> = tools.iter().map(|(server, tool)| (*server, tool)).collect();
    let engine = Engine::build(&borrowed, None);
    for (wanted, (server, tool)) in (0..).zip(&borrowed) {
        let words = tool.name.replace('_', " ");
        for query in [
            tool.name.clone(),
            words.clone(),
            format!("{server} {words}"),
            format!("{server}__{}", tool.name),
        ] {
            for other in (0..4).filter(|other| *other != wanted) {
                let hits = engine.search_recalling(&query, 5, None, &poisoned(&query, other), None);
                assert_eq!(hits[0].tool, wanted, "{query} with a memory of {other}");
            }
        }
    }
}

#[test]
fn a_remembered_search_finds_its_tool_by_other_words() {
    let tools = catalog();
    let borrowed: Vec<(&str, &Tool)> = tools.iter().map(|(server, tool)| (*server, tool)).collect();
    let engine = Engine::build(&borrowed, None);
    assert!(engine.search("gizmo", 5, None).is_empty());
    let recalled = [Recalled { stem: "gizmo".to_owned(), tool: 3, weight: 1.0 }];
    let hits = engine.search_recalling("gizmo", 5, None, &recalled, None);
    assert_eq!(hits.iter().map(|hit| hit.tool).collect::<Vec<_>>(), [3]);
    let outside = engine.search_recalling("gizmo", 5, Some(0..2), &recalled, None);
    assert!(outside.is_empty(), "a tool of another server");
    let gone = [Recalled { stem: "gizmo".to_owned(), tool: 99, weight: 1.0 }];
    assert!(engine.search_recalling("gizmo", 5, None, &gone, None).is_empty());
}

#[test]
fn a_remembered_search_says_nothing_of_the_other_hits() {
    let tools = catalog();
    let borrowed: Vec<(&str, &Tool)> = tools.iter().map(|(server, tool)| (*server, tool)).collect();
    let engine = Engine::build(&borrowed, None);
    let verdicts = |query: &str, tool: u32| -> Vec<(u32, Verdict)> {
        let words = memory::remembered_words(query).into_iter();
        let recalled: Vec<Recalled> = words.map(|stem| Recalled { stem, tool, weight: 1.0 }).collect();
        let hits = engine.search_recalling(query, 5, None, &recalled, None);
        hits.iter().map(|hit| (hit.tool, hit.verdict)).collect()
    };
    let (poor, likely) = (Verdict::Poor, Verdict::Likely);
    assert_eq!(verdicts("issue zebra quux", 99), [(0, poor), (1, poor)]);
    assert_eq!(verdicts("issue zebra quux", 3), [(3, likely), (0, poor), (1, poor)]);
    assert_eq!(
        verdicts("ticket zebra quux", 1),
        [(1, likely), (0, poor)],
        "before one with more of the words"
    );
    assert_eq!(verdicts("zebra quux", 3), [(3, likely)]);
}
