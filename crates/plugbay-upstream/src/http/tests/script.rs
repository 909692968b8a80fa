//! Scripted credentials: the test sets the token, and what a rejection leads to.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use plugbay_core::{
    credentials::{Credentials, Generation, Headers, Later, LoginOffer, Rejection, Target, Verdict},
    failure::{Cause, Failure},
    secret::Secret,
};
use tokio::sync::{Notify, watch};

pub(super) const LOGIN_URL: &str = "https://auth.example/authorize?state=1";

/// The credentials of one server.
#[derive(Debug)]
pub(super) struct Script {
    /// The token, and its generation.
    token: watch::Sender<(u64, Option<String>)>,
    on_rejection: OnRejection,
    pub(super) rejections: Mutex<Vec<Seen>>,
    /// How often headers were requested.
    pub(super) asked: AtomicUsize,
    pub(super) logins: AtomicUsize,
    /// Notified to make the current login fail.
    pub(super) login_fails: Notify,
}

/// The result of rejecting the current token. Rejecting an older one always leads to another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnRejection {
    /// A new token is there at once.
    Refresh,
    NeedsLogin,
    /// Headers cannot be had without a login, and each attempt finds new credentials that do not help either.
    NothingHelps,
    Final,
    NotOurs,
}

/// A rejection, as reported by plugbay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: u16,
    pub(super) challenges: Vec<String>,
    pub(super) nonce: Option<String>,
    pub(super) target: String,
    pub(super) attempts: u32,
}

impl Script {
    pub(super) fn new(on_rejection: OnRejection, token: Option<&str>) -> Arc<Self> {
        Arc::new(Self {
            token: watch::Sender::new((1, token.map(str::to_owned))),
            on_rejection,
            rejections: Mutex::default(),
            asked: AtomicUsize::new(0),
            logins: AtomicUsize::new(0),
            login_fails: Notify::new(),
        })
    }

    /// Sets a new token, as if the user had logged in.
    pub(super) fn set(&self, token: &str) {
        self.token.send_modify(|(generation, current)| {
            *generation += 1;
            *current = Some(token.to_owned());
        });
    }

    pub(super) fn logins(&self) -> usize {
        self.logins.load(Ordering::Relaxed)
    }

    pub(super) fn rejections(&self) -> Vec<Seen> {
        self.rejections.lock().unwrap().clone()
    }
}

fn failure() -> Arc<Failure> {
    let failure = Failure::new("needs a login at https://auth.example", Vec::new());
    Arc::new(failure.because(Cause::NeedsLogin).with_remedy("run `plugbay auth login s`"))
}

impl Credentials for Script {
    fn headers<'a>(&'a self, _: Target<'a>) -> Later<'a, Result<Headers, Arc<Failure>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.on_rejection == OnRejection::NothingHelps {
            self.set("other");
            return Box::pin(async { Err(failure()) });
        }
        let (generation, token) = self.token.borrow().clone();
        let values = token.map(|token| ("Authorization".to_owned(), Secret::new(format!("Bearer {token}"))));
        let headers = Headers { values: values.into_iter().collect(), generation: Generation(generation) };
        Box::pin(async move { Ok(headers) })
    }

    fn rejected<'a>(&'a self, rejection: Rejection<'a>) -> Later<'a, Verdict> {
        let Rejection { status, challenges, dpop_nonce: nonce, request, generation, attempts } = rejection;
        let target = format!("{} {}", request.method, request.url);
        self.rejections.lock().unwrap().push(Seen { status, challenges, nonce, target, attempts });
        let verdict = match self.on_rejection {
            OnRejection::NotOurs => Verdict::NotOurs,
            OnRejection::Final => Verdict::Final(Arc::new(Failure::new("has no use for us", Vec::new()))),
            _ if generation != self.generation() => Verdict::SendAgain,
            OnRejection::NeedsLogin | OnRejection::NothingHelps => Verdict::NeedsLogin(failure()),
            OnRejection::Refresh => {
                self.set(&format!("fresh-{}", self.generation().0));
                Verdict::SendAgain
            }
        };
        Box::pin(async move { verdict })
    }

    fn login(&self) -> Later<'_, Result<LoginOffer, Arc<Failure>>> {
        let number = self.logins.fetch_add(1, Ordering::Relaxed) + 1;
        let (url, id) = (LOGIN_URL.to_owned(), format!("login-{number}"));
        Box::pin(async move { Ok(LoginOffer { url, id, message: "Log in at auth.example".to_owned() }) })
    }

    fn login_failed<'a>(&'a self, _: &'a str) -> Later<'a, Arc<Failure>> {
        Box::pin(async move {
            self.login_fails.notified().await;
            Arc::new(
                Failure::new("needs a login, but the user said no", Vec::new()).because(Cause::NeedsLogin),
            )
        })
    }

    fn changed(&self, since: Generation) -> Later<'_, ()> {
        let mut token = self.token.subscribe();
        Box::pin(async move {
            let _ = token.wait_for(|(generation, _)| *generation != since.0).await;
        })
    }

    fn generation(&self) -> Generation {
        Generation(self.token.borrow().0)
    }
}
