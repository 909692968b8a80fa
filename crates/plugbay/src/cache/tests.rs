//! Tests of the cache.

use bytes::Bytes;
use plugbay_core::{
    catalog::{LeftOut, Tool},
    era::Era,
    extension::Extensions,
    search::StoredIndex,
};

use super::*;

const POOR: &str = "{}";
const RICH: &str = r#"{"sampling":{},"extensions":{"a/b":{"n":1}}}"#;

fn kind(text: &str) -> Declaration {
    Declaration::read(text.as_bytes(), &(0..text.len()))
}

fn offer(tool: &'static str) -> Arc<Offer> {
    let tools = vec![Tool::parse(Bytes::from_static(tool.as_bytes())).unwrap()];
    let info = Some(Bytes::from_static(br#"{"name":"s"}"#));
    let declared = br#"{"extensions":{"a/b":{"n":1.0}}}"#;
    let extensions = Extensions::read(declared, &(0..declared.len()));
    let offer = Offer::new(Era::Modern, info, Some("be kind".to_owned()), tools);
    Arc::new(offer.extended(extensions))
}

const BIG: &str = r#"{"name":"a", "x":1.0,"big":123456789012345678901234567890}"#;

fn list(host: &str, tool: &'static str, confirmed: u64) -> Saved {
    Saved::List { declared: kind(host), offer: offer(tool), confirmed }
}

/// Loads the lists as another process would.
fn load(cache: &Cache, identity: &str) -> CachedLists {
    let mut other = Cache::new(cache.folder.clone());
    let lists = other.load(&ServerName::parse("s").unwrap(), identity);
    other.finish();
    lists
}

/// The kinds of hosts and the definition of the tool of each list.
fn lists(cached: CachedLists) -> Vec<(Vec<String>, Bytes)> {
    let CachedLists::Lists(lists) = cached else { panic!("{cached:?}") };
    let one = |list: KnownList| {
        (list.declared.iter().map(Declaration::kind).collect(), list.offer.tools[0].definition.clone())
    };
    lists.into_iter().map(one).collect()
}

#[test]
fn cached_tool_definitions_keep_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let name = ServerName::parse("s").unwrap();
    let mut cache = Cache::new(Some(folder.path().join("deep/down")));
    assert_eq!(load(&cache, "one"), CachedLists::Absent);
    cache.save(&name, "one", list(POOR, BIG, 1_800_000_000));
    cache.save(&name, "two", Saved::NoAnswer);
    cache.finish();
    let confirmed = 1_800_000_000;
    let known = KnownList { declared: vec![kind(POOR)], offer: offer(BIG), confirmed };
    assert_eq!(load(&cache, "one"), CachedLists::Lists(vec![known]));
    assert_eq!(load(&cache, "two"), CachedLists::NoAnswer);
    assert_eq!(load(&cache, "three"), CachedLists::Absent);
}

#[test]
fn two_processes_save_the_lists_for_their_kinds_of_hosts_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let name = ServerName::parse("s").unwrap();
    let save = |saved: Saved| {
        let mut cache = Cache::new(Some(folder.path().to_owned()));
        cache.save(&name, "x", saved);
        cache.finish();
        lists(load(&cache, "x"))
    };
    save(list(POOR, BIG, 1));
    let rich_kind = kind(RICH).kind();
    assert_eq!(
        save(list(RICH, BIG, 2)),
        [(vec![POOR.to_owned(), rich_kind.clone()], Bytes::from(BIG))],
        "an equal list is kept once"
    );
    let more = r#"{"name":"more"}"#;
    assert_eq!(save(list(RICH, more, 3)).len(), 1, "another version of the server");
    let both = save(list(POOR, BIG, 4));
    let expected = [(vec![rich_kind], Bytes::from(more)), (vec![POOR.to_owned()], Bytes::from(BIG))];
    assert_eq!(both, expected);
    assert_eq!(save(Saved::NoAnswer), expected, "lists stay when the server does not answer");
}

#[test]
fn cache_files_of_earlier_versions_are_read_and_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("servers/x.json");
    fs::create_dir(folder.path().join("servers")).unwrap();
    let cache = Cache::new(Some(folder.path().to_owned()));
    let list = format!(
        r#""confirmed":7,"dialect":{{"era":"modern","framing":"newline"}},"tools":[{BIG}],"capabilities":{{"tools":true}}"#
    );
    let known = Some(vec![(Vec::new(), Bytes::from(BIG))]);
    for (file, expected) in [
        (format!(r#"{{"format":4,"server":"s",{list}}}"#), &known),
        (format!(r#"{{"format":5,"server":"s","lists":[{{{list}}}]}}"#), &known),
        (r#"{"format":4,"server":"s","confirmed":0,"capabilities":{}}"#.to_owned(), &None),
        (r#"{"format":5,"server":"s"}"#.to_owned(), &None),
    ] {
        fs::write(&path, &file).unwrap();
        for written in [file.as_bytes(), br#"{"format":6,"#] {
            assert!(fs::read(&path).unwrap().starts_with(written), "{file}");
            match (load(&cache, "x"), expected) {
                (CachedLists::NoAnswer, None) => {}
                (cached, expected) => assert_eq!(Some(lists(cached)), *expected),
            }
        }
    }
    fs::write(&path, r#"{"format":3,"in":"another way"}"#).unwrap();
    assert_eq!(load(&cache, "x"), CachedLists::Absent);
    assert!(path.exists() && inspect(folder.path()).damaged.is_empty(), "it is old, not damaged");
}

#[test]
fn a_cache_file_of_a_newer_version_is_neither_used_nor_moved_nor_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("servers")).unwrap();
    let path = folder.path().join("servers/x.json");
    let next = stored::FORMAT + 1;
    let long = " of another shape".repeat(10_000);
    for newer in [
        format!(r#"{{"format":{next},"lists":"in another way"}}"#),
        format!(r#"{{"format":{next},"lists":"in another way{long}"}}"#),
        format!("{{\"format\":{next},\"head\":17}}\n{{\"server\":\"s\"}}{long}"),
        format!("{{ \"format\" : {next}0, and no JSON behind it"),
        format!(r#"{{"format":{}"#, u64::MAX),
    ] {
        fs::write(&path, &newer).unwrap();
        let mut cache = Cache::new(Some(folder.path().to_owned()));
        assert_eq!(load(&cache, "x"), CachedLists::Absent);
        cache.save(&ServerName::parse("s").unwrap(), "x", list(POOR, BIG, 1));
        cache.finish();
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
        let found = inspect(folder.path());
        assert!(found.damaged.is_empty(), "{found:?}");
    }
    // A file that is too large to be read is not damaged either.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 30).unwrap();
    let mut cache = Cache::new(Some(folder.path().to_owned()));
    assert_eq!(load(&cache, "x"), CachedLists::Absent);
    cache.save(&ServerName::parse("s").unwrap(), "x", list(POOR, BIG, 1));
    cache.finish();
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 30);
}

#[test]
fn a_pipe_or_device_in_the_place_of_a_cache_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let servers = folder.path().join("servers");
    fs::create_dir(&servers).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(servers.join("pipe.json")).status();
    assert!(pipe.unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", servers.join("device.json")).unwrap();
    let name = ServerName::parse("s").unwrap();
    let mut cache = Cache::new(Some(folder.path().to_owned()));
    for identity in ["pipe", "device"] {
        assert_eq!(load(&cache, identity), CachedLists::Absent);
        cache.save(&name, identity, list(POOR, BIG, 1));
    }
    assert!(inspect(folder.path()).damaged.is_empty());
    cache.finish();
    assert_eq!(lists(load(&cache, "pipe")), lists(load(&cache, "device")));
}

#[test]
fn a_list_is_not_cached_while_another_process_holds_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("servers/x.json");
    let lock = own::lock(&folder.path().join("servers").join(LOCK), Duration::ZERO).unwrap();
    let job = Job { path, server: "s".to_owned(), saved: list(POOR, BIG, 1) };
    assert_eq!(job.write().unwrap_err().kind(), io::ErrorKind::TimedOut);
    drop(lock);
    job.write().unwrap();
    assert_eq!(lists(load(&Cache::new(Some(folder.path().to_owned())), "x")).len(), 1);
}

#[test]
fn a_damaged_cache_file_is_moved_aside_and_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("servers")).unwrap();
    let path = folder.path().join("servers/x.json");
    fs::write(&path, "{\"format\":1,").unwrap();
    let cache = Cache::new(Some(folder.path().to_owned()));
    assert_eq!(load(&cache, "x"), CachedLists::Absent);
    assert_eq!(fs::read_to_string(path.with_extension("json.corrupt")).unwrap(), "{\"format\":1,");
}

fn many(count: usize) -> Arc<Offer> {
    let tool = |number| {
        let definition = format!(r#"{{"description":"{}","name":"tool{number:04}"}}"#, "d\\u00e9".repeat(20));
        Tool::parse(Bytes::from(definition)).unwrap()
    };
    Arc::new(Offer::new(Era::Legacy, None, None, (0..count).map(tool).collect()))
}

#[test]
fn the_tools_of_a_large_cache_file_are_read_when_they_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let name = ServerName::parse("s").unwrap();
    let mut cache = Cache::new(Some(folder.path().to_owned()));
    cache.save(&name, "x", Saved::List { declared: kind(POOR), offer: many(2000), confirmed: 1 });
    cache.finish();
    let CachedLists::Lists(lists) = load(&cache, "x") else { panic!() };
    let tools = &lists[0].offer.tools;
    assert!(!tools.are_read());
    assert_eq!((tools.len(), tools.bytes(), tools.names().len()), (2000, many(2000).tools.bytes(), 2000));
    // Another process replaces the file, but the opened file stays as it was.
    let mut other = Cache::new(Some(folder.path().to_owned()));
    other.save(&name, "x", Saved::List { declared: kind(POOR), offer: many(3), confirmed: 2 });
    other.finish();
    assert!(!tools.are_read());
    assert_eq!(lists[0].offer, many(2000));
    assert!(!tools.are_read());
    assert_eq!((tools[1999].name.as_str(), tools.are_read()), ("tool1999", true));
}

#[test]
fn tools_that_are_damaged_in_the_cache_are_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let name = ServerName::parse("s").unwrap();
    let path = folder.path().join("servers/x.json");
    for count in [5, 2000] {
        let mut cache = Cache::new(Some(folder.path().to_owned()));
        cache.save(&name, "x", Saved::List { declared: kind(POOR), offer: many(count), confirmed: 1 });
        cache.finish();
        assert_eq!(inspect(folder.path()).damaged, Vec::<PathBuf>::new());
        let mut file = fs::read(&path).unwrap();
        let last = format!("\"name\":\"tool{:04}\"", count - 1);
        let at = file.windows(last.len()).position(|part| part == last.as_bytes()).unwrap();
        file[at + 3] ^= 1;
        fs::write(&path, &file).unwrap();
        assert_eq!(inspect(folder.path()).damaged, std::slice::from_ref(&path));
        let CachedLists::Lists(lists) = load(&cache, "x") else { panic!() };
        assert!(lists[0].offer.tools.iter().next().is_none());
        assert_eq!(fs::read(path.with_extension("json.corrupt")).unwrap(), file);
        assert!(!path.exists());
    }
}

#[test]
fn a_cache_file_that_is_cut_off_anywhere_shows_no_tool() {
    let folder = tempfile::tempdir().unwrap();
    let name = ServerName::parse("s").unwrap();
    let path = folder.path().join("servers/x.json");
    let mut cache = Cache::new(Some(folder.path().to_owned()));
    cache.save(&name, "x", Saved::List { declared: kind(POOR), offer: many(2), confirmed: 1 });
    cache.finish();
    let file = fs::read(&path).unwrap();
    for length in 0..file.len() {
        fs::write(&path, &file[..length]).unwrap();
        if let CachedLists::Lists(lists) = load(&cache, "x") {
            assert!(lists[0].offer.tools.iter().next().is_none(), "{length}");
        }
        assert!(!path.exists(), "{length}");
    }
}

fn described(character: char, count: usize) -> Arc<Offer> {
    let tool = |number| {
        let definition = format!(r#"{{"name":"tool{number:04}","description":"a{character}b"}}"#);
        Tool::parse(Bytes::from(definition)).unwrap()
    };
    Arc::new(Offer::new(Era::Legacy, None, None, (0..count).map(tool).collect()))
}

#[test]
fn cached_tools_are_read_to_be_cleaned_only_if_they_have_hidden_characters() {
    let folder = tempfile::tempdir().unwrap();
    let name = ServerName::parse("s").unwrap();
    for (character, count) in [('é', 2), ('é', 2000), ('\u{200b}', 2), ('\u{200b}', 2000)] {
        let mut cache = Cache::new(Some(folder.path().to_owned()));
        let offer = described(character, count);
        cache.save(&name, "x", Saved::List { declared: kind(POOR), offer, confirmed: 1 });
        cache.finish();
        let CachedLists::Lists(lists) = load(&cache, "x") else { panic!() };
        assert!(!lists[0].offer.tools.are_read());
        let offer = Offer::clone(&lists[0].offer).without_hidden();
        assert_eq!(offer.tools.are_read(), character != 'é', "{count}");
        let expected = if character == 'é' { "aéb" } else { "ab" };
        assert_eq!(offer.tools[count - 1].description().as_deref(), Some(expected));
        assert_eq!(offer.hidden.is_some(), character != 'é');
    }
}

#[test]
fn a_cached_list_says_what_was_left_out_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let left_out = Some(LeftOut { long: 2, long_names: 0, rest: true });
    let offer = Arc::new(Offer::clone(&offer(BIG)).without(left_out));
    let mut cache = Cache::new(Some(folder.path().to_owned()));
    let saved = Saved::List { declared: kind(POOR), offer: Arc::clone(&offer), confirmed: 1 };
    cache.save(&ServerName::parse("s").unwrap(), "x", saved);
    cache.finish();
    let CachedLists::Lists(lists) = load(&cache, "x") else { panic!() };
    assert_eq!(lists[0].offer, offer);
}

#[test]
fn a_cache_file_with_impossible_places_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("servers/x.json");
    let mut cache = Cache::new(Some(folder.path().to_owned()));
    cache.save(&ServerName::parse("s").unwrap(), "x", list(POOR, BIG, 1));
    cache.finish();
    let file = fs::read_to_string(&path).unwrap();
    let (first, rest) = file.split_once('\n').unwrap();
    let long_head = format!("{{\"format\":6,\"head\":{}}}\n{rest}{}", usize::MAX, " ".repeat(100_000));
    let far = rest.replacen("\"start\":0", &format!("\"start\":{}", u64::MAX), 1);
    let head = rest.len() - rest.rfind(r#"{"names""#).unwrap();
    let far = format!("{{\"format\":6,\"head\":{}}}\n{far}", far.len() - head);
    assert!(first.starts_with(r#"{"format":6"#) && far.contains("18446744073709551615"));
    for content in [long_head, far] {
        fs::write(&path, content).unwrap();
        assert_eq!(inspect(folder.path()).damaged, std::slice::from_ref(&path));
        if let CachedLists::Lists(lists) = load(&cache, "x") {
            assert!(lists[0].offer.tools.iter().next().is_none());
        }
        assert!(!path.exists());
    }
}

/// The head and the body of the file with [`many`] tools.
fn parts(file: &[u8]) -> (String, Vec<u8>) {
    let line = file.split(|byte| *byte == b'\n').next().unwrap();
    let head = serde_json::from_slice::<serde_json::Value>(line).unwrap()["head"].as_u64().unwrap();
    let (start, end) = (line.len() + 1, line.len() + 1 + usize::try_from(head).unwrap());
    (String::from_utf8(file[start..end].to_vec()).unwrap(), file[end..].to_vec())
}

fn put_together(head: &str, body: &[u8]) -> Vec<u8> {
    [format!("{{\"format\":6,\"head\":{}}}\n{head}", head.len()).as_bytes(), body].concat()
}

/// Saves [`many`] tools as those of the server `s`, and returns the file and its content.
fn saved_many(folder: &Path) -> (PathBuf, Vec<u8>) {
    let mut cache = Cache::new(Some(folder.to_owned()));
    let saved = Saved::List { declared: kind(POOR), offer: many(2000), confirmed: 1 };
    cache.save(&ServerName::parse("s").unwrap(), "x", saved);
    cache.finish();
    let path = folder.join("servers/x.json");
    let content = fs::read(&path).unwrap();
    (path, content)
}

/// The index that a loaded list has for this server.
fn index_of(folder: &Path, server: &str) -> Option<Bytes> {
    let CachedLists::Lists(lists) = load(&Cache::new(Some(folder.to_owned())), "x") else { panic!() };
    let (tools, server) = (&lists[0].offer.tools, ServerName::parse(server).unwrap());
    let index = tools.index(&server);
    assert!(!tools.are_read() && (index.is_none() || tools.have_index(&server)));
    index
}

#[test]
fn the_search_index_of_a_long_list_is_saved_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, content) = saved_many(folder.path());
    let expected = StoredIndex::write("s", &many(2000).tools, crate::embeddings::table());
    assert_eq!(index_of(folder.path(), "s").unwrap(), expected);
    assert_eq!(index_of(folder.path(), "another"), None, "its name is among the words");
    // The index of a short list is quickly made.
    let mut cache = Cache::new(Some(folder.path().to_owned()));
    cache.save(&ServerName::parse("s").unwrap(), "short", list(POOR, BIG, 1));
    cache.finish();
    let short = fs::read_to_string(folder.path().join("servers/short.json")).unwrap();
    assert!(!short.contains("\"search\"") && parts(&content).0.contains("\"search\""));
}

#[test]
fn a_search_index_in_the_cache_that_is_damaged_or_newer_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let (path, content) = saved_many(folder.path());
    let (head, body) = parts(&content);
    let mut damaged = content.clone();
    let at = damaged.len() - 10;
    damaged[at] ^= 1;
    let newer = head.replacen("\"search\":{\"version\":1", "\"search\":{\"version\":2", 1);
    let cut = &content[..content.len() - 10];
    for content in [damaged, put_together(&newer, &body), cut.to_vec()] {
        fs::write(&path, &content).unwrap();
        assert_eq!(index_of(folder.path(), "s"), None);
        // The tools are still there, and the file is unchanged.
        assert_eq!(fs::read(&path).unwrap(), content);
        let CachedLists::Lists(lists) = load(&Cache::new(Some(folder.path().to_owned())), "x") else {
            panic!()
        };
        assert_eq!(lists[0].offer, many(2000));
    }
}

#[test]
fn a_list_that_was_saved_without_a_search_index_gets_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, content) = saved_many(folder.path());
    let (head, body) = parts(&content);
    let older = head.replacen("\"search\":{\"version\":1", "\"search\":{\"version\":0", 1);
    let start = head.find(",\"search\":{").unwrap();
    let end = start + head[start..].find('}').unwrap() + 1;
    let without = format!("{}{}", &head[..start], &head[end..]);
    for head in [older, without] {
        fs::write(&path, put_together(&head, &body)).unwrap();
        assert_eq!(index_of(folder.path(), "s"), None);
        assert_eq!(fs::read(&path).unwrap(), content, "written anew in the background");
    }
}

#[test]
fn a_search_index_is_made_anew_only_for_another_list() {
    let folder = tempfile::tempdir().unwrap();
    let (path, content) = saved_many(folder.path());
    let (head, body) = parts(&content);
    let save = |count, confirmed| {
        let mut cache = Cache::new(Some(folder.path().to_owned()));
        let saved = Saved::List { declared: kind(POOR), offer: many(count), confirmed };
        cache.save(&ServerName::parse("s").unwrap(), "x", saved);
        cache.finish();
    };
    // An index that is intact, but not the one for these tools.
    let index = index_of(folder.path(), "s").unwrap();
    let other = StoredIndex::write("s", &many(2000).tools, None);
    let sum = |bytes: &[u8]| stored_tools::checksum(bytes).to_string();
    let head = head.replacen(&sum(&index), &sum(&other), 1);
    let head =
        head.replacen(&format!("\"length\":{}", index.len()), &format!("\"length\":{}", other.len()), 1);
    fs::write(&path, put_together(&head, &[&body[..body.len() - index.len()], &other].concat())).unwrap();
    assert_eq!(index_of(folder.path(), "s").unwrap(), other);
    save(2000, 2);
    assert_eq!(index_of(folder.path(), "s").unwrap(), other, "kept");
    save(1999, 3);
    let expected = StoredIndex::write("s", &many(1999).tools, crate::embeddings::table());
    assert_eq!(index_of(folder.path(), "s").unwrap(), expected);
}

#[test]
fn a_server_that_lists_the_same_again_leaves_the_cached_tools_unread() {
    let folder = tempfile::tempdir().unwrap();
    saved_many(folder.path());
    let CachedLists::Lists(lists) = load(&Cache::new(Some(folder.path().to_owned())), "x") else { panic!() };
    assert!(lists[0].offer == many(2000) && lists[0].offer != many(1999));
    let mut other = many(2000).tools.to_vec();
    let changed = String::from_utf8(other[7].definition.to_vec()).unwrap().replacen("d\\u", "e\\u", 1);
    other[7] = Tool::parse(Bytes::from(changed)).unwrap();
    assert!(lists[0].offer.tools != other.into());
    assert!(!lists[0].offer.tools.are_read());
}
