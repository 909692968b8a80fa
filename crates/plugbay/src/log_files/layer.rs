//! plugbay's own log events: written to the log of the server that they are about, or else to that of the
//! gateways.

use std::fmt::{self, Write};

use plugbay_core::{name::ServerName, secret::KnownSecrets};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

use super::{LogFiles, LogName, Source};

/// The target for servers' stderr, which is already in their logs.
const STDERR_TARGET: &str = "plugbay::stderr";

/// Writes events to log files.
pub struct FileLayer(pub LogFiles);

impl<S: Subscriber> Layer<S> for FileLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == STDERR_TARGET {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { server, message, others } = fields;
        let server = server.and_then(|name| ServerName::parse(&name).ok());
        let text = format!("{} {message}{others}", event.metadata().level());
        self.0.send(
            server.map_or(LogName::Gateway, LogName::Server),
            Source::Plugbay,
            text.into_bytes(),
            KnownSecrets::default(),
        );
    }
}

/// The fields of one event.
#[derive(Default)]
struct Fields {
    server: Option<String>,
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "server" => self.server = Some(format!("{value:?}")),
            name => _ = write!(self.others, " {name}={value:?}"),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::log_files::Follower;

    #[test]
    fn an_event_about_a_server_is_in_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let files = LogFiles::new(folder.path().to_owned());
        let subscriber = tracing_subscriber::registry().with(FileLayer(files.clone()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(server = %"db", count = 2, "it failed");
            tracing::info!(mode = "all", "a host connected");
            tracing::debug!(target: STDERR_TARGET, "its own words");
        });
        files.finish();
        let texts = |server| -> Vec<String> {
            let (lines, _) = Follower::open(folder.path(), server, 9).unwrap();
            let mut texts: Vec<String> = lines.into_iter().map(|line| line.text).collect();
            texts.sort();
            texts
        };
        assert_eq!(texts(Some("db")), ["WARN it failed count=2"]);
        assert_eq!(texts(None), ["INFO a host connected mode=all", "WARN it failed count=2"]);
    }
}
