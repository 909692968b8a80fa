//! Odd files in the place of ours: plugbay serves, says so, and overwrites nothing good.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use plugbay_testkit::{Config, Host, Script, Workspace, patience};

use crate::{
    measure::milliseconds,
    scenario::{Outcome, Scenario},
    trial::{self, Trial, mentions},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "odd-cache-files",
        rule: "A FIFO, an endless device, a folder or a dangling link in the place of a cache file: the list comes within 5 s",
        run: odd_cache_files,
    },
    Scenario {
        name: "corrupt-files",
        rule: "Corrupt files in cache and state: plugbay serves, moves them aside or leaves them, and says so",
        run: corrupt_files,
    },
    Scenario {
        name: "newer-cache",
        rule: "A cache file of a newer format is no damage: it is not moved aside",
        run: newer_cache,
    },
    Scenario {
        name: "foreign-folder",
        rule: "A symlinked or world-writable cache folder is not used, and nothing is written through it",
        run: foreign_folder,
    },
    Scenario {
        name: "file-modes",
        rule: "Under umask 000 no file of plugbay is open to others, and no folder",
        run: file_modes,
    },
    Scenario {
        name: "no-home",
        rule: "Folders that cannot be made or written: plugbay serves from memory and says so",
        run: no_home,
    },
    Scenario {
        name: "disk-full",
        rule: "A full disk: plugbay serves from memory, says so, and caches again once there is room",
        run: disk_full,
    },
];

fn config(workspace: &Workspace) -> Config {
    trial::config(workspace, &[("s", Script::friendly().set("instructions", r#""some words""#))])
}

/// Fills the cache, and returns its files.
fn warm(trial: &Trial, workspace: &Workspace) -> Vec<PathBuf> {
    trial.open(workspace, &config(workspace), &["s__echo", "fast__echo"]).finish();
    cached(workspace)
}

fn cached(workspace: &Workspace) -> Vec<PathBuf> {
    let files = workspace.files("cache").into_iter();
    files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

/// Opens the gateway and lists; how long that took.
fn start(trial: &Trial, workspace: &Workspace) -> (Host, Duration) {
    let begun = Instant::now();
    let host = trial.open(workspace, &config(workspace), &["s__echo", "fast__echo"]);
    (host, begun.elapsed())
}

fn odd_cache_files(trial: &Trial) -> Outcome {
    let (mut outcome, mut longest) = (Outcome::default(), Duration::ZERO);
    for kind in ["fifo", "endless", "folder", "dangling", "loop"] {
        let workspace = Workspace::new();
        for file in warm(trial, &workspace) {
            fs::remove_file(&file).expect("a cache file");
            odd(kind, &file);
        }
        let (host, took) = start(trial, &workspace);
        host.call("s__echo", "{}").content_text();
        longest = longest.max(took);
        outcome.check(took <= patience(Duration::from_secs(5)), || format!("{kind}: the list took {took:?}"));
    }
    outcome.figure(format!("five kinds, the list after {} at most", milliseconds(longest)))
}

fn odd(kind: &str, file: &Path) {
    let made = match kind {
        "fifo" => Command::new("mkfifo").arg(file).status().map(|_| ()),
        "endless" => symlink("/dev/zero", file),
        "folder" => fs::create_dir(file),
        "dangling" => symlink("/nonexistent/file", file),
        _ => symlink(file, file),
    };
    made.expect("an odd file");
}

fn corrupt_files(trial: &Trial) -> Outcome {
    let (mut outcome, garbage) = (Outcome::default(), "{\"format\":5,\"lists\":[{\u{0}garbage");
    let workspace = Workspace::new();
    let mut files = warm(trial, &workspace);
    files.extend(
        workspace.files("state").into_iter().filter(|path| path.extension().is_some_and(|end| end == "json")),
    );
    for file in &files {
        fs::write(file, garbage).expect("a file");
    }
    let (host, _) = start(trial, &workspace);
    host.call("s__echo", "{}").content_text();
    let told = host.stderr();
    host.finish();
    let kept = workspace.files("cache").into_iter().chain(workspace.files("state"));
    let kept = kept.filter(|path| fs::read_to_string(path).is_ok_and(|text| text == garbage)).count();
    outcome.check(kept > 0, || "no corrupt file was kept for its owner".to_owned());
    outcome.check(mentions(&told, &["damaged", "corrupt", "aside"]), || "nothing was said".to_owned());
    outcome.figure(format!("{} files, {kept} kept aside", files.len()))
}

fn newer_cache(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let newer = r#"{"format":99,"server":{"name":"s"},"lists":"in another file"}"#;
    for file in warm(trial, &workspace) {
        fs::write(file, newer).expect("a file");
    }
    let (host, _) = start(trial, &workspace);
    let told = host.stderr();
    host.finish();
    let aside = workspace
        .files("cache")
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("corrupt"))
        .count();
    let mut outcome = Outcome::default();
    outcome.check(aside == 0 && !mentions(&told, &["damaged", "corrupt"]), || {
        format!("{aside} files moved aside")
    });
    outcome.figure("format 99")
}

fn foreign_folder(trial: &Trial) -> Outcome {
    let mut outcome = Outcome::default();
    for kind in ["symlinked", "world-writable"] {
        let workspace = Workspace::new();
        let (cache, elsewhere) = (workspace.path().join("cache/plugbay"), workspace.path().join("elsewhere"));
        fs::create_dir_all(&elsewhere).expect("a folder");
        let made = if kind == "symlinked" {
            symlink(&elsewhere, &cache)
        } else {
            let open = fs::Permissions::from_mode(0o777);
            fs::create_dir_all(cache.join("servers"))
                .and_then(|()| fs::set_permissions(cache.join("servers"), open.clone()))
                .and_then(|()| fs::set_permissions(&cache, open))
        };
        made.expect("a folder");
        let (host, _) = start(trial, &workspace);
        host.call("s__echo", "{}").content_text();
        host.finish();
        let written =
            if kind == "symlinked" { workspace.files("elsewhere") } else { workspace.files("cache") };
        let safe = written.is_empty()
            || kind == "world-writable"
                && mode(&cache) & 0o022 == 0
                && mode(&cache.join("servers")) & 0o022 == 0;
        outcome.check(safe, || format!("{kind}: {} files written", written.len()));
    }
    outcome.figure("two kinds of folders")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).map_or(0, |about| about.mode() & 0o777)
}

fn file_modes(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let config = config(&workspace).top("learn", 5.into());
    workspace.write_config(&config);
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"umask 000; exec "$0" serve --config "$1""#])
        .arg(&trial.gateway)
        .arg(workspace.config_path());
    command.current_dir(workspace.path()).env_clear().envs(workspace.environment());
    let host = Host::spawn(&mut command);
    host.initialize();
    host.await_tools(&["s__echo"]);
    host.call("s__echo", "{}").content_text();
    let mut open = open_to_others(&workspace);
    host.finish();
    open.extend(open_to_others(&workspace));
    open.sort();
    open.dedup();
    let mut outcome = Outcome::default();
    outcome.check(open.is_empty(), || format!("open to others: {open:?}"));
    let count =
        ["cache", "state", "run", "data"].map(|folder| workspace.files(folder).len()).iter().sum::<usize>();
    let learned = workspace.files("cache").iter().any(|path| path.to_string_lossy().contains("usage"));
    outcome.check(learned, || "no file with the uses of tools was written".to_owned());
    outcome.figure(format!("{count} files in cache, state, run and data"))
}

/// Everything below our folders whose mode lets others in.
fn open_to_others(workspace: &Workspace) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["cache", "state", "run", "data", "config"] {
        let mut paths = workspace.files(folder);
        paths.extend(workspace.files(folder).iter().filter_map(|path| path.parent().map(Path::to_owned)));
        let root = workspace.path().join(folder);
        found.extend(paths.into_iter().filter(|path| *path != root && mode(path) & 0o077 != 0));
    }
    found
}

fn no_home(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    for folder in ["cache", "state", "run", "data", "home"] {
        let path = workspace.path().join(folder);
        fs::remove_dir_all(&path).and_then(|()| fs::write(&path, "a file")).expect("a file");
    }
    let (host, _) = start(trial, &workspace);
    host.call("s__echo", "{}").content_text();
    let told = host.stderr();
    let mut outcome = Outcome::default();
    outcome.check(mentions(&told, &["cannot", "could not"]), || "nothing was said".to_owned());
    host.finish();
    outcome.figure("five folders that are files")
}

fn disk_full(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let cache = workspace.path().join("cache");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&cache).output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        return Outcome::not_run("a small file system cannot be mounted here");
    }
    let _unmount = Unmount(cache.clone());
    let ballast = cache.join("ballast");
    let _ = fs::write(&ballast, vec![b'x'; 1 << 20]);
    let (host, _) = start(trial, &workspace);
    host.call("s__echo", "{}").content_text();
    let mut outcome = Outcome::default();
    let begun = Instant::now();
    while !mentions(&host.stderr(), &["cache"]) && begun.elapsed() < patience(Duration::from_secs(5)) {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    outcome.check(mentions(&host.stderr(), &["cache"]), || "nothing was said".to_owned());
    fs::remove_file(&ballast).expect("room");
    // Another list is another write: there is room for it.
    workspace.write_script("s", &Script::friendly().tool("later", r#"{"echo":true}"#));
    workspace.server_process("s").signal(plugbay_testkit::Signal::KILL);
    plugbay_testkit::wait_until("the server to be back", plugbay_testkit::DEADLINE, || {
        let answer = host.call("s__echo", "{}");
        (!answer.is_error() && answer.result_value()["isError"] != true).then_some(())
    });
    host.await_tools(&["s__later"]);
    host.finish();
    outcome
        .check(!cached(&workspace).is_empty(), || "nothing was cached after there was room again".to_owned());
    outcome.figure("a cache of 64 KiB that is full")
}

/// Unmounts before the workspace is removed.
struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
