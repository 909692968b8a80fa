//! Tests of the cache.

use bytes::Bytes;
use plugbay_core::{catalog::Tool, era::Era, extension::Extensions};

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
    assert_eq!(cache.load("one"), CachedLists::Absent);
    cache.save(&name, "one", list(POOR, BIG, 1_800_000_000));
    cache.save(&name, "two", Saved::NoAnswer);
    cache.finish();
    let confirmed = 1_800_000_000;
    let known = KnownList { declared: vec![kind(POOR)], offer: offer(BIG), confirmed };
    assert_eq!(cache.load("one"), CachedLists::Lists(vec![known]));
    assert_eq!(cache.load("two"), CachedLists::NoAnswer);
    assert_eq!(cache.load("three"), CachedLists::Absent);
}

#[test]
fn two_processes_save_the_lists_for_their_kinds_of_hosts_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let name = ServerName::parse("s").unwrap();
    let save = |saved: Saved| {
        let mut cache = Cache::new(Some(folder.path().to_owned()));
        cache.save(&name, "x", saved);
        cache.finish();
        lists(cache.load("x"))
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
fn cache_files_of_the_version_before_are_read_and_newer_ones_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("servers")).unwrap();
    let cache = Cache::new(Some(folder.path().to_owned()));
    let load = |text: &str| {
        fs::write(folder.path().join("servers/x.json"), text).unwrap();
        let cached = cache.load("x");
        assert!(folder.path().join("servers/x.json").exists(), "it is not damaged");
        cached
    };
    let old = format!(
        r#"{{"format":4,"server":"s","confirmed":7,"dialect":{{"era":"modern","framing":"newline"}},"tools":[{BIG}],"capabilities":{{"tools":true}}}}"#
    );
    assert_eq!(lists(load(&old)), [(Vec::new(), Bytes::from(BIG))]);
    assert_eq!(load(r#"{"format":4,"server":"s","confirmed":0,"capabilities":{}}"#), CachedLists::NoAnswer);
    assert_eq!(load(r#"{"format":7,"server":"s","lists":[]}"#), CachedLists::Absent);
}

#[test]
fn a_damaged_cache_file_is_moved_aside_and_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("servers")).unwrap();
    let path = folder.path().join("servers/x.json");
    fs::write(&path, "{\"format\":1,").unwrap();
    let cache = Cache::new(Some(folder.path().to_owned()));
    assert_eq!(cache.load("x"), CachedLists::Absent);
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
    let CachedLists::Lists(lists) = cache.load("x") else { panic!() };
    let tools = &lists[0].offer.tools;
    assert!(!tools.are_read());
    assert_eq!((tools.len(), tools.bytes(), tools.names().len()), (2000, many(2000).tools.bytes(), 2000));
    // Another process replaces the file, and what was opened stays as it was.
    let mut other = Cache::new(Some(folder.path().to_owned()));
    other.save(&name, "x", Saved::List { declared: kind(POOR), offer: many(3), confirmed: 2 });
    other.finish();
    assert!(!tools.are_read());
    assert_eq!(lists[0].offer, many(2000));
    assert!(tools.are_read());
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
        let at = file.len() - 20;
        file[at] ^= 1;
        fs::write(&path, &file).unwrap();
        assert_eq!(inspect(folder.path()).damaged, [path.clone()]);
        let CachedLists::Lists(lists) = cache.load("x") else { panic!() };
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
        if let CachedLists::Lists(lists) = cache.load("x") {
            assert!(lists[0].offer.tools.iter().next().is_none(), "{length}");
        }
        assert!(!path.exists(), "{length}");
    }
}
