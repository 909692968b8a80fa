//! URIs that more than one server has: shown with the server in front, so that each leads to one.

use std::borrow::Cow;

use crate::{apps::PAGE_SCHEME, name::ServerName};

/// `plugbay://{server}/{uri}`.
const MAPPED: &str = "plugbay://";
/// `ui://plugbay/{server}/{rest}` for `ui://{rest}`: the page of an app must keep its scheme.
const MAPPED_PAGE: &str = "ui://plugbay/";

pub(super) fn mapped(server: &ServerName, uri: &str) -> String {
    match uri.strip_prefix(PAGE_SCHEME) {
        Some(rest) => format!("{MAPPED_PAGE}{server}/{rest}"),
        None => format!("{MAPPED}{server}/{uri}"),
    }
}

/// The same for a skill and its files, whatever their scheme. The part in front is the same for all of them,
/// so relative references lead to the same server.
pub fn with_server(server: &ServerName, uri: &str) -> String {
    format!("{MAPPED}{server}/{uri}")
}

/// The part in front of the server's own URI in such a URI: `plugbay://{server}/`.
pub fn server_part(uri: &str) -> Option<&str> {
    let (server, own) = uri.strip_prefix(MAPPED)?.split_once('/')?;
    ServerName::parse(server).ok()?;
    Some(&uri[..uri.len() - own.len()])
}

/// The server and its own URI in a mapped one.
pub(super) fn unmapped(uri: &str) -> Option<(ServerName, Cow<'_, str>)> {
    let page = uri.strip_prefix(MAPPED_PAGE);
    let (server, rest) = page.or_else(|| uri.strip_prefix(MAPPED))?.split_once('/')?;
    let own = if page.is_some() { format!("{PAGE_SCHEME}{rest}").into() } else { rest.into() };
    Some((ServerName::parse(server).ok()?, own))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mapped_page_keeps_its_scheme() {
        let server = ServerName::parse("s").unwrap();
        assert_eq!(mapped(&server, "ui://app/main.html"), "ui://plugbay/s/app/main.html");
        assert_eq!(mapped(&server, "x://1"), "plugbay://s/x://1");
        for plain in
            ["ui://app/main.html", "ui://plugbay/", "ui://plugbay/s", "ui://plugbay/a b/x", "plugbay:s/x"]
        {
            assert_eq!(unmapped(plain), None, "{plain}");
        }
        assert_eq!(server_part(&with_server(&server, "skill://a/SKILL.md")), Some("plugbay://s/"));
        assert_eq!((server_part("skill://a/b"), server_part("ui://plugbay/s/x")), (None, None));
        // Page URIs from versions in which pages lost their scheme are still understood.
        assert_eq!(unmapped("plugbay://s/ui://x"), Some((server, "ui://x".into())));
    }

    proptest! {
        #[test]
        fn what_is_mapped_leads_back(server in "[a-z][a-z0-9-]{0,8}", uri in "(ui://|x:|plugbay://|ui://plugbay/)?.{0,20}") {
            let server = ServerName::parse(&server).unwrap();
            let shown = mapped(&server, &uri);
            prop_assert_eq!(unmapped(&shown), Some((server, uri.as_str().into())));
            prop_assert_eq!(shown.starts_with(PAGE_SCHEME), uri.starts_with(PAGE_SCHEME));
        }
    }
}
