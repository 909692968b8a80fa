//! Reads a request body: of limited size, in limited time, as one line of text.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{
    StatusCode,
    body::{Body as _, Incoming},
};
use plugbay_core::wire::{Fault, Head, Malformed};
use tokio::time::timeout;

use super::{Shared, access::Caller, reject::Rejection};
use crate::{
    budget::{Budget, Reservation},
    message::LONG,
    refusal::Refusal,
};

/// Time limit for a whole body, however slowly it arrives.
const TIME: Duration = Duration::from_secs(60);

/// How much of a body that is too long is still read, as a multiple of the limit.
const DISCARDED: usize = 4;

/// Reads a body. Its bytes count among those of the caller, for as long as they live.
pub(super) async fn read(shared: &Shared, caller: &Caller, body: Incoming) -> Result<Bytes, Rejection> {
    let budget = caller.share().memory.session();
    let mut held = budget.reserve(0);
    let Ok(bytes) = timeout(TIME, collect(shared, caller, body, (&budget, &mut held))).await else {
        let why = "the body of the request took too long";
        return Err(Rejection::new(StatusCode::REQUEST_TIMEOUT, why).closing());
    };
    let bytes = bytes?;
    let line = if bytes.len() <= LONG {
        one_line(bytes)
    } else {
        let working = shared.gateway.workers.run(caller.owner(), move || one_line(bytes));
        working.await.unwrap_or(Err(Fault::Utf8))
    };
    let bytes = line.map_err(|fault| malformed(StatusCode::BAD_REQUEST, fault))?;
    Ok(held.around(bytes))
}

async fn collect(
    shared: &Shared,
    caller: &Caller,
    mut body: Incoming,
    (budget, held): (&Budget, &mut Reservation),
) -> Result<BytesMut, Rejection> {
    let limit = shared.gateway.settings().message_limit;
    let too_long = || malformed(StatusCode::PAYLOAD_TOO_LARGE, Fault::TooLong(limit)).closing();
    if body.size_hint().lower() > limit as u64 {
        discard(body, limit).await;
        return Err(too_long());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let broken =
            |_| Rejection::new(StatusCode::BAD_REQUEST, "the body of the request is broken").closing();
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            discard(body, limit).await;
            return Err(too_long());
        }
        if !budget.has_room_for(data.len()) {
            let why = "this caller leaves too much unread, or has too many bytes of requests in flight";
            return Err(caller.share().reject(b"null", why).closing());
        }
        held.grow(data.len());
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Reads on for a while: most hosts write their whole request before they read. Otherwise they would see a
/// broken connection instead of the answer.
async fn discard(mut body: Incoming, limit: usize) {
    let mut rest = limit.saturating_mul(DISCARDED);
    if body.size_hint().lower() > rest as u64 {
        return;
    }
    while let Some(Ok(frame)) = body.frame().await {
        let Some(less) = rest.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
        rest = less;
    }
}

/// Replaces line breaks by spaces, because for most servers a line break ends a message. Inside a string a
/// line break is an error, which must be found before it is replaced.
fn one_line(mut bytes: BytesMut) -> Result<Bytes, Fault> {
    simdutf8::basic::from_utf8(&bytes).map_err(|_| Fault::Utf8)?;
    if memchr::memchr2(b'\n', b'\r', &bytes).is_some() {
        if let Err(Malformed { fault: fault @ Fault::Json(_), .. }) = Head::read(&bytes) {
            return Err(fault);
        }
        bytes.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
    Ok(bytes.freeze())
}

fn malformed(status: StatusCode, fault: Fault) -> Rejection {
    Rejection::of(status, b"null", &Refusal::Malformed(Malformed::from(fault)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_body_becomes_one_line() {
        let line = |text: &[u8]| one_line(BytesMut::from(text));
        assert_eq!(line(b"{\n\t\"jsonrpc\":\r\n\"2.0\"}").unwrap(), "{ \t\"jsonrpc\":  \"2.0\"}");
        assert!(matches!(line(b"{\"jsonrpc\":\"2\n0\"}"), Err(Fault::Json(_))));
        assert!(matches!(line(b"{\"\xff\"}"), Err(Fault::Utf8)));
    }
}
