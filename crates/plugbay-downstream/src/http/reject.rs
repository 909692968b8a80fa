//! HTTP responses for requests that are rejected before dispatch.

use std::borrow::Cow;

use hyper::{
    Response, StatusCode,
    header::{ALLOW, CONNECTION, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use plugbay_core::wire::Frame;

use super::reply::{self, Body};
use crate::{refusal::Refusal, respond};

/// Boxed: most requests are let in, and should not carry the room for this along.
pub(super) struct Rejection(Box<Response<Body>>);

impl Rejection {
    /// The answer to a request of this raw id.
    pub(super) fn of(status: StatusCode, id: &[u8], refusal: &Refusal) -> Self {
        Self::with(status, &respond::error(id, refusal))
    }

    pub(super) fn with(status: StatusCode, answer: &Frame) -> Self {
        Self(Box::new(reply::json(status, answer)))
    }

    pub(super) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self::of(status, b"null", &Refusal::Unacceptable(why.into()))
    }

    pub(super) fn unauthorized() -> Self {
        let why = "send the token of this gateway: \"Authorization: Bearer TOKEN\"";
        Self::new(StatusCode::UNAUTHORIZED, why)
            .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"plugbay\""))
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let why = format!("this address takes {allowed}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, why).header(ALLOW, HeaderValue::from_static(allowed))
    }

    /// Too much is going on, here or for this host alone.
    pub(super) fn busy(status: StatusCode, id: &[u8], why: &'static str) -> Self {
        Self::of(status, id, &Refusal::Busy(why)).header(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// The rest of what the host is sending is not read.
    pub(super) fn closing(self) -> Self {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }

    fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers_mut().insert(name, value);
        self
    }

    pub(super) fn into_response(self) -> Response<Body> {
        *self.0
    }
}
