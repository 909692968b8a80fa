//! The destination of a request: plugbay itself, or a server with the names to replace by the server's own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    name::ServerName,
    reference::Handle,
    surface::{BuiltinPrompt, BuiltinTool, Place, server_part},
    wire::Span,
};

use crate::tasks::Role;

/// The destination of a request.
pub(crate) enum Destination {
    Server(Route),
    Builtin(BuiltinTool),
    BuiltinPrompt(BuiltinPrompt),
    /// A server that is shown as one tool.
    Suite(ServerName),
    /// plugbay answers for a skill.
    Skill(SkillAnswer),
    /// No list has the skill or the file, but one of these servers may have it.
    Perhaps(Vec<ServerName>),
    /// A stored result, as a resource.
    Result(Handle),
}

/// How plugbay itself answers a request for a skill.
#[derive(Debug)]
pub(crate) enum SkillAnswer {
    /// For its own skill: the entry, the file, or the directory.
    Entry,
    File,
    Directory,
    /// A directory of a server that cannot list directories: a JSON array of its children.
    Children(Bytes),
}

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) server: ServerName,
    /// The part of the request that names its subject, and what replaces it.
    pub(crate) subject: Option<(Span, Bytes)>,
    pub(crate) role: Role,
    /// Set if the request calls a tool through `execute_tool` or a suite.
    pub(crate) inner: Option<InnerCall>,
}

/// A call that stands in the arguments of another one.
#[derive(Debug)]
pub(crate) struct InnerCall {
    /// Where the outer arguments stand, and the inner ones that replace them.
    pub(crate) arguments: (Span, Bytes),
    pub(crate) way: Way,
    /// A jq filter for the result.
    pub(crate) filter: Option<Arc<str>>,
    /// A timeout in place of the server's own.
    pub(crate) timeout: Option<Duration>,
    /// The repairs that were made: a member for the result's `_meta`.
    pub(crate) repairs: Option<Bytes>,
}

/// The tool in whose arguments a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// `execute_tool` or `execute_read_tool`.
    Execute,
    Suite,
    /// No outer tool: the arguments of a client of the plain API were repaired.
    Plain,
}

impl Route {
    pub(crate) fn to(place: Place, span: Span) -> Self {
        let subject = Some((span, place.quoted));
        Self { server: place.server, subject, role: Role::None, inner: None }
    }

    /// The same for the URI of a skill. If the host's URI contains the server's name, the URIs in
    /// the answer get it too.
    pub(crate) fn to_skill(place: Place, span: Span, uri: &str) -> Self {
        let role = server_part(uri).map_or(Role::None, |start| Role::Mapped(start.to_owned().into()));
        Self { role, ..Self::to(place, span) }
    }

    /// A route for a request that names nothing that the server has its own name for.
    pub(crate) fn to_server(server: &ServerName) -> Self {
        Self { server: server.clone(), subject: None, role: Role::None, inner: None }
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.inner.as_ref().and_then(|inner| inner.timeout)
    }
}

impl Destination {
    pub(crate) fn to(place: Place, span: Span) -> Self {
        Self::Server(Route::to(place, span))
    }
}
