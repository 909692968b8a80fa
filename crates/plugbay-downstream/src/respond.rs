//! The messages that plugbay writes to hosts itself: results, errors, notifications, requests.

use std::{collections::BTreeMap, fmt::Write as _};

use bytes::{BufMut, BytesMut};
use plugbay_core::{
    catalog::{Catalog, ServerCapabilities},
    era::{self, Era},
    exchange::{ServerRequest, Ticket},
    extension::Extensions,
    failure::CallError,
    name::ServerName,
    skill,
    surface::{SkillPage, Snapshot},
    wire::{self, Draft, Frame, Head, Members, Span, write},
};
use serde_json::{Map, Value, json};

use crate::{
    lists::{Kind, ListFilter},
    refusal::Refusal,
    subscriptions::ItemSubscription,
};

/// The error response to a request; `id` is raw JSON, `null` if none could be read.
pub(crate) fn error(id: &[u8], refusal: &Refusal) -> Frame {
    let mut error = json!({ "code": refusal.code(), "message": refusal.message() });
    if let Some(data) = refusal.data() {
        error["data"] = data;
    }
    write::error(id, error.to_string().as_bytes()).into()
}

/// The error code in a message, if the message is an error.
pub(crate) fn error_code(message: &[u8]) -> Option<i64> {
    let head = Head::read(message).ok()?;
    let wire::Kind::Error { .. } = head.kind else { return None };
    let code = Members::find(message, &head.payload?, "code")?;
    std::str::from_utf8(&message[code]).ok()?.parse().ok()
}

/// A result by plugbay itself; in the modern era with the members that every result needs.
pub(crate) fn result(id: &[u8], era: Era, mut result: Value) -> Frame {
    if era == Era::Modern {
        result["resultType"] = "complete".into();
        result["_meta"][era::SERVER_INFO_KEY] = server_info();
    }
    write::result(id, result.to_string().as_bytes()).into()
}

/// The result of `initialize`. `alone`: no other host shares the servers.
pub(crate) fn initialize(
    id: &[u8],
    version: &str,
    snapshot: &Snapshot,
    instructions: &str,
    alone: bool,
) -> Frame {
    let mut capabilities = capabilities(snapshot);
    let (able, possible) = (task_capabilities(&snapshot.catalog, Era::Legacy), !snapshot.settled);
    if version == era::TASKS_VERSION && (able.tasks || possible) {
        capabilities["tasks"] = json!({ "requests": { "tools": { "call": {} } } });
        if able.tasks_cancel || possible {
            capabilities["tasks"]["cancel"] = json!({});
        }
        if alone && (able.tasks_list || possible) {
            capabilities["tasks"]["list"] = json!({});
        }
    }
    let capabilities = extensions(snapshot).added_to(capabilities.to_string());
    let (info, instructions) = (server_info(), written(instructions));
    let result = format!(
        r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"serverInfo":{info}{instructions}}}"#
    );
    write::result(id, result.as_bytes()).into()
}

/// The `instructions` member with a comma in front; empty if there are none.
fn written(instructions: &str) -> String {
    if instructions.is_empty() {
        String::new()
    } else {
        format!(r#","instructions":{}"#, json!(instructions))
    }
}

pub(crate) fn discover(id: &[u8], snapshot: &Snapshot, instructions: &str) -> Frame {
    let legacy = era::LEGACY_VERSIONS.into_iter().rev();
    let versions: Vec<_> = [era::MODERN_VERSION].into_iter().chain(legacy).collect();
    let mut extensions = extensions(snapshot);
    if task_capabilities(&snapshot.catalog, Era::Modern).tasks || !snapshot.settled {
        extensions = extensions.with_tasks();
    }
    let capabilities = extensions.added_to(capabilities(snapshot).to_string());
    let (versions, instructions) = (json!(versions), written(instructions));
    let meta = json!({ era::SERVER_INFO_KEY: server_info() });
    let result = format!(
        r#"{{"resultType":"complete","supportedVersions":{versions},"capabilities":{capabilities}{instructions},"ttlMs":0,"cacheScope":"private","_meta":{meta}}}"#
    );
    write::result(id, result.as_bytes()).into()
}

/// The extensions of all servers. Skills are declared as far as plugbay answers requests for them.
fn extensions(snapshot: &Snapshot) -> Extensions {
    snapshot.resources.extensions.clone().with(skill::EXTENSION, snapshot.skills_declaration())
}

/// The task capabilities of all servers of an era.
fn task_capabilities(catalog: &Catalog, era: Era) -> ServerCapabilities {
    let of_era = catalog.iter().filter(|(_, entry)| entry.offer.dialect.era == era);
    of_era.fold(ServerCapabilities::default(), |all, (_, entry)| all.or(entry.offer.capabilities))
}

/// The capabilities of all servers. Servers that have not listed yet may have any.
fn capabilities(snapshot: &Snapshot) -> Value {
    let able = snapshot.resources.capabilities;
    let possible = |able: bool| able || !snapshot.settled;
    let mut capabilities = json!({ "tools": { "listChanged": true } });
    if possible(able.resources) || snapshot.has_skills() {
        capabilities["resources"] = json!({ "listChanged": true, "subscribe": possible(able.subscribe) });
    }
    if possible(able.prompts) || snapshot.listing.has_own_prompts() {
        capabilities["prompts"] = json!({ "listChanged": true });
    }
    if possible(able.logging) {
        capabilities["logging"] = json!({});
    }
    if possible(able.completions) || snapshot.listing.has_own_prompts() {
        capabilities["completions"] = json!({});
    }
    capabilities
}

/// The result with a list, exactly as it is in the snapshot: definitions are never rebuilt.
pub(crate) fn list(id: &[u8], era: Era, key: &str, definitions: &[u8]) -> Frame {
    let mut body = BytesMut::with_capacity(definitions.len() + 200);
    body.put_slice(format!("{{\"{key}\":").as_bytes());
    body.put_slice(definitions);
    if era == Era::Modern {
        let meta = json!({ era::SERVER_INFO_KEY: server_info() });
        let rest = format!(r#"{CACHEABLE},"_meta":{meta}"#);
        body.put_slice(rest.as_bytes());
    }
    body.put_u8(b'}');
    write::result(id, &body).into()
}

/// A page of skills. `unlisted` are the servers whose skills are unknown, with the reasons.
pub(crate) fn skills(id: &[u8], era: Era, page: &SkillPage, unlisted: &BTreeMap<String, String>) -> Frame {
    let mut rest = String::new();
    if let Some(next) = &page.next {
        let _ = write!(rest, r#","nextCursor":{}"#, json!(next));
    }
    let mut meta = Map::new();
    if era == Era::Modern {
        rest.push_str(CACHEABLE);
        meta.insert(era::SERVER_INFO_KEY.to_owned(), server_info());
    }
    if !unlisted.is_empty() {
        meta.insert(UNLISTED_KEY.to_owned(), json!(unlisted));
    }
    if !meta.is_empty() {
        let _ = write!(rest, r#","_meta":{}"#, json!(meta));
    }
    let body = [br#"{"skills":"#, &page.skills[..], rest.as_bytes(), b"}"].concat();
    write::result(id, &body).into()
}

/// A result by plugbay of a kind that modern hosts may cache; its `ttlMs` of 0 asks them not to keep this one.
/// `members` is raw JSON without braces.
pub(crate) fn cacheable(id: &[u8], era: Era, members: &str) -> Frame {
    let rest = match era {
        Era::Legacy => String::new(),
        Era::Modern => format!(r#"{CACHEABLE},"_meta":{}"#, json!({ era::SERVER_INFO_KEY: server_info() })),
    };
    write::result(id, format!("{{{members}{rest}}}").as_bytes()).into()
}

/// Cache members of a modern result. The time is zero: changes are notified at once, and asking costs
/// nothing.
const CACHEABLE: &str = r#","resultType":"complete","ttlMs":0,"cacheScope":"private""#;
/// The key under which a page names the servers that are missing.
const UNLISTED_KEY: &str = "plugbay/unlisted";

/// A log message by plugbay: the host did not read this many messages in time.
pub(crate) fn dropped(count: u64) -> Frame {
    let data = format!("{count} messages were dropped, because the host did not read them in time");
    let params = json!({ "level": "warning", "logger": "plugbay", "data": data }).to_string();
    write::notification("notifications/message", Some(params.as_bytes())).into()
}

/// A progress notification by plugbay; `token` is raw JSON.
pub(crate) fn progress(token: &[u8], done: usize, total: Option<usize>, message: &str) -> Frame {
    let total = total.map(|total| format!(r#""total":{total},"#)).unwrap_or_default();
    let message = Value::from(message);
    let token = String::from_utf8_lossy(token);
    let params = format!(r#"{{"progressToken":{token},"progress":{done},{total}"message":{message}}}"#);
    write::notification("notifications/progress", Some(params.as_bytes())).into()
}

/// An empty page of tasks for a server that failed, with the cursor of the next page.
pub(crate) fn unlisted(id: &[u8], next: &str, server: &ServerName, error: &CallError) -> Frame {
    let meta = json!({ UNLISTED_KEY: { server.as_str(): error.to_string() } });
    let page = json!({ "tasks": [], "nextCursor": next, "_meta": meta });
    write::result(id, page.to_string().as_bytes()).into()
}

/// The result of a built-in tool.
pub(crate) fn tool_text(id: &[u8], era: Era, text: &str, failed: bool) -> Frame {
    let mut body = json!({ "content": [{ "type": "text", "text": text }] });
    if failed {
        body["isError"] = true.into();
    }
    result(id, era, body)
}

/// The same with more than text: `content` is raw JSON, a list of blocks.
pub(crate) fn tool_content(id: &[u8], era: Era, content: &str, failed: bool) -> Frame {
    let failed = if failed { r#","isError":true"# } else { "" };
    let modern = match era {
        Era::Legacy => String::new(),
        Era::Modern => {
            let meta = json!({ era::SERVER_INFO_KEY: server_info() });
            format!(r#","resultType":"complete","_meta":{meta}"#)
        }
    };
    write::result(id, format!(r#"{{"content":{content}{failed}{modern}}}"#).as_bytes()).into()
}

/// A `list_changed` notification. `subscription` is the raw id of the `subscriptions/listen` request behind
/// it.
pub(crate) fn list_changed(kind: Kind, subscription: Option<&[u8]>) -> Frame {
    notification(kind.changed_method(), subscription, "")
}

pub(crate) fn acknowledged(subscription: &[u8], wanted: ListFilter, items: &[ItemSubscription]) -> Frame {
    let granted = Kind::NAMED.into_iter().filter(|kind| wanted.has(*kind));
    let mut granted: Vec<String> = granted.map(|kind| format!("\"{}\":true", kind.filter_key())).collect();
    let (tasks, resources): (Vec<_>, Vec<_>) = items.iter().partition(|one| one.is_task());
    for (key, granted_here) in [("resourceSubscriptions", resources), ("taskIds", tasks)] {
        let shown: Vec<_> = granted_here.iter().map(|one| String::from_utf8_lossy(one.shown())).collect();
        if !shown.is_empty() {
            granted.push(format!("\"{key}\":[{}]", shown.join(",")));
        }
    }
    let granted = format!(r#","notifications":{{{}}}"#, granted.join(","));
    notification("notifications/subscriptions/acknowledged", Some(subscription), &granted)
}

/// The graceful end of a subscription.
pub(crate) fn subscription_ended(id: &[u8]) -> Frame {
    let meta = subscription_meta(id);
    write::result(id, format!(r#"{{"resultType":"complete",{meta}}}"#).as_bytes()).into()
}

/// The cancellation of a call whose host cannot send one any more.
pub(crate) fn host_has_gone() -> Draft {
    write::cancellation("the host has closed its connection")
}

/// The cancellation of a server request whose call has ended.
pub(crate) fn call_has_ended() -> Draft {
    write::cancellation("the call has ended")
}

/// The cancellation of a request by plugbay.
pub(crate) fn not_needed() -> Draft {
    write::cancellation("the answer is not needed any more")
}

/// A request by plugbay to a legacy host; `params` is raw JSON.
pub(crate) fn gateway_request(number: Ticket, method: &str, params: &str) -> Frame {
    Frame::from(write::request(number.0.to_string().as_bytes(), method, params.as_bytes()))
}

/// The `inputRequests` of a legacy server for a modern host: keyed by ticket, method and params unchanged.
pub(crate) fn input_requests<'a>(server_requests: impl Iterator<Item = &'a ServerRequest>) -> String {
    let entries = server_requests.map(|server_request| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let params = server_request.params().map(|params| &server_request.message[params.clone()]);
        let params = params.map(|params| format!(r#","params":{}"#, text(params))).unwrap_or_default();
        format!(r#""{}":{{"method":"{}"{params}}}"#, server_request.number.0, text(server_request.method()))
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// The `inputRequests` with one request by plugbay; `params` is raw JSON.
pub(crate) fn input_request(number: Ticket, method: &str, params: &str) -> String {
    format!(r#"{{"{}":{{"method":"{method}","params":{params}}}}}"#, number.0)
}

/// An `input_required` result for URL elicitations. It has no state: the server keeps nothing of the call, so
/// the next request is a new call.
pub(crate) fn url_elicitation_required(id: &[u8], message: &[u8], elicitations: &[Span]) -> Frame {
    let entries = elicitations.iter().enumerate().map(|(number, elicitation)| {
        let params = String::from_utf8_lossy(&message[elicitation.clone()]);
        format!(r#""{number}":{{"method":"elicitation/create","params":{params}}}"#)
    });
    let (entries, meta) =
        (entries.collect::<Vec<_>>().join(","), json!({ era::SERVER_INFO_KEY: server_info() }));
    let result = format!(r#"{{"resultType":"input_required","inputRequests":{{{entries}}},"_meta":{meta}}}"#);
    write::result(id, result.as_bytes()).into()
}

/// `requests` is raw JSON.
pub(crate) fn input_required(id: &[u8], requests: &str, state: &str) -> Frame {
    let (state, meta) = (json!(state), json!({ era::SERVER_INFO_KEY: server_info() }));
    let result = format!(
        r#"{{"resultType":"input_required","inputRequests":{requests},"requestState":{state},"_meta":{meta}}}"#
    );
    write::result(id, result.as_bytes()).into()
}

fn server_info() -> Value {
    json!({ "name": "plugbay", "title": "plugbay", "version": env!("CARGO_PKG_VERSION") })
}

fn notification(method: &str, subscription: Option<&[u8]>, rest: &str) -> Frame {
    let params = subscription.map(|id| format!("{{{}{rest}}}", subscription_meta(id)));
    Frame::from(write::notification(method, params.as_deref().map(str::as_bytes)))
}

fn subscription_meta(id: &[u8]) -> String {
    format!(r#""_meta":{{"{}":{}}}"#, era::SUBSCRIPTION_KEY, String::from_utf8_lossy(id))
}
