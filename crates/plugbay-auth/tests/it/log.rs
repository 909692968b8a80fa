//! Captures everything that the crate logs, to search it for secrets.

use std::{
    fmt::{self, Write as _},
    sync::{Mutex, Once, PoisonError},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

static TEXT: Mutex<String> = Mutex::new(String::new());

/// Starts capturing, once for the whole test binary.
pub fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Capture).expect("there is no other subscriber");
    });
}

/// Everything logged so far, by all tests.
pub fn text() -> String {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

struct Capture;

impl Subscriber for Capture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut Line);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Line);
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Line);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Line;

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = TEXT.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(text, "{field}={value:?}");
    }
}
