//! The daemon's socket: in a private folder of the user, owned by the process that holds the lock beside it.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{
            fs::PermissionsExt as _,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process,
};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, sockopt};

use super::hello::PATIENCE;
use crate::{config::Paths, files::own};

const SOCKET: &str = "daemon.sock";
const LOCK: &str = "daemon.lock";
const START_LOCK: &str = "start.lock";
/// Size limit of a lock file, which contains a process id.
const LONGEST_LOCK: u64 = 1024;
/// The shortest limit of socket paths on any system, minus a few bytes for a temporary name.
const LONGEST_PATH: usize = 88;

/// The folder of the daemon of one user and state folder.
#[derive(Debug, Clone)]
pub struct Place {
    folder: PathBuf,
}

/// Held by the one daemon as long as it accepts connections.
#[derive(Debug)]
pub struct Claim {
    place: Place,
    /// The system unlocks it when the process ends, in whatever way.
    _lock: File,
}

impl Place {
    /// The place for these paths, whose folder is created if necessary. `Err` says why there can be no
    /// daemon.
    ///
    /// The place does not depend on `XDG_RUNTIME_DIR`, because hosts often start plugbay with a small
    /// environment, and all windows must find the same daemon.
    pub fn of(paths: &Paths) -> Result<Self, String> {
        let state =
            paths.state_folder.as_ref().ok_or("there is no state folder; set HOME or XDG_STATE_HOME")?;
        let place = Self { folder: state.join("daemon") };
        own::create_folder(&place.folder)
            .map_err(|error| format!("{} cannot be used: {error}", place.folder.display()))?;
        Ok(place)
    }

    /// The same if there has been a daemon; creates nothing.
    pub fn found(paths: &Paths) -> Option<Self> {
        let folder = paths.state_folder.as_ref()?.join("daemon");
        if folder.is_dir() { Self::of(paths).ok() } else { None }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Connects to the running daemon, if it belongs to the same user. The wait is limited, because a
    /// suspended daemon accepts nothing.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let socket = socket()?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
        let reachable = self.reachable()?;
        let address = SocketAddrUnix::new(reachable.path(SOCKET))?;
        rustix::net::connect(&socket, &address).map_err(|error| or_silent(error.into()))?;
        let stream = UnixStream::from(socket);
        check_owner(peer(&stream)?)?;
        Ok(stream)
    }

    /// Lets this process start a daemon; `None` if another process is about to.
    pub fn try_lock_start(&self) -> io::Result<Option<File>> {
        self.try_lock(START_LOCK)
    }

    /// The daemon's process id, as it has written it.
    pub fn holder(&self) -> Option<u32> {
        own::read_text(&self.folder.join(LOCK), LONGEST_LOCK).ok()?.trim().parse().ok()
    }

    /// Makes this process the daemon; `None` if there is another one.
    pub fn claim(&self) -> io::Result<Option<(Claim, UnixListener)>> {
        let Some(mut lock) = self.try_lock(LOCK)? else { return Ok(None) };
        lock.set_len(0)?;
        writeln!(lock, "{}", process::id())?;
        let reachable = self.reachable()?;
        // Bound under a temporary name, so that nobody sees a socket that does not listen yet. A dead
        // daemon's socket is replaced.
        let draft = format!(".{}", process::id());
        let _ = fs::remove_file(self.folder.join(&draft));
        let listener = UnixListener::bind(reachable.path(&draft))?;
        // The mode of a socket depends on the umask alone, and on some systems the mode decides who may
        // connect.
        fs::set_permissions(self.folder.join(&draft), fs::Permissions::from_mode(0o600))?;
        let renamed = fs::rename(self.folder.join(&draft), self.folder.join(SOCKET));
        renamed.map_err(|error| self.in_the_way(SOCKET, &error))?;
        Ok(Some((Claim { place: self.clone(), _lock: lock }, listener)))
    }

    /// Whether a daemon listens.
    #[cfg(test)]
    fn has_socket(&self) -> bool {
        self.folder.join(SOCKET).exists()
    }

    /// Whether a running daemon accepts connections.
    #[cfg(test)]
    fn is_claimed(&self) -> bool {
        self.try_lock(LOCK).is_ok_and(|lock| lock.is_none())
    }

    fn try_lock(&self, name: &str) -> io::Result<Option<File>> {
        own::try_lock(&self.folder.join(name)).map_err(|error| self.in_the_way(name, &error))
    }

    /// The error for a file in the folder that plugbay cannot use.
    fn in_the_way(&self, name: &str, error: &io::Error) -> io::Error {
        let file = self.folder.join(name);
        io::Error::new(
            error.kind(),
            format!("{} cannot be used: {error}; remove it, and plugbay makes another", file.display()),
        )
    }

    /// A short path to the folder. The length of socket paths is limited, so a long path is replaced by one
    /// through a descriptor of the folder.
    fn reachable(&self) -> io::Result<Reachable> {
        if self.folder.as_os_str().len() + SOCKET.len() < LONGEST_PATH || !cfg!(target_os = "linux") {
            return Ok(Reachable { folder: self.folder.clone(), _opened: None });
        }
        let opened: OwnedFd = File::open(&self.folder)?.into();
        let folder = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        Ok(Reachable { folder, _opened: Some(opened) })
    }
}

/// The folder under a short path.
struct Reachable {
    folder: PathBuf,
    _opened: Option<OwnedFd>,
}

impl Reachable {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Claim {
    /// Removes the socket before the lock is released: the next daemon makes its own.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.place.folder.join(SOCKET));
    }
}

/// A socket that no child process inherits.
#[cfg(target_os = "linux")]
fn socket() -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

#[cfg(not(target_os = "linux"))]
fn socket() -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}

/// The error of a wait for the daemon; if that was a timeout, its text says so.
pub fn or_silent(error: io::Error) -> io::Error {
    if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
        return error;
    }
    let text = format!("it does not answer within {} s", PATIENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// The user of the process at the other end.
#[cfg(target_os = "linux")]
pub fn peer(stream: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// Only the folder's permissions protect the socket here.
#[cfg(not(target_os = "linux"))]
pub fn peer(_: &UnixStream) -> io::Result<u32> {
    Ok(rustix::process::geteuid().as_raw())
}

/// Checks that `user` is the current user.
pub fn check_owner(user: u32) -> io::Result<()> {
    if user == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let error = format!("it belongs to the user {user}; plugbay serves only the user who started it");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn place(state: &Path) -> Result<Place, String> {
        let state = state.as_os_str().to_owned();
        Place::of(&Paths::detect(&|name| (name == "XDG_STATE_HOME").then(|| state.clone()), "/".into()))
    }

    #[test]
    fn the_socket_of_a_dead_daemon_is_replaced_and_one_daemon_holds_the_lock() {
        let root = tempfile::tempdir().unwrap();
        let place = place(root.path()).unwrap();
        fs::write(place.folder.join(SOCKET), "left behind").unwrap();
        let (claim, listener) = place.claim().unwrap().unwrap();
        assert!(place.claim().unwrap().is_none() && place.is_claimed());
        place.connect().unwrap();
        assert_eq!(fs::metadata(place.folder.join(SOCKET)).unwrap().mode() & 0o777, 0o600);
        drop((claim, listener));
        assert!(!place.has_socket() && !place.is_claimed());
        assert!(place.claim().unwrap().is_some());
    }

    #[test]
    fn a_socket_folder_is_for_its_owner_alone_and_no_symbolic_link() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("plugbay/daemon");
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        place(root.path()).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        fs::remove_dir(&folder).unwrap();
        symlink("/tmp", &folder).unwrap();
        assert!(place(root.path()).unwrap_err().contains("a symbolic link; remove it"));
    }

    #[test]
    fn a_socket_whose_daemon_accepts_nothing_is_given_up() {
        let root = tempfile::tempdir().unwrap();
        let place = place(root.path()).unwrap();
        let listener = socket().unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(place.folder.join(SOCKET)).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _first_in_the_queue = place.connect().unwrap();
        let error = place.connect().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("does not answer"), "{error}");
    }

    #[test]
    fn a_socket_works_below_a_path_over_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("x".repeat(90)).join("y".repeat(90));
        let place = place(&deep).unwrap();
        let _claimed = place.claim().unwrap().unwrap();
        place.connect().unwrap();
    }

    #[test]
    fn a_peer_of_another_user_is_refused() {
        let own = rustix::process::geteuid().as_raw();
        assert!(check_owner(own).is_ok());
        assert_eq!(check_owner(own + 1).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
