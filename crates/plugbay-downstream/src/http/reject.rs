//! HTTP responses for requests that are rejected before dispatch.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{ALLOW, CONNECTION, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use plugbay_core::{access_token::TokenError, wire::Frame};

use super::{
    authorization::{Authorization, Fault},
    reply::{self, Body},
    tools_api::error::ApiError,
};
use crate::{refusal::Refusal, respond};

/// An HTTP response that rejects a request. Boxed: most requests are accepted, and should not carry room for
/// it.
pub(super) struct Rejection(Box<Rejected>);

struct Rejected {
    status: StatusCode,
    answer: Answer,
    headers: HeaderMap,
}

/// A JSON-RPC message, or a refusal that becomes one, or becomes an error of the plain API.
enum Answer {
    Written(Frame),
    /// The answer to the request of this raw id.
    Refusal {
        id: Bytes,
        refusal: Refusal,
    },
}

impl Rejection {
    /// The answer to the request of this raw id.
    pub(super) fn of(status: StatusCode, id: &[u8], refusal: &Refusal) -> Self {
        Self::made(status, Answer::Refusal { id: Bytes::copy_from_slice(id), refusal: refusal.clone() })
    }

    pub(super) fn with(status: StatusCode, answer: &Frame) -> Self {
        Self::made(status, Answer::Written(answer.clone()))
    }

    fn made(status: StatusCode, answer: Answer) -> Self {
        Self(Box::new(Rejected { status, answer, headers: HeaderMap::new() }))
    }

    pub(super) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self::of(status, b"null", &Refusal::Unacceptable(why.into()))
    }

    pub(super) fn unauthorized() -> Self {
        let why = "send the token of this gateway: \"Authorization: Bearer TOKEN\"";
        Self::new(StatusCode::UNAUTHORIZED, why)
            .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"plugbay\""))
    }

    pub(super) fn unknown_token() -> Self {
        let why = "this gateway does not know this token: it is wrong, or was revoked";
        let challenge = "Bearer realm=\"plugbay\", error=\"invalid_token\"";
        Self::new(StatusCode::UNAUTHORIZED, why).header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    pub(super) fn expired() -> Self {
        let why = "this token has expired; `plugbay token create` makes a new one";
        let challenge = "Bearer realm=\"plugbay\", error=\"invalid_token\", error_description=\"expired\"";
        Self::new(StatusCode::UNAUTHORIZED, why).header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// The rejection of a request without a valid token, where an authorization server issues them.
    pub(super) fn challenged(authorization: &Authorization, fault: &Fault<'_>) -> Self {
        let why: Cow<'static, str> = match fault {
            Fault::BadRequest(why) | Fault::BadToken(why) => (*why).into(),
            Fault::NoToken | Fault::MissingScope(_) => {
                "send an access token of the authorization server: \"Authorization: Bearer TOKEN\"".into()
            }
        };
        Self::new(StatusCode::UNAUTHORIZED, why).header(WWW_AUTHENTICATE, authorization.challenge(fault))
    }

    pub(super) fn of_access_token(authorization: &Authorization, error: TokenError) -> Self {
        match error {
            TokenError::Invalid(why) => Self::challenged(authorization, &Fault::BadToken(why)),
            // The token may be valid, so the host must not throw it away.
            TokenError::Unavailable => {
                let why = "the keys of the authorization server cannot be had at the moment";
                Self::busy(StatusCode::SERVICE_UNAVAILABLE, b"null", why)
            }
        }
    }

    /// The answer to a request whose access token lacks these scopes; `id` is raw.
    pub(super) fn missing_scope(authorization: Option<&Authorization>, id: &[u8], scope: &str) -> Self {
        let refusal = Refusal::MissingScope { scope: scope.to_owned() };
        let rejection = Self::of(StatusCode::FORBIDDEN, id, &refusal);
        match authorization {
            Some(authorization) => {
                let challenge = authorization.challenge(&Fault::MissingScope(scope));
                rejection.header(WWW_AUTHENTICATE, challenge)
            }
            None => rejection,
        }
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let why = format!("this address takes {allowed}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, why).header(ALLOW, HeaderValue::from_static(allowed))
    }

    /// The rejection of a request because the gateway, or this host, is too busy.
    pub(super) fn busy(status: StatusCode, id: &[u8], why: &'static str) -> Self {
        Self::of(status, id, &Refusal::Busy(why)).header(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Closes the connection: the rest of the host's request is not read.
    pub(super) fn closing(self) -> Self {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }

    fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// The response for MCP hosts.
    pub(super) fn into_response(self) -> Response<Body> {
        let Rejected { status, answer, headers } = *self.0;
        let message = match answer {
            Answer::Written(message) => message,
            Answer::Refusal { id, refusal } => respond::error(&id, &refusal),
        };
        let mut response = reply::json(status, &message);
        response.headers_mut().extend(headers);
        response
    }

    /// The response for clients of the plain API.
    pub(super) fn into_api_response(self) -> Response<Body> {
        let Rejected { status, answer, headers } = *self.0;
        let mut response = match answer {
            Answer::Written(message) => reply::json(status, &message),
            Answer::Refusal { refusal, .. } => ApiError::of_status(status, &refusal).into_response(),
        };
        response.headers_mut().extend(headers);
        response
    }
}
