//! The Secret Service over D-Bus: `gnome-keyring`, `KWallet`, `KeePassXC` and others.
//!
//! Each call has its own connection, runtime and thread. So a call can be made from anywhere, and a call that
//! times out leaves nothing behind.

use std::{collections::HashMap, fmt, future::Future, io, path::Path, thread, time::Duration};

use zbus::{
    Connection,
    connection::Builder,
    message::Body,
    zvariant::{DynamicType, ObjectPath, OwnedObjectPath, OwnedValue, Value},
};

use super::{SERVICE, SessionBus, late, locked};

const NAME: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
const SERVICE_INTERFACE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// The object path that means "none".
const NOTHING: &str = "/";

/// A secret on the bus: session, parameters of the encryption, content, type.
type Secret<'a> = (ObjectPath<'a>, Vec<u8>, Vec<u8>, &'a str);
type OwnedSecret = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

#[derive(Clone)]
pub(super) struct Platform {
    /// The address of the user's bus.
    address: String,
}

/// An address contains no secret, but it is long.
impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretService")
    }
}

impl Platform {
    pub(super) fn at(bus: &SessionBus) -> Option<Self> {
        let address =
            bus.address.as_deref().map_or_else(|| usual_address(bus.runtime_folder.as_deref()), socket)?;
        Some(Self { address })
    }

    pub(super) fn check(&self, limit: Duration) -> io::Result<()> {
        run(limit, || async {
            let bus = Bus::connect(&self.address).await?;
            bus.default_collection().await?;
            bus.open_session().await?;
            Ok(())
        })
    }

    pub(super) fn put(&self, entry: &str, secret: &str, limit: Duration) -> io::Result<()> {
        run(limit, || async {
            let bus = Bus::connect(&self.address).await?;
            let collection = bus.default_collection().await?;
            let session = bus.open_session().await?;
            let properties = HashMap::from([
                ("org.freedesktop.Secret.Item.Label", Value::from(format!("{SERVICE}: {entry}"))),
                ("org.freedesktop.Secret.Item.Attributes", Value::from(attributes(entry))),
            ]);
            let secret: Secret =
                (session.into_inner(), Vec::new(), secret.as_bytes().to_vec(), "application/json");
            let replace = true;
            let reply =
                bus.call(&collection, COLLECTION, "CreateItem", &(properties, secret, replace)).await?;
            let (_item, prompt): (OwnedObjectPath, OwnedObjectPath) = read(&reply)?;
            unprompted(&prompt)
        })
    }

    pub(super) fn get(&self, entry: &str, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        run(limit, || async {
            let bus = Bus::connect(&self.address).await?;
            let Some(item) = bus.find(entry).await?.into_iter().next() else { return Ok(None) };
            let session = bus.open_session().await?;
            let reply = bus.call(&item, ITEM, "GetSecret", &(session,)).await?;
            let (_session, _parameters, content, _type): OwnedSecret = read(&reply)?;
            Ok(Some(content))
        })
    }

    pub(super) fn remove(&self, entry: &str, limit: Duration) -> io::Result<()> {
        run(limit, || async {
            let bus = Bus::connect(&self.address).await?;
            for item in bus.find(entry).await? {
                let reply = bus.call(&item, ITEM, "Delete", &()).await?;
                let prompt: OwnedObjectPath = read(&reply)?;
                unprompted(&prompt)?;
            }
            Ok(())
        })
    }
}

/// A connection to the user's bus.
struct Bus(Connection);

impl Bus {
    async fn connect(address: &str) -> io::Result<Self> {
        let connection = Builder::address(address).map_err(failed)?.build().await.map_err(failed)?;
        Ok(Self(connection))
    }

    /// Calls a method. The bus starts the service if possible, as for every program that wants a secret.
    async fn call<B>(&self, path: &str, interface: &str, method: &str, body: &B) -> io::Result<Body>
    where
        B: serde::Serialize + DynamicType,
    {
        let reply = self.0.call_method(Some(NAME), path, Some(interface), method, body).await;
        reply.map(|reply| reply.body()).map_err(failed)
    }

    /// The collection for new entries. Fails unless it exists and is unlocked.
    async fn default_collection(&self) -> io::Result<OwnedObjectPath> {
        let reply = self.call(ROOT, SERVICE_INTERFACE, "ReadAlias", &("default",)).await?;
        let collection: OwnedObjectPath = read(&reply)?;
        if collection.as_str() == NOTHING {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "it has no default collection; create your keychain",
            ));
        }
        let reply = self.call(&collection, PROPERTIES, "Get", &(COLLECTION, "Locked")).await?;
        let is_locked: OwnedValue = read(&reply)?;
        match bool::try_from(is_locked) {
            Ok(false) => Ok(collection),
            Ok(true) => Err(locked()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Opens a session. Secrets are not encrypted: the bus is a socket of this user, whose processes may all
    /// ask for them.
    async fn open_session(&self) -> io::Result<OwnedObjectPath> {
        let reply = self.call(ROOT, SERVICE_INTERFACE, "OpenSession", &("plain", Value::from(""))).await?;
        let (_output, session): (OwnedValue, OwnedObjectPath) = read(&reply)?;
        Ok(session)
    }

    /// The items of an entry, in any collection.
    async fn find(&self, entry: &str) -> io::Result<Vec<OwnedObjectPath>> {
        let reply = self.call(ROOT, SERVICE_INTERFACE, "SearchItems", &(attributes(entry),)).await?;
        let (unlocked, of_locked): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) = read(&reply)?;
        if !of_locked.is_empty() {
            return Err(locked());
        }
        if unlocked.is_empty() {
            // Some services do not search locked collections.
            self.default_collection().await?;
        }
        Ok(unlocked)
    }
}

/// The attributes by which an entry is found. Other programs that store passwords use the same two.
fn attributes(entry: &str) -> HashMap<&str, &str> {
    HashMap::from([("service", SERVICE), ("username", entry)])
}

fn read<T>(body: &Body) -> io::Result<T>
where
    T: for<'a> serde::Deserialize<'a> + zbus::zvariant::Type,
{
    body.deserialize().map_err(failed)
}

/// Fails if the service wants a prompt, which would ask the user. It is not shown, so nothing has happened.
fn unprompted(prompt: &OwnedObjectPath) -> io::Result<()> {
    if prompt.as_str() == NOTHING { Ok(()) } else { Err(locked()) }
}

/// The socket among the addresses of a bus. No other transport is used, because secrets would be visible on
/// the network.
fn socket(addresses: &str) -> Option<String> {
    addresses.split(';').find(|address| address.starts_with("unix:")).map(str::to_owned)
}

/// The usual place of the bus.
fn usual_address(runtime_folder: Option<&Path>) -> Option<String> {
    let path = runtime_folder?.join("bus");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_/.\\*".contains(c);
    let text = path.to_str().filter(|text| text.chars().all(is_plain))?;
    path.exists().then(|| format!("unix:path={text}"))
}

/// Runs a call until its end or the time limit.
fn run<T: Send, F>(limit: Duration, call: impl FnOnce() -> F + Send) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let on_thread = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let ended = runtime.block_on(async { tokio::time::timeout(limit, call()).await });
        runtime.shutdown_background();
        ended.unwrap_or_else(|_| Err(late(limit)))
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, on_thread)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the call has panicked")))
    })
}

fn failed(error: impl Into<zbus::Error>) -> io::Error {
    let absent = |why: String| io::Error::new(io::ErrorKind::NotFound, why);
    match error.into() {
        zbus::Error::MethodError(name, text, _) => match name.as_str() {
            "org.freedesktop.Secret.Error.IsLocked" => locked(),
            "org.freedesktop.DBus.Error.ServiceUnknown" | "org.freedesktop.DBus.Error.NameHasNoOwner" => {
                absent("no program of this session offers one; start your keychain".to_owned())
            }
            name => io::Error::other(text.unwrap_or_else(|| name.to_owned())),
        },
        zbus::Error::InputOutput(error) | zbus::Error::Connection(error, _) => {
            io::Error::new(error.kind(), format!("the bus of this session does not answer: {error}"))
        }
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::net::UnixListener, time::Instant};

    use super::*;

    fn at(address: Option<&str>, runtime_folder: Option<&Path>) -> Option<String> {
        let bus = SessionBus {
            address: address.map(str::to_owned),
            runtime_folder: runtime_folder.map(Path::to_owned),
        };
        Platform::at(&bus).map(|platform| platform.address)
    }

    #[test]
    fn a_session_bus_is_a_unix_socket() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(at(None, None), None);
        assert_eq!(at(None, Some(folder.path())), None, "there is no socket");
        fs::write(folder.path().join("bus"), "").unwrap();
        let usual = format!("unix:path={}/bus", folder.path().display());
        assert_eq!(at(None, Some(folder.path())), Some(usual));
        assert_eq!(at(Some("unix:path=/a,guid=1"), Some(folder.path())).unwrap(), "unix:path=/a,guid=1");
        assert_eq!(at(Some("tcp:host=h,port=1;unix:abstract=b"), None).unwrap(), "unix:abstract=b");
        for other in ["tcp:host=h,port=1", "unixexec:path=/bin/sh", "autolaunch:", "disabled:", ""] {
            assert_eq!(at(Some(other), Some(folder.path())), None, "{other}");
        }
    }

    /// Outside a runtime, in another thread, and inside a runtime.
    #[test]
    fn a_session_bus_that_hangs_costs_the_time_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus");
        let _listener = UnixListener::bind(&path).unwrap(); // accepts nothing, so nobody answers
        let platform = Platform { address: format!("unix:path={}", path.display()) };
        let check = move || {
            let began = Instant::now();
            let error = platform.check(Duration::from_millis(50)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        };
        check();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            check();
            tokio::task::spawn_blocking(check).await.unwrap();
        });
    }

    #[test]
    fn a_session_bus_that_is_gone_is_an_error() {
        let platform = Platform { address: "unix:path=/nowhere/bus".to_owned() };
        let error = platform.get("entry", Duration::from_secs(5)).unwrap_err();
        assert!(error.to_string().starts_with("the bus of this session does not answer: "), "{error}");
    }
}
