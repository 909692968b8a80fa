//! One connection to the daemon's socket: its hello, and the session of a window.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

use plugbay_downstream::stdio::{Window, serve_window};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::UnixStream,
    sync::{oneshot, watch},
    time::timeout,
};

use super::{Event, Phase, Shared};
use crate::daemon::{
    contexts::Entered,
    hello::{self, Build, Hello, LONGEST, PATIENCE, PROTOCOL, Reply, Request, WindowHello},
    pipes::{self, PipeEnd},
    socket::check_owner,
};

/// How long a bridge may take to close its end when the daemon stops.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// One connection, which counts as long as it is open.
pub(super) struct Connection {
    shared: Arc<Shared>,
    count: watch::Sender<usize>,
}

/// The part of a hello that every version understands.
#[derive(Deserialize)]
struct Greeting {
    protocol: u32,
    build: Build,
}

impl Connection {
    /// Serves the connection in a task of its own.
    pub(super) fn serve(shared: &Arc<Shared>, stream: UnixStream) {
        let count = shared.connections.clone();
        count.send_modify(|count| *count += 1);
        let connection = Self { shared: Arc::clone(shared), count };
        tokio::spawn(async move {
            if let Err(error) = connection.converse(stream).await {
                tracing::info!("a connection has ended: {error}");
            }
        });
    }

    async fn converse(&self, mut stream: UnixStream) -> io::Result<()> {
        check_owner(stream.peer_cred()?.uid())?;
        let mut descriptors = Vec::new();
        let line = timeout(PATIENCE, read_line(&stream, &mut descriptors)).await??;
        let hello: Hello = match self.understand(&line).await {
            Ok(hello) => hello,
            Err(reply) => return say(&mut stream, &reply).await,
        };
        match hello.request {
            Request::Window(window) => self.window(stream, descriptors, Arc::from(window)).await,
            Request::Status => say(&mut stream, &Reply::Status(Box::new(self.shared.status()))).await,
            Request::HandOver => {
                self.hand_over().await;
                say(&mut stream, &Reply::HandedOver).await
            }
            Request::Stop => {
                say(&mut stream, &Reply::Stopping).await?;
                let _ = self.shared.events.send(Event::Stop(stream));
                Ok(())
            }
        }
    }

    /// Parses a hello. A window of a newer build is told to start a daemon of its build.
    async fn understand(&self, line: &[u8]) -> Result<Hello, Reply> {
        let refused = |reason: String| Reply::Refused { reason };
        let Greeting { protocol, build } = serde_json::from_slice(line)
            .map_err(|_| refused("it does not understand the hello".to_owned()))?;
        let is_newer = build.is_newer_than(&self.shared.build);
        match serde_json::from_slice::<Hello>(line) {
            Ok(hello)
                if protocol == PROTOCOL && !(is_newer && matches!(hello.request, Request::Window(_))) =>
            {
                Ok(hello)
            }
            _ if is_newer => {
                self.hand_over().await;
                Err(Reply::HandedOver)
            }
            _ => {
                let own = &self.shared.build.version;
                let theirs = &build.version;
                Err(refused(format!(
                    "it is plugbay {own} and does not understand plugbay {theirs}; close the windows of {own}, or run \
                     `plugbay daemon restart`"
                )))
            }
        }
    }

    /// Waits until there is room for another daemon.
    async fn hand_over(&self) {
        let (done, room) = oneshot::channel();
        let _ = self.shared.events.send(Event::HandOver(done));
        // If the daemon is ending anyway, nobody answers.
        let _ = timeout(PATIENCE, room).await;
    }

    async fn window(
        &self,
        mut stream: UnixStream,
        descriptors: Vec<OwnedFd>,
        hello: Arc<WindowHello>,
    ) -> io::Result<()> {
        let Some(pipes) = PipeEnd::received(descriptors) else {
            let reason = "the hello came without its pipes".to_owned();
            return say(&mut stream, &Reply::Refused { reason }).await;
        };
        let (input, output) = pipes.into_tokio()?;
        let mut entered = match self.shared.contexts.enter(&hello).await {
            Ok(entered) => entered,
            Err(reason) => return say(&mut stream, &Reply::Refused { reason }).await,
        };
        if self.shared.phase() != Phase::Open {
            return say(&mut stream, &Reply::HandedOver).await;
        }
        let token = hello::random_token()?;
        let limit = entered.gateway.snapshots.borrow_and_update().layout.settings.message_limit;
        say(&mut stream, &Reply::Accepted { token: token.clone(), limit }).await?;
        let Entered { gateway, membership, controls } = entered;
        let owner = Sha256::digest(&hello.session).into();
        let (state, unread) = (hello.state.clone(), self.shared.unread.clone());
        let cut = Arc::clone(&self.shared.cut);
        let window = Window { owner, token, state, unread, controls, cut };
        let mut phase = self.shared.phase.subscribe();
        let stop = async move {
            let _ = phase.wait_for(|phase| *phase == Phase::Stopping).await;
            // A bridge that is told to stop closes its end. Until then, everything that it has sent is read.
            tokio::time::sleep(LAST_MESSAGES).await;
        };
        drop(stream);
        let served = serve_window(gateway, input, output, window, stop).await;
        drop(membership);
        served
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}

/// Reads one line. Nothing follows it, because the other side waits for the answer.
async fn read_line(stream: &UnixStream, descriptors: &mut Vec<OwnedFd>) -> io::Result<Vec<u8>> {
    let (mut line, mut chunk) = (Vec::new(), vec![0; 16 * 1024]);
    while !line.ends_with(b"\n") {
        if line.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the hello is too long"));
        }
        let receive = || pipes::receive(stream.as_fd(), &mut chunk, descriptors);
        match stream.async_io(Interest::READABLE, receive).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => line.extend_from_slice(&chunk[..count]),
        }
    }
    Ok(line)
}

pub(super) async fn say(stream: &mut UnixStream, reply: &Reply) -> io::Result<()> {
    let line = hello::line(reply)?;
    timeout(PATIENCE, stream.write_all(&line)).await?
}
