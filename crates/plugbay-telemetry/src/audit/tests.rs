//! Lines of the audit log: their content, rotation, lost lines.

use std::{fs, path::Path};

use plugbay_core::{era::Era, name::ServerName, observe::SessionMark};

use super::*;

fn settings(folder: &Path, rotate: u64, keep: usize) -> AuditSettings {
    AuditSettings { file: folder.join("audit.jsonl"), rotate, keep }
}

fn shared(folder: &Path) -> Arc<Mutex<AuditSettings>> {
    Arc::new(Mutex::new(settings(folder, 1 << 20, 1)))
}

fn call(audit: &Arc<Audit>, arguments: &str, outcome: CallOutcome) {
    let server = ServerName::parse("git").unwrap();
    let entry = Arc::clone(audit).starts(&StartingCall {
        method: "tools/call",
        server: &server,
        name: Some("log"),
        is_listed: true,
        arguments: Some(arguments.as_bytes()),
        caller: Some("ci"),
        client: Some("app"),
        session: SessionMark([7; 8]),
        host: Some("codex"),
        era: Era::Legacy,
        bytes: 70,
        trace_parent: None,
        trace_state: None,
    });
    entry.ends(CallEnd { outcome, bytes: 900 });
}

fn lines(file: &Path) -> Vec<Value> {
    fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_audit_line_has_the_shape_of_the_arguments_and_no_value() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Arc::new(Audit::start(settings(folder.path(), 1 << 20, 5)));
    call(&audit, r#"{"path":"CANARY","n":1}"#, CallOutcome::Error(-32602));
    audit.finish();
    let file = folder.path().join("audit.jsonl");
    let [line] = &lines(&file)[..] else { panic!("one line") };
    let expected = [
        ("caller", json!("ci")),
        ("client", json!("app")),
        ("session", json!("0707070707070707")),
        ("host", json!("codex")),
        ("method", json!("tools/call")),
        ("server", json!("git")),
        ("tool", json!("log")),
        ("arguments", json!({ "path": "string", "n": "number" })),
        ("outcome", json!("error")),
        ("code", json!(-32602)),
        ("bytesIn", json!(70)),
        ("bytesOut", json!(900)),
    ];
    for (key, value) in expected {
        assert_eq!(line[key], value, "{key}");
    }
    assert!(line["at"].is_string() && line["micros"].is_u64());
    assert!(!fs::read_to_string(&file).unwrap().contains("CANARY"));
}

#[cfg(unix)]
#[test]
fn audit_files_are_rotated_and_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let audit = Arc::new(Audit::start(settings(folder.path(), 1000, 2)));
    for _ in 0..40 {
        call(&audit, "{}", CallOutcome::Ok);
    }
    audit.finish();
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        assert!(metadata.len() <= 1000 && metadata.permissions().mode() & 0o777 == 0o600);
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_audit_lines_and_the_log_says_so_later() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    let mut rotated = RotatedFile::new(shared(folder.path()));
    let lost = AtomicU64::new(0);
    let (sender, inbox) = sync_channel(8);
    for line in ["one", "two"] {
        assert!(!rotated.write(line));
        lost.fetch_add(1, Ordering::Relaxed);
    }
    fs::remove_file(&file).unwrap();
    sender.send(r#"{"three":3}"#.to_owned()).unwrap();
    drop(sender);
    write(&inbox, rotated, &lost);
    let lines = lines(&file);
    assert_eq!((&lines[0]["lost"], &lines[1]["three"]), (&json!(2), &json!(3)));
}

#[cfg(unix)]
#[test]
fn a_blocked_audit_writer_delays_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let (lines, inbox) = sync_channel(2);
    let lost = Arc::new(AtomicU64::new(0));
    let audit = Arc::new(Audit {
        settings: shared(folder.path()),
        lines: Some(lines),
        lost: Arc::clone(&lost),
        writer: None,
    });
    for _ in 0..10 {
        call(&audit, "{}", CallOutcome::Ok); // nobody takes them
    }
    assert_eq!(lost.load(Ordering::Relaxed), 8);
    drop(audit);
    write(&inbox, RotatedFile::new(shared(folder.path())), &lost);
    assert_eq!(self::lines(&folder.path().join("audit.jsonl"))[0]["lost"], json!(8));
}

#[test]
fn gateways_with_the_same_audit_file_lose_no_line_when_one_rotates() {
    let folder = tempfile::tempdir().unwrap();
    let file = settings(folder.path(), 1000, 50);
    let [one, other] = [Audit::at(file.clone()), Audit::at(file)];
    assert!(Arc::ptr_eq(&one, &other));
    for _ in 0..20 {
        call(&one, "{}", CallOutcome::Ok);
        call(&other, "{}", CallOutcome::Ok);
    }
    one.finish(); // the other goes on
    call(&other, "{}", CallOutcome::Ok);
    other.finish();
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(files.map(|file| lines(&file).len()).sum::<usize>(), 41);
}

#[test]
fn an_audit_file_that_another_program_renamed_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (file, aside) = (folder.path().join("audit.jsonl"), folder.path().join("aside"));
    let [mut one, mut other] = [(); 2].map(|()| RotatedFile::new(shared(folder.path())));
    assert!(one.write("1") && other.write("2"));
    fs::rename(&file, &aside).unwrap();
    assert!(one.write("3") && other.write("4"));
    assert_eq!((lines(&aside), lines(&file)), (vec![json!(1), json!(2)], vec![json!(3), json!(4)]));
}

#[cfg(unix)]
#[test]
fn an_audit_file_that_others_could_read_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(RotatedFile::new(shared(folder.path())).write("1"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}
