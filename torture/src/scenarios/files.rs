//! Odd files in place of plugbay's own: plugbay serves, reports them, and overwrites nothing good.

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
        rule: "Corrupt files of cache, tokens, approvals and uses: plugbay serves, moves each aside or leaves it, and says so",
        run: corrupt_files,
    },
    Scenario {
        name: "newer-cache",
        rule: "A cache file of a newer format is no damage: it is neither moved aside nor changed",
        run: newer_cache,
    },
    Scenario {
        name: "foreign-folder",
        rule: "A symlinked or world-writable cache folder is not used, and nothing is written through it",
        run: foreign_folder,
    },
    Scenario {
        name: "file-modes",
        rule: "Under umask 000 no file, folder or socket of plugbay is open to others: of a gateway, the daemon, tokens and approvals",
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

/// Fills the cache and returns its files.
fn warm(trial: &Trial, workspace: &Workspace) -> Vec<PathBuf> {
    trial.open(workspace, &config(workspace), &["s__echo", "fast__echo"]).finish();
    cached(workspace)
}

fn cached(workspace: &Workspace) -> Vec<PathBuf> {
    let files = workspace.files("cache").into_iter();
    files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

/// Opens the gateway and lists the tools. Returns also how long that took.
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
        outcome.check_time(trial, took, Duration::from_secs(5), || format!("{kind}: the list took {took:?}"));
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
    let config = config(&workspace).top("learn", 5.into());
    let host = trial.open(&workspace, &config, &["s__echo", "fast__echo"]);
    host.call("s__echo", "{}").content_text();
    host.finish();
    make_state(trial, &workspace);
    let json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let files: Vec<PathBuf> =
        FOLDERS.iter().flat_map(|folder| workspace.files(folder)).filter(json).collect();
    for part in ["servers/", "tokens", "approved", "usage"] {
        let found = files.iter().any(|path| path.to_string_lossy().contains(part));
        outcome.check(found, || format!("there is no file of {part:?}"));
    }
    for (number, file) in files.iter().enumerate() {
        fs::write(file, format!("{garbage} {number}")).expect("a file");
    }
    let host = trial.open(&workspace, &config, &["s__echo", "fast__echo"]);
    host.call("s__echo", "{}").content_text();
    let mut told = host.finish().stderr;
    // These commands read the other files, and would also write them.
    told += &trial.command(&workspace, &["token", "create", "two"]);
    told += &trial.command(&workspace, &["approve", "--yes", "project/plugbay.jsonc"]);
    let present: Vec<String> = FOLDERS
        .iter()
        .flat_map(|folder| workspace.files(folder))
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    let kept = (0..files.len()).filter(|number| present.contains(&format!("{garbage} {number}"))).count();
    let lost: Vec<&PathBuf> = files
        .iter()
        .enumerate()
        .filter(|(number, _)| !present.contains(&format!("{garbage} {number}")))
        .map(|(_, path)| path)
        .collect();
    outcome.check(lost.is_empty(), || {
        format!("{kept} of {} corrupt files were kept: not {lost:?}", files.len())
    });
    for words in [["damaged", "aside"], ["tokens", "token"], ["approved", "approv"]] {
        outcome.check(mentions(&told, &words), || format!("nothing was said of {words:?}"));
    }
    outcome.figure(format!("{} files, {kept} kept aside", files.len()))
}

/// The folders in a workspace that are plugbay's own.
const FOLDERS: [&str; 5] = ["cache", "state", "run", "data", "config"];

/// Creates a token and approves a project, so that the files for both exist.
fn make_state(trial: &Trial, workspace: &Workspace) {
    make_project(workspace);
    trial.command(workspace, &["token", "create", "one"]);
    trial.command(workspace, &["approve", "--yes", "project/plugbay.jsonc"]);
}

fn make_project(workspace: &Workspace) {
    let project = workspace.path().join("project");
    fs::create_dir_all(&project).expect("a folder");
    fs::write(project.join("plugbay.jsonc"), r#"{ "mcpServers": { "p": { "command": "true" } } }"#)
        .expect("a project");
}

fn newer_cache(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let newer = r#"{"format":99,"server":{"name":"s"},"lists":"in another file"}"#;
    let files = warm(trial, &workspace);
    for file in &files {
        fs::write(file, newer).expect("a file");
    }
    let (host, _) = start(trial, &workspace);
    let told = host.finish().stderr;
    let aside = workspace
        .files("cache")
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("corrupt"))
        .count();
    let mut outcome = Outcome::default();
    outcome.check(aside == 0 && !mentions(&told, &["damaged", "corrupt"]), || {
        format!("{aside} files moved aside")
    });
    let unchanged = files.iter().filter(|path| fs::read_to_string(path).is_ok_and(|text| text == newer));
    let unchanged = unchanged.count();
    outcome.check(unchanged == files.len() && unchanged > 0, || {
        format!("{unchanged} of {} files are unchanged", files.len())
    });
    outcome.figure(format!("format 99, {unchanged} files unchanged"))
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
    let workspace = Workspace::new().with_daemon();
    let config = config(&workspace).top("learn", 5.into());
    workspace.write_config(&config);
    let open = |words: &str| {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!(r#"umask 000; exec "$0" {words} --config "$1""#)])
            .arg(&trial.gateway)
            .arg(workspace.config_path());
        command.current_dir(workspace.path()).env_clear().envs(workspace.environment());
        command
    };
    // These folders were made with the usual umask; everything below them is made by plugbay.
    let before: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| entries(&workspace, folder)).collect();
    make_project(&workspace);
    for words in ["token create one", "approve --yes project/plugbay.jsonc"] {
        let output = open(words).output().expect("plugbay runs");
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut found = Vec::new();
    // Once with a separate gateway, and once with the daemon's.
    for daemon in ["off", "on"] {
        let host = Host::spawn(open("serve").env("PLUGBAY_DAEMON", daemon));
        host.initialize();
        host.await_tools(&["s__echo"]);
        host.call("s__echo", "{}").content_text();
        found.extend(FOLDERS.iter().flat_map(|folder| entries(&workspace, folder)));
        host.finish();
        found.extend(FOLDERS.iter().flat_map(|folder| entries(&workspace, folder)));
    }
    found.sort();
    found.dedup();
    found.retain(|path| !before.contains(path));
    let mut outcome = Outcome::default();
    let lax: Vec<String> = found
        .iter()
        .filter_map(|path| Some((path, fs::symlink_metadata(path).ok()?)))
        .filter(|(_, about)| !about.is_symlink() && about.mode() & 0o077 != 0)
        .map(|(path, about)| format!("{} {:o}", path.display(), about.mode() & 0o777))
        .collect();
    outcome.check(lax.is_empty(), || format!("open to others: {lax:?}"));
    for part in ["cache/plugbay/servers/", "usage", "tokens", "approved", "running", "logs", ".sock"] {
        let there = found.iter().any(|path| path.to_string_lossy().contains(part));
        outcome.check(there, || format!("there is nothing of {part:?}"));
    }
    outcome.figure(format!("{} files, folders and sockets", found.len()))
}

/// A folder of the workspace and everything below it, including sockets and links.
fn entries(workspace: &Workspace, folder: &str) -> Vec<PathBuf> {
    let mut found = vec![workspace.path().join(folder)];
    let mut at = 0;
    while at < found.len() {
        if fs::symlink_metadata(&found[at]).is_ok_and(|about| about.is_dir()) {
            found.extend(fs::read_dir(&found[at]).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
        at += 1;
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
    let told = host.finish().stderr;
    let mut outcome = Outcome::default();
    outcome.check(mentions(&told, &["cannot", "could not"]), || "nothing was said".to_owned());
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
    // A new list causes a new write, and now there is room for it.
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
