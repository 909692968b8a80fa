//! Progress notifications of a run, if the host sent a progress token.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use plugbay_core::model::TextListener;

use crate::{message::Request, outbox::Outbox, respond};

/// Text without a sentence end is sent once it exceeds this many bytes.
const LONGEST: usize = 200;

pub(crate) struct ProgressReporter {
    sink: Arc<Outbox>,
    /// Raw JSON.
    token: Option<Bytes>,
    steps: AtomicUsize,
}

impl ProgressReporter {
    /// Reports the progress of the run that is answered in `sink`.
    pub(crate) fn new(request: &Request, sink: &Arc<Outbox>) -> Self {
        let token = request.progress_token().map(Bytes::copy_from_slice);
        Self { sink: Arc::clone(sink), token, steps: AtomicUsize::new(0) }
    }

    pub(crate) fn report(&self, what: &str) {
        if let Some(token) = &self.token {
            let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
            self.sink.send_if_room(respond::progress(token, step, None, what));
        }
    }

    /// A callback that reports the model's text a sentence at a time.
    pub(crate) fn sentence_reporter(self: &Arc<Self>) -> TextListener {
        let (reporter, mut unsent) = (Arc::clone(self), String::new());
        Box::new(move |piece| {
            unsent.push_str(piece);
            let rest = unsent.split_off(end(&unsent));
            let sentences = std::mem::replace(&mut unsent, rest);
            if !sentences.trim().is_empty() {
                reporter.report(sentences.trim());
            }
        })
    }
}

/// The end of the last sentence or line. A long text without one is cut after its last word.
fn end(text: &str) -> usize {
    let ends = |(at, c): (usize, char)| {
        let after = at + c.len_utf8();
        let over = text[after..].chars().next().is_none_or(char::is_whitespace);
        (c == '\n' || "。！？".contains(c) || ".!?:".contains(c) && over).then_some(after)
    };
    let sentence = text.char_indices().rev().find_map(ends);
    let word = || text.rfind(char::is_whitespace).filter(|_| text.len() > LONGEST);
    sentence.or_else(word).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_sent_a_sentence_at_a_time() {
        for (text, told) in [
            ("", ""),
            ("Let me", ""),
            ("Let me look.", "Let me look."),
            ("Done. And th", "Done."),
            ("See a.txt", ""),
            ("One\nTwo", "One\n"),
            ("好。再", "好。"),
        ] {
            assert_eq!(&text[..end(text)], told, "{text}");
        }
        let long = format!("{} and", "ü".repeat(LONGEST));
        assert_eq!(end(&long), 2 * LONGEST);
        assert_eq!(end(&"ü".repeat(LONGEST)), 0, "half a word is none");
    }
}
