//! What a legacy host is asked: requests to it, and where its answers go.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    exchange::{Question, Reply, Ticket, Unanswered},
    name::ServerName,
    wire::{Draft, Head, Kind, Members, Span, string_value},
};

use tokio::sync::oneshot;

use crate::{
    outbox::Outbox,
    respond,
    session::{Session, State},
    tasks,
};

/// A question that the host has not answered yet.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) asker: Asker,
    /// The calls that it may be about: it ends with the last of them.
    pub(crate) calls: Vec<Ticket>,
    /// Where it was put.
    pub(crate) sink: Arc<Outbox>,
}

/// Who wants to know.
#[derive(Debug)]
pub(crate) enum Asker {
    Server(ServerName),
    /// A modern server, by a result that held this key; it is told when all is known.
    Round {
        call: Ticket,
        key: String,
    },
    /// We ourselves.
    Gateway(oneshot::Sender<(Bytes, Head)>),
}

/// What a host answers to ourselves: a result, or the words of its error.
pub(crate) type Told = Result<Bytes, String>;

impl Session {
    /// Puts a server's request to the host, under a number of ours and otherwise as it came.
    pub(crate) fn ask(&self, during: Option<Ticket>, question: Question) -> Result<(), Unanswered> {
        let mut state = self.lock();
        let sink = match during {
            Some(ticket) => {
                let call = state.calls.get(&ticket).ok_or(Unanswered::CallEnded)?;
                self.sink_for_questions(&call.sink)
            }
            None if state.listens() => Arc::clone(self.outbox()),
            None => return Err(Unanswered::NoHost),
        };
        let lacking = state.abilities.lacks(&question.message, question.method(), question.params());
        if let Some(lacking) = lacking {
            return Err(Unanswered::Undeclared(lacking));
        }
        // A server that asks and withdraws without end must not fill our memory.
        if !sink.has_room() {
            return Err(Unanswered::TooMany);
        }
        let Question { number, server, calls, message, head, .. } = question;
        let asked = Asked { asker: Asker::Server(server.clone()), calls, sink: Arc::clone(&sink) };
        state.questions.insert(number, asked);
        drop(state);
        let labels = tasks::question_labels(&message, head.payload.as_ref(), &server, &self.owner());
        let labels: Vec<(Span, &[u8])> = labels.iter().map(|(at, text)| (*at..*at, &text[..])).collect();
        sink.tell(head.readdressed(&message, number.0.to_string().as_bytes(), &labels));
        Ok(())
    }

    /// Asks the host something of our own while it waits for an answer in `of_request`. `params` is raw
    /// JSON.
    fn ask_for_ourselves(
        &self,
        of_request: &Arc<Outbox>,
        method: &str,
        params: &str,
    ) -> Result<(Ticket, oneshot::Receiver<(Bytes, Head)>), Unanswered> {
        let sink = self.sink_for_questions(of_request);
        let mut state = self.lock();
        let lacking = state.abilities.lacks(params.as_bytes(), method.as_bytes(), Some(&(0..params.len())));
        if let Some(lacking) = lacking {
            return Err(Unanswered::Undeclared(lacking));
        }
        if !sink.has_room() {
            return Err(Unanswered::TooMany);
        }
        let number = self.gateway().tickets.next();
        let (waits, answer) = oneshot::channel();
        let asked = Asked { asker: Asker::Gateway(waits), calls: Vec::new(), sink: Arc::clone(&sink) };
        state.questions.insert(number, asked);
        drop(state);
        sink.tell(respond::question(number, method, params));
        Ok((number, answer))
    }

    /// The same, and waits for the answer: raw JSON. Whoever waits no longer takes the question back.
    pub(crate) async fn hear_for_ourselves(
        &self,
        of_request: &Arc<Outbox>,
        method: &str,
        params: &str,
    ) -> Result<Told, Unanswered> {
        let (number, answer) = self.ask_for_ourselves(of_request, method, params)?;
        let _withdrawn = Withdrawn { session: self, number };
        let (message, head) = answer.await.map_err(|_| Unanswered::HostGone)?;
        let payload = head.payload.unwrap_or_default();
        if let Kind::Result { .. } = head.kind {
            return Ok(Ok(message.slice(payload)));
        }
        let words = Members::find(&message, &payload, "message");
        let words = words.and_then(|words| string_value(&message[words]));
        Ok(Err(words.as_deref().unwrap_or("it failed").to_owned()))
    }

    /// Where a call's questions go: with its answer, unless its host takes nothing there but that.
    pub(crate) fn sink_for_questions(&self, of_call: &Arc<Outbox>) -> Arc<Outbox> {
        let of_call = of_call.whole().unwrap_or(of_call);
        Arc::clone(if of_call.takes_answers_only() { self.outbox() } else { of_call })
    }

    /// The host answers. Whatever was not asked, or is no longer, is ignored.
    pub(crate) fn replied(self: &Arc<Self>, message: Bytes, head: Head) {
        let (Kind::Result { id } | Kind::Error { id: Some(id) }) = &head.kind else { return };
        let number = std::str::from_utf8(&message[id.clone()]).ok().and_then(|id| id.parse().ok());
        let Some(number) = number.map(Ticket) else { return };
        let Some(Asked { asker, .. }) = self.lock().questions.remove(&number) else { return };
        match asker {
            Asker::Server(server) => {
                let (message, head) = tasks::own_words(message, head, &self.owner());
                self.gateway().servers.reply(&server, number, Reply::Response { message, head });
            }
            Asker::Round { call, key } => self.round_answered(call, key, &message, &head),
            Asker::Gateway(asker) => _ = asker.send((message, head)),
        }
    }

    /// Nobody wants to know any more.
    pub(crate) fn withdraw(&self, question: Ticket, notification: &Draft) {
        let asked = self.lock().questions.remove(&question);
        if let Some(asked) = asked {
            // The call on whose way it went may have ended before it.
            let sink = if asked.sink.is_closed() { self.outbox() } else { &asked.sink };
            sink.tell(notification.render(question.0).into());
        }
    }

    /// The call has ended on this side: the host need not answer what was asked for it alone.
    pub(crate) fn withdraw_all_of(&self, ticket: Ticket) {
        let mut state = self.lock();
        if state.questions.is_empty() {
            return;
        }
        let State { questions, calls, .. } = &mut *state;
        let goes_on = |call: &Ticket| *call != ticket && calls.contains_key(call);
        let ended = |asked: &Asked| asked.calls.contains(&ticket) && !asked.calls.iter().any(goes_on);
        let ended: Vec<_> = questions.extract_if(|_, asked| ended(asked)).collect();
        drop(state);
        for (number, asked) in ended {
            asked.sink.tell(respond::call_has_ended().render(number.0).into());
        }
    }

    /// The host is gone: whoever waits for its answers hears so.
    pub(crate) fn leave_unanswered(&self) {
        let questions = std::mem::take(&mut self.lock().questions);
        for (number, asked) in questions {
            if let Asker::Server(server) = asked.asker {
                self.gateway().servers.reply(&server, number, Reply::Refused(Unanswered::HostGone));
            }
        }
    }
}

/// A question that was answered is no longer there.
struct Withdrawn<'a> {
    session: &'a Session,
    number: Ticket,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.session.withdraw(self.number, &respond::not_needed());
    }
}
