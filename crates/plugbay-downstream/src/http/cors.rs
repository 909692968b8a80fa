//! CORS headers for trusted origins.

use hyper::{
    HeaderMap, Method, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
    },
};

use super::reply::{self, Body};

/// The checked origin of a browser's request; other clients send none.
pub(super) struct Cors(Option<HeaderValue>);

impl Cors {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        Self(headers.get(ORIGIN).cloned())
    }

    /// The response to a preflight request, which comes without a token.
    pub(super) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
        let asked = method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !asked || self.0.is_none() {
            return None;
        }
        let mut response = reply::empty(StatusCode::NO_CONTENT);
        let ours = response.headers_mut();
        ours.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
        ours.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        // A tool's arguments may be repeated in headers of any name, so there is no fixed list.
        if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            ours.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        Some(response)
    }

    pub(super) fn allow(self, mut response: Response<Body>) -> Response<Body> {
        if let Some(origin) = self.0 {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(
                ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static("Mcp-Session-Id, ETag, Retry-After, WWW-Authenticate"),
            );
            headers.insert(VARY, HeaderValue::from_static("Origin"));
        }
        response
    }
}
