//! The scopes that a login asks for.

/// The scope for a refresh token, at servers that follow OpenID Connect.
const OFFLINE_ACCESS: &str = "offline_access";

/// The sources of scopes.
#[derive(Debug, Clone, Default)]
pub struct ScopeSources<'a> {
    /// The scopes in the user's configuration, which override all others.
    pub configured: Option<&'a [String]>,
    /// The scopes in the challenge.
    pub challenge: Option<&'a [String]>,
    /// The scopes that the MCP server supports.
    pub resource: Option<&'a [String]>,
    /// The scopes that the authorization server supports.
    pub server: Option<&'a [String]>,
    /// The scopes asked for before, which a step-up must not lose.
    pub before: &'a [String],
}

/// The scopes to ask for; if empty, the authorization server decides.
pub fn select(sources: &ScopeSources<'_>) -> Vec<String> {
    let mut scopes: Vec<String> = sources.before.to_vec();
    let mut add = |more: &[String]| {
        for scope in more {
            if is_scope(scope) && !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
    };
    match (sources.configured, sources.challenge, sources.resource) {
        (Some(configured), challenge, _) => {
            add(configured);
            // In a step-up the server names what the current request needs.
            add(challenge.filter(|_| !sources.before.is_empty()).unwrap_or_default());
        }
        (None, Some(challenge), _) => add(challenge),
        (None, None, Some(resource)) if sources.before.is_empty() => add(resource),
        (None, None, _) => {}
    }
    let offline = sources.server.is_some_and(|known| known.iter().any(|scope| scope == OFFLINE_ACCESS));
    if offline && sources.configured.is_none() {
        add(&[OFFLINE_ACCESS.to_owned()]);
    }
    scopes
}

/// Whether all of these are among the granted ones.
pub fn covers(granted: &[String], needed: &[String]) -> bool {
    needed.iter().all(|scope| granted.contains(scope))
}

/// Whether the text has only the characters of RFC 6749.
fn is_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn check(
        configured: Option<&str>,
        challenge: Option<&str>,
        resource: Option<&str>,
        server: &str,
        before: &str,
    ) -> String {
        let [configured, challenge, resource] = [configured, challenge, resource].map(|text| text.map(list));
        let (server, before) = (list(server), list(before));
        let sources = ScopeSources {
            configured: configured.as_deref(),
            challenge: challenge.as_deref(),
            resource: resource.as_deref(),
            server: Some(&server),
            before: &before,
        };
        select(&sources).join(" ")
    }

    #[test]
    fn scopes_come_from_the_challenge_then_from_the_resource() {
        assert_eq!(check(None, Some("a"), Some("a b c"), "", ""), "a");
        assert_eq!(check(None, None, Some("a b"), "", ""), "a b");
        assert_eq!(check(None, None, None, "x y", ""), "");
        assert_eq!(check(Some("mine"), Some("a"), Some("b"), "", ""), "mine");
    }

    #[test]
    fn offline_access_is_asked_for_where_the_authorization_server_knows_it() {
        assert_eq!(check(None, Some("a"), None, "a offline_access", ""), "a offline_access");
        assert_eq!(check(None, None, None, "offline_access", ""), "offline_access");
        assert_eq!(
            check(Some("mine"), None, None, "offline_access", ""),
            "mine",
            "the user said what to ask for"
        );
    }

    #[test]
    fn a_step_up_keeps_the_scopes_of_before() {
        assert_eq!(check(None, Some("write"), Some("all"), "", "read"), "read write");
        assert_eq!(check(Some("mine"), Some("write"), None, "", "mine"), "mine write");
        assert_eq!(check(None, Some("re\"ad ok"), None, "", ""), "ok", "no scope has a quote");
    }
}
