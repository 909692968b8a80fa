//! The environment of a child, and the errors when it cannot start.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command, time::Duration};

use tokio::io::AsyncWriteExt;

use super::{read_all, sh, spec, within};
use crate::{
    process::{Guard, SpawnError, StderrRing, is_inherited, spawn},
    spec::StdioSpec,
};

const GRACE: Duration = Duration::from_secs(60);

/// A folder of its own for one test, removed with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plugbay-start-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> String {
        let path = self.0.join(name);
        // Written by another process: if a test forked while we held the file open for writing, the file
        // would be "busy" and not executable for a moment.
        let write = ["-c", "printf %s \"$1\" > \"$0\""];
        let status = Command::new("/bin/sh").args(write).arg(&path).arg(text).status().expect("/bin/sh runs");
        assert!(status.success());
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        path.to_str().expect("a readable path").to_owned()
    }

    fn path(&self) -> String {
        self.0.to_str().expect("a readable path").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn refused(spec: &StdioSpec) -> SpawnError {
    spawn(spec, &Guard::disabled(), StderrRing::default()).expect_err("it cannot start")
}

async fn output(spec: &StdioSpec) -> String {
    let mut process = spawn(spec, &Guard::disabled(), StderrRing::default()).expect("it starts");
    let text = read_all(&mut process).await;
    within(process.shutdown(GRACE)).await;
    text
}

#[tokio::test]
async fn a_process_is_connected_by_pipes() {
    let mut process =
        spawn(&spec("cat", &[]), &Guard::disabled(), StderrRing::default()).expect("cat starts");
    let mut stdin = process.stdin.take().expect("stdin is there");

    within(stdin.write_all(b"hello\n")).await.expect("cat reads");
    drop(stdin);

    assert_eq!(read_all(&mut process).await, "hello\n");
    assert!(within(process.wait()).await.success());
}

#[tokio::test]
async fn the_environment_of_a_process_holds_no_secret_of_the_gateway() {
    // Cargo gives tests variables that are not on the list.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let mut spec = spec("env", &[]);
    spec.env.insert("CONFIGURED".into(), "yes".into());

    let text = output(&spec).await;

    let names: Vec<&str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    assert!(names.contains(&"PATH") && names.contains(&"CONFIGURED") && names.contains(&"PLUGBAY_INSTANCE"));
    for name in names {
        let is_ours = ["CONFIGURED", "PLUGBAY_INSTANCE", "PLUGBAY_DEPTH"].contains(&name);
        let inherited = std::env::var_os(name).is_some_and(|value| is_inherited(name.as_ref(), &value));
        assert!(is_ours || inherited, "{name} leaked");
        assert_ne!(name, "CARGO_MANIFEST_DIR");
    }
}

#[tokio::test]
async fn arguments_are_never_read_by_a_shell() {
    let arguments = ["$HOME; `id`", "a b", "*", ""];

    let text = output(&spec("printf", &[&["<%s>"][..], &arguments[..]].concat())).await;

    assert_eq!(text, "<$HOME; `id`><a b><*><>");
}

#[tokio::test]
async fn a_process_runs_in_the_configured_folder_with_the_configured_path() {
    let folder = Folder::new("cwd");
    fs::create_dir(folder.0.join("bin")).expect("a folder");
    folder.file("bin/where", "#!/bin/sh\npwd -P\n", 0o755);
    let mut spec = spec("where", &[]);
    spec.cwd = Some(folder.0.clone());
    spec.env.insert("PATH".into(), "bin:/usr/bin:/bin".into());

    let by_path = output(&spec).await;
    spec.command = "./bin/where".into();
    let by_name = output(&spec).await;

    let expected = format!("{}\n", folder.0.canonicalize().expect("the folder").display());
    assert_eq!((by_path.as_str(), by_name.as_str()), (expected.as_str(), expected.as_str()));
}

#[tokio::test]
async fn a_process_leads_its_own_process_group() {
    let mut process = sh("ps -o pgid= -p $$");
    let pid = process.pid();

    assert_eq!(super::pid(&read_all(&mut process).await).as_raw_pid(), pid);
    assert_ne!(rustix::process::getpgrp().as_raw_pid(), pid);
}

#[tokio::test]
async fn a_command_that_is_not_in_path_is_reported() {
    let mut spec = spec("no-such-command", &[]);
    spec.env.insert("PATH".into(), "/first:/second".into());

    let error = refused(&spec);

    assert!(matches!(&error, SpawnError::NotInPath { .. }), "{error:?}");
    assert!(error.to_string().contains("`no-such-command` is in none of the folders of PATH"), "{error}");
    assert!(error.remedy().contains("full path"));
}

#[tokio::test]
async fn a_command_path_that_does_not_exist_is_reported() {
    let error = refused(&spec("/no/such/file", &[]));

    assert!(matches!(error, SpawnError::NoSuchFile { .. }), "{error:?}");
    assert!(error.to_string().contains("/no/such/file"));
    assert!(matches!(refused(&spec("", &[])), SpawnError::NoCommand));
}

#[tokio::test]
async fn a_command_that_is_a_folder_is_reported_as_one() {
    let error = refused(&spec("/", &[]));

    assert!(matches!(error, SpawnError::Folder { .. }), "{error:?}");
    assert_eq!(error.to_string(), "/ is a folder, not a program");
}

#[tokio::test]
async fn an_unusable_working_directory_is_reported() {
    let folder = Folder::new("badcwd");
    let file = folder.file("file", "", 0o644);
    for cwd in ["/no/such/folder", &file] {
        let mut spec = spec("cat", &[]);
        spec.cwd = Some(cwd.into());

        let error = refused(&spec);

        assert!(matches!(error, SpawnError::WorkingDirectory { .. }), "{error:?}");
        assert!(error.to_string().contains(cwd) && error.remedy().contains("\"cwd\""), "{error}");
    }
}

#[tokio::test]
async fn a_command_that_is_not_executable_is_reported() {
    let folder = Folder::new("mode");
    let file = folder.file("server", "#!/bin/sh\n", 0o644);
    let mut by_path = spec("server", &[]);
    by_path.env.insert("PATH".into(), folder.path());

    for error in [refused(&spec(&file, &[])), refused(&by_path)] {
        assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error:?}");
        assert!(error.to_string().contains(&file) && error.remedy().contains("chmod +x"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_interpreter_is_reported() {
    let folder = Folder::new("interpreter");
    let file = folder.file("server", "#!/no/such/interpreter\n", 0o755);

    let error = refused(&spec(&file, &[]));

    assert!(matches!(error, SpawnError::NoInterpreter { .. }), "{error:?}");
}
