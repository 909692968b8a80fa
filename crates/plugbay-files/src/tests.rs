//! Files in the state that other users, killed writers and full disks leave behind.

use std::{
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    process::Command,
    time::Duration,
};

use super::*;

const LONGEST: u64 = 1024;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_new_file_and_its_folders_are_for_their_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    for (number, replace) in [replace, own::replace].into_iter().enumerate() {
        let above = root.path().join(number.to_string());
        let file = above.join("down/file");
        replace(&file, b"one").unwrap();
        let modes = [above.clone(), above.join("down"), file].map(|path| mode(&path));
        assert_eq!(modes, [0o700, 0o700, 0o600]);
    }
}

#[test]
fn a_replaced_file_keeps_its_permissions_unless_it_is_of_our_own() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    replace(&file, b"new").unwrap();
    assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), 0o644));
    own::replace(&file, b"newer").unwrap();
    assert_eq!((own::read(&file, LONGEST).unwrap(), mode(&file)), (b"newer".to_vec(), 0o600));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "no draft is left");
}

#[test]
fn a_pipe_a_device_a_folder_and_a_huge_file_are_not_read() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fifo(&path("pipe"));
    symlink("/dev/zero", path("device")).unwrap();
    symlink(path("pipe"), path("link")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    fs::File::create(path("huge")).unwrap().set_len(LONGEST + 1).unwrap();
    fs::File::create(path("large")).unwrap().set_len(LONGEST).unwrap();
    fs::write(path("latin"), b"\xe9").unwrap();
    let problem = |name: &str| read_text(&path(name), LONGEST).unwrap_err().to_string();
    for name in ["pipe", "device", "link", "folder"] {
        assert_eq!(problem(name), "this is not a regular file", "{name}");
        assert_eq!(
            own::read(&path(name), LONGEST).unwrap_err().kind(),
            io::ErrorKind::InvalidInput,
            "{name}"
        );
    }
    for name in ["pipe", "device", "link", "folder"] {
        assert!(own::append(&path(name)).is_err() && own::lock_file(&path(name)).is_err(), "{name}");
    }
    assert_eq!(problem("huge"), "the file is larger than 1 KiB");
    assert_eq!(problem("latin"), "this is not UTF-8 text");
    assert_eq!(read(&path("large"), LONGEST).unwrap().len() as u64, LONGEST);
    assert_eq!(read(&path("absent"), LONGEST).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_pipe_or_a_link_in_the_place_of_our_own_file_is_replaced_and_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fs::write(path("precious"), "precious").unwrap();
    symlink(path("precious"), path("link")).unwrap();
    fifo(&path("pipe"));
    for name in ["link", "pipe"] {
        own::replace(&path(name), b"new").unwrap();
        assert_eq!(own::read(&path(name), LONGEST).unwrap(), b"new");
    }
    assert_eq!(fs::read(path("precious")).unwrap(), b"precious");
}

#[test]
fn a_symbolic_link_of_the_user_stays_a_link_to_the_replaced_file() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fs::create_dir(path("dotfiles")).unwrap();
    symlink("dotfiles/there", path("link")).unwrap();
    symlink(path("link"), path("link to the link")).unwrap();
    for content in ["first: the link leads to no file yet", "second"] {
        replace(&path("link to the link"), content.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(path("dotfiles/there")).unwrap(), content);
    }
    assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
    symlink(path("circle"), path("circle")).unwrap();
    assert!(replace(&path("circle"), b"").is_err());
}

#[test]
fn a_linked_folder_is_refused_up_to_the_folder_of_plugbay() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fs::create_dir_all(path("evil/servers")).unwrap();
    fs::write(path("evil/servers/file"), "planted").unwrap();
    symlink(path("evil"), path("plugbay")).unwrap();
    for name in ["plugbay/file", "plugbay/servers/file"] {
        let read = own::read(&path(name), LONGEST).unwrap_err().to_string();
        assert!(read.ends_with("plugbay is a symbolic link; remove it"), "{read}");
        assert!(own::replace(&path(name), b"new").is_err() && own::append(&path(name)).is_err());
    }
    assert_eq!(fs::read(path("evil/servers/file")).unwrap(), b"planted");
    // Folders above it belong to the user, who may have linked them to another disk.
    symlink(path("evil"), path("cache")).unwrap();
    own::replace(&path("cache/plugbay/file"), b"new").unwrap();
    fs::write(path("plain"), "").unwrap();
    assert!(
        own::create_folder(&path("plain")).unwrap_err().to_string().ends_with("is not a folder; remove it")
    );
}

#[test]
fn a_folder_that_others_can_use_is_taken_from_them() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("plugbay");
    fs::create_dir_all(folder.join("servers")).unwrap();
    for open in [folder.clone(), folder.join("servers")] {
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    }
    own::replace(&folder.join("servers/file"), b"new").unwrap();
    assert_eq!([mode(&folder), mode(&folder.join("servers"))], [0o700; 2]);
}

/// Only the superuser can create a file of another user: otherwise nothing is tested.
#[test]
fn a_folder_or_file_of_another_user_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (folder, file) = (root.path().join("folder"), root.path().join("file"));
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "planted").unwrap();
    if chown(&folder, Some(12345), None).is_err() || chown(&file, Some(12345), None).is_err() {
        return;
    }
    let of_folder = own::replace(&folder.join("file"), b"new").unwrap_err().to_string();
    assert!(of_folder.ends_with("belongs to another user; remove it"), "{of_folder}");
    let of_file = own::read(&file, LONGEST).unwrap_err().to_string();
    assert_eq!(of_file, "it belongs to another user; remove it");
}

#[test]
fn a_draft_of_a_killed_writer_is_removed_and_one_in_use_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    let [dead, alive, other] = [".plugbay-draft-dead", ".plugbay-draft-live", ".tmpOther"].map(path);
    fs::write(&dead, "x").unwrap();
    fs::write(&other, "x").unwrap();
    let writer = fs::File::create(&alive).unwrap();
    writer.lock().unwrap();
    assert!(is_abandoned(&dead) && !is_abandoned(&alive) && !is_abandoned(&other));
    replace(&path("file"), b"new").unwrap();
    assert!(!dead.exists() && alive.exists() && other.exists());
    // Closing the file would not do: a process that another test is starting may still have it, until its
    // `exec`.
    writer.unlock().unwrap();
    draft::sweep(root.path());
    assert!(!alive.exists() && other.exists());
}

/// Each writer sweeps all the time, and none loses a draft permanently.
#[test]
fn writers_that_sweep_do_not_remove_each_others_drafts() {
    let root = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let file = root.path().join(number.to_string());
            scope.spawn(move || {
                for _ in 0..200 {
                    draft::sweep(folder_of(&file));
                    own::replace_unsynced(&file, b"new").unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 4);
}

#[test]
fn a_lock_that_another_holds_is_not_waited_for_longer_than_asked() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("lock");
    let held = own::lock(&path, Duration::ZERO).unwrap();
    assert!(own::try_lock(&path).unwrap().is_none());
    let error = own::lock(&path, Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    held.unlock().unwrap();
    assert_eq!(mode(&path), 0o600);
    assert!(own::try_lock(&path).unwrap().is_some());
}

const CHILD: &str = "PLUGBAY_FILES_CHILD";

/// Runs a test in a child process: the umask and the limits of a process affect all its threads.
fn in_child(test: &str, before: &str, folder: &Path) -> bool {
    let program = std::env::current_exe().unwrap();
    let script = format!("{before}; exec \"$0\" --exact {test}");
    let status = Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .env(CHILD, folder)
        .stdout(std::process::Stdio::null())
        .status();
    status.unwrap().success()
}

#[test]
fn a_file_is_for_its_owner_alone_under_any_umask() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let folder = PathBuf::from(folder);
        own::replace(&folder.join("a/replaced"), b"x").unwrap();
        own::replace_unsynced(&folder.join("a/unsynced"), b"x").unwrap();
        own::append(&folder.join("a/appended")).unwrap();
        own::lock_file(&folder.join("a/lock")).unwrap();
        replace(&folder.join("a/users"), b"x").unwrap();
        return;
    }
    let root = tempfile::tempdir().unwrap();
    assert!(in_child("tests::a_file_is_for_its_owner_alone_under_any_umask", "umask 000", root.path()));
    assert_eq!(mode(&root.path().join("a")), 0o700);
    for name in ["replaced", "unsynced", "appended", "lock", "users"] {
        assert_eq!(mode(&root.path().join("a").join(name)), 0o600, "{name}");
    }
}

/// A file size limit simulates a full disk: a part of the draft is written, the rest fails.
#[test]
fn a_write_without_room_fails_and_leaves_the_old_content() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let file = PathBuf::from(folder).join("file");
        assert!(own::replace(&file, &vec![b'x'; 1 << 20]).is_err());
        own::replace(&file, b"small").unwrap();
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    own::replace(&file, b"old").unwrap();
    let test = "tests::a_write_without_room_fails_and_leaves_the_old_content";
    assert!(in_child(test, "trap '' XFSZ; ulimit -f 64", root.path()));
    assert_eq!(own::read(&file, LONGEST).unwrap(), b"small");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "no draft is left");
}
