//! The store of results: their owners, how long and how many are kept, and where.

use plugbay_core::filter::NoFilters;

use super::*;

fn owner(caller: u8, session: u8) -> ResultOwner {
    ResultOwner { caller: Owner([caller; 32]), session: SessionMark([session; 8]) }
}

/// A store with small limits, and the folder of its files.
fn store(limits: Limits) -> (Arc<Results>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let results = Results { limits, ..Results::new(folder.path(), Arc::new(NoFilters)) };
    (Arc::new(results), folder)
}

fn put(results: &Arc<Results>, owner: ResultOwner, result: &str) -> Handle {
    let handle = Results::new_handle().unwrap();
    results.put(handle, owner, "s__t".into(), result.as_bytes()).unwrap();
    handle
}

fn read(results: &Results, owner: ResultOwner, handle: Handle) -> Option<String> {
    let result = results.get(handle, owner)?.read().unwrap();
    Some(String::from_utf8(result.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_result_is_read_by_its_own_session_only() {
    let (results, _folder) = store(LIMITS);
    let mine = put(&results, owner(1, 1), "mine");
    assert_eq!(read(&results, owner(1, 1), mine).as_deref(), Some("mine"));
    for foreign in [owner(1, 2), owner(2, 1), owner(2, 2)] {
        assert_eq!(read(&results, foreign, mine), None);
    }
    assert_eq!(read(&results, owner(1, 1), Results::new_handle().unwrap()), None, "guessed");
    results.forget(owner(1, 2));
    assert!(read(&results, owner(1, 1), mine).is_some());
    results.forget(owner(1, 1));
    assert_eq!(read(&results, owner(1, 1), mine), None);
    assert_eq!(results.lock().totals, Totals::default());
}

#[tokio::test(start_paused = true)]
async fn a_result_expires_thirty_minutes_after_its_last_use() {
    let (results, _folder) = store(LIMITS);
    let (used, unused) = (put(&results, owner(1, 1), "used"), put(&results, owner(1, 1), "unused"));
    tokio::time::sleep(Duration::from_secs(30 * 60 - 1)).await;
    assert!(read(&results, owner(1, 1), used).is_some());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(results.lock().entries.len(), 1, "the sweep has removed the other one");
    assert_eq!(read(&results, owner(1, 1), unused), None);
    assert!(read(&results, owner(1, 1), used).is_some());
    tokio::time::sleep(KEPT + Duration::from_secs(1)).await;
    let state = results.lock();
    assert!(state.entries.is_empty() && !state.sweeps && state.totals == Totals::default());
}

#[tokio::test(start_paused = true)]
async fn an_expired_result_is_not_read_even_if_nothing_has_swept() {
    let (results, _folder) = store(LIMITS);
    results.lock().sweeps = true; // so that no task begins
    let handle = put(&results, owner(1, 1), "x");
    tokio::time::advance(KEPT).await;
    assert_eq!(read(&results, owner(1, 1), handle), None);
}

#[tokio::test(start_paused = true)]
async fn a_session_pushes_out_its_own_results_first() {
    let (results, _folder) = store(Limits { results_of_one: 3, results: 5, ..LIMITS });
    let other = put(&results, owner(2, 1), "other");
    let mut mine = Vec::new();
    for n in 0..5 {
        tokio::time::advance(Duration::from_secs(1)).await;
        mine.push(put(&results, owner(1, 1), &n.to_string()));
    }
    let left: Vec<_> = mine.iter().map(|handle| read(&results, owner(1, 1), *handle)).collect();
    assert_eq!(left, [None, None, Some("2".into()), Some("3".into()), Some("4".into())]);
    for session in 2..10 {
        tokio::time::advance(Duration::from_secs(1)).await;
        put(&results, owner(1, session), "x");
    }
    assert_eq!(results.lock().entries.len(), 5, "all together have a limit");
    assert!(read(&results, owner(2, 1), other).is_none_or(|text| text == "other"));
}

#[tokio::test(start_paused = true)]
async fn bytes_of_a_session_have_a_limit() {
    let (results, _folder) = store(Limits { bytes_of_one: 100, bytes: 150, ..LIMITS });
    let handle = Results::new_handle().unwrap();
    let too_large = results.put(handle, owner(1, 1), "t".into(), &[b'x'; 101]);
    assert!(too_large.is_err() && results.lock().entries.is_empty());
    let first = put(&results, owner(1, 1), &"a".repeat(60));
    tokio::time::advance(Duration::from_secs(1)).await;
    let second = put(&results, owner(1, 1), &"b".repeat(60));
    assert!(read(&results, owner(1, 1), first).is_none() && read(&results, owner(1, 1), second).is_some());
    let other = put(&results, owner(2, 1), &"c".repeat(100));
    assert!(read(&results, owner(2, 1), other).is_some());
    assert!(results.lock().totals.bytes <= 150);
}

#[tokio::test(start_paused = true)]
async fn results_without_room_in_memory_are_in_files_that_have_no_name() {
    let (results, folder) = store(Limits { memory: 100, files: 3, ..LIMITS });
    let in_memory = put(&results, owner(1, 1), &"m".repeat(80));
    let mut in_files = Vec::new();
    for n in 0..5 {
        tokio::time::advance(Duration::from_secs(1)).await;
        in_files.push(put(&results, owner(1, 1), &format!("{n}").repeat(1000)));
    }
    assert_eq!(results.lock().totals, Totals { bytes: 3000, memory: 0, files: 3 });
    assert_eq!(read(&results, owner(1, 1), in_memory), None, "the oldest gives way, wherever it is");
    assert_eq!(read(&results, owner(1, 1), in_files[4]), Some("4".repeat(1000)));
    assert_eq!(read(&results, owner(1, 1), in_files[1]), None);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing to be left behind");
    let being_read = results.get(in_files[4], owner(1, 1)).unwrap();
    results.forget(owner(1, 1));
    assert_eq!(being_read.read().unwrap().len(), 1000, "a reader keeps what it reads");
}

#[tokio::test(start_paused = true)]
async fn a_stored_result_does_not_keep_the_message_around_it() {
    let (results, _folder) = store(LIMITS);
    let message = Bytes::from(vec![b'x'; 4 * MIB]);
    let handle = Results::new_handle().unwrap();
    results.put(handle, owner(1, 1), "s__t".into(), &message.slice(..100 * KIB)).unwrap();
    assert!(message.is_unique());
    assert_eq!(read(&results, owner(1, 1), handle).map(|text| text.len()), Some(100 * KIB));
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_is_missing_is_made_and_one_that_cannot_be_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { memory: 0, ..LIMITS };
    let missing =
        Arc::new(Results { limits, ..Results::new(folder.path().join("a/b"), Arc::new(NoFilters)) });
    put(&missing, owner(1, 1), "x");
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let blocked = Arc::new(Results { limits, ..Results::new(blocked.join("x"), Arc::new(NoFilters)) });
    let put = blocked.put(Results::new_handle().unwrap(), owner(1, 1), "t".into(), b"x");
    assert!(put.is_err() && blocked.lock().entries.is_empty());
}

#[test]
fn handles_are_never_the_same() {
    let handles: std::collections::HashSet<Handle> =
        (0..1000).map(|_| Results::new_handle().unwrap()).collect();
    assert_eq!(handles.len(), 1000);
}
