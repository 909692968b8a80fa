//! The listener for hosts: a TCP port or a Unix socket.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    pin::Pin,
    str::FromStr,
};

use rustix::{fs::Mode, process::umask};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener},
};

use crate::descriptors;

/// A connection over TCP or a Unix socket.
pub type Stream = Pin<Box<dyn Connection>>;

pub trait Connection: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> Connection for S {}

/// The other end of a connection, as a way to tell callers without a token apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A process of this user, over a Unix socket.
    Local,
    /// An IPv4 address, or the network half of an IPv6 address: the other half can be chosen freely.
    Address(IpAddr),
}

impl Peer {
    fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let mut octets = address.octets();
                octets[8..].fill(0);
                octets.into()
            }
            address => address,
        })
    }
}

/// A source of connections.
pub trait Accept {
    fn accept(&mut self) -> impl Future<Output = io::Result<(Stream, Peer)>> + Send;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Debug, thiserror::Error)]
#[error("write 127.0.0.1:8080, another IP address and port, a port alone, or unix:PATH")]
pub struct AddressError;

impl Address {
    /// Whether no other machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(AddressError) } else { Ok(Self::Unix(path.into())) };
        }
        // Names are not looked up: one that is local today may not be local tomorrow.
        let local = text.strip_prefix("localhost:").unwrap_or(text);
        if let Ok(port) = local.parse::<u16>() {
            return Ok(Self::Tcp((Ipv4Addr::LOCALHOST, port).into()));
        }
        text.parse().map(Self::Tcp).map_err(|_| AddressError)
    }
}

impl Address {
    /// The URL of a path at this address, as people write it.
    pub fn at(&self, path: &str) -> String {
        match self {
            Self::Tcp(address) => format!("http://{address}{path}"),
            Self::Unix(socket) => format!("unix:{} (path {path})", socket.display()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.at("/mcp"))
    }
}

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

impl Listener {
    pub async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await?)),
            Address::Unix(path) => {
                clear(path)?;
                // From the first moment nobody else may connect.
                let before = umask(Mode::from_raw_mode(0o177));
                let bound = UnixListener::bind(path);
                umask(before);
                Ok(Self::Unix(bound?, SocketFile::of(path)?))
            }
        }
    }

    /// The address with the port that the system chose.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Self::Unix(_, file) => Ok(Address::Unix(file.path.clone())),
        }
    }
}

impl Accept for Listener {
    async fn accept(&mut self) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                prepare(&stream);
                Ok((Box::pin(stream), Peer::at(address.ip())))
            }
            Self::Unix(listener, _) => Ok((Box::pin(listener.accept().await?.0), Peer::Local)),
        }
    }
}

/// How many connections can be open at a time: servers need descriptors too.
pub(super) fn connection_limit() -> usize {
    (descriptors::raise_limit() / 2).max(1)
}

/// Sets options: small answers are sent at once, and a host whose machine has vanished is noticed. Without
/// either everything works, only more slowly.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED);
}

/// How long sent bytes may stay unacknowledged, in milliseconds.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: u32 = 45_000;

/// Removes a socket file that a killed process left behind, and no other file.
fn clear(path: &Path) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        let what = format!("{} exists and is no socket", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => {
            let what = format!("another process serves {}", path.display());
            Err(io::Error::new(io::ErrorKind::AddrInUse, what))
        }
    }
}

/// A socket file that is removed on drop, if it is still ours.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Address>().ok();
        let local = |port: u16| Some(Address::Tcp((Ipv4Addr::LOCALHOST, port).into()));
        assert_eq!(["8080", "localhost:1", "127.0.0.1:0"].map(read), [local(8080), local(1), local(0)]);
        assert_eq!(read("unix:/run/x"), Some(Address::Unix("/run/x".into())));
        assert!(read("[::]:1").is_some_and(|address| !address.is_local()));
        assert_eq!(["", "unix:", "example.com:80", "127.0.0.1", "99999"].map(read), [const { None }; 5]);
    }

    #[test]
    fn peers_are_told_apart_by_what_they_cannot_choose() {
        let peer = |text: &str| Peer::at(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
    }

    #[tokio::test]
    async fn a_unix_socket_is_private_and_replaces_only_a_stale_one() {
        let folder = std::env::temp_dir().join(format!("plugbay-listen-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let address = Address::Unix(path.clone());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap()); // leaves its file behind
        let listener = Listener::bind(&address).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Listener::bind(&address).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists());
        fs::write(&path, "precious").unwrap();
        assert_eq!(Listener::bind(&address).await.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_dir_all(folder).unwrap();
    }
}
