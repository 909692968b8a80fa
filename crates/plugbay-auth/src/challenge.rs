//! Parses `WWW-Authenticate`: the demands of a server that rejects a request.

use std::collections::BTreeMap;

/// Longer headers are not parsed.
const LONGEST: usize = 8 * 1024;

/// One challenge of a `WWW-Authenticate` header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge {
    /// The scheme, in lower case.
    pub scheme: String,
    /// Values by their names in lower case. If a name is repeated, the first value counts.
    pub parameters: BTreeMap<String, String>,
}

impl Challenge {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Its `scope`, as a list.
    pub fn scopes(&self) -> Option<Vec<String>> {
        self.get("scope").map(|scopes| scopes.split_whitespace().map(str::to_owned).collect())
    }
}

/// The challenge that OAuth tokens can meet: the first one with `Bearer` or `DPoP`.
pub fn of_oauth<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Challenge> {
    let mut challenges = headers.into_iter().flat_map(parse);
    challenges.find(|challenge| matches!(challenge.scheme.as_str(), "bearer" | "dpop"))
}

/// All challenges in one header. Malformed text ends the list.
pub fn parse(header: &str) -> Vec<Challenge> {
    let mut challenges: Vec<Challenge> = Vec::new();
    if header.len() > LONGEST {
        return challenges;
    }
    let mut rest = header.trim_start_matches([' ', '\t', ',']);
    while let Some((word, after)) = token(rest) {
        let after_space = after.trim_start_matches([' ', '\t']);
        // A name with `=` is a parameter of the previous challenge, unless it is the padding of a `token68`.
        let value =
            after_space.strip_prefix('=').filter(|value| !value.starts_with(['=', ',']) && !value.is_empty());
        match (value, challenges.last_mut()) {
            (Some(value), Some(challenge)) => {
                let Some((value, after)) = quoted(value.trim_start_matches([' ', '\t'])) else { break };
                challenge.parameters.entry(word.to_ascii_lowercase()).or_insert(value);
                rest = after;
            }
            (Some(_), None) => break,
            (None, _) => {
                challenges.push(Challenge { scheme: word.to_ascii_lowercase(), ..Challenge::default() });
                rest = without_token68(after_space);
            }
        }
        rest = rest.trim_start_matches([' ', '\t', ',']);
    }
    challenges
}

fn token(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// A value, with quotes or without.
fn quoted(text: &str) -> Option<(String, &str)> {
    let Some(inner) = text.strip_prefix('"') else {
        // Some servers omit the quotes around URLs and lists.
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_owned(), &text[end..]));
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((value, &inner[at + 1..])),
            c => value.push(c),
        }
    }
    None
}

/// Skips the text that schemes such as `Negotiate` have in place of parameters.
fn without_token68(text: &str) -> &str {
    let is_token68 = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
    let end = text.find(|c| !is_token68(c)).unwrap_or(text.len());
    let padding = text[end..].len() - text[end..].trim_start_matches('=').len();
    let after = &text[end + padding..];
    let whole = end > 0 && (after.is_empty() || after.trim_start().starts_with(','));
    if whole { after } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, expected: &[(&str, &[(&str, &str)])]) {
        let expected: Vec<Challenge> = expected
            .iter()
            .map(|(scheme, parameters)| Challenge {
                scheme: (*scheme).to_owned(),
                parameters: parameters.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            })
            .collect();
        assert_eq!(parse(header), expected, "{header}");
    }

    #[test]
    fn www_authenticate_headers_are_read_as_servers_write_them() {
        check("Bearer", &[("bearer", &[])]);
        check("", &[]);
        check("Bearer realm=\"x\"", &[("bearer", &[("realm", "x")])]);
        check(
            r#"Bearer resource_metadata="https://a/x", scope="a b""#,
            &[("bearer", &[("resource_metadata", "https://a/x"), ("scope", "a b")])],
        );
        check(
            r#"BEARER error="insufficient_scope" ,Scope = "x:y z",  error_description="say \"hi\", then""#,
            &[(
                "bearer",
                &[
                    ("error", "insufficient_scope"),
                    ("scope", "x:y z"),
                    ("error_description", "say \"hi\", then"),
                ],
            )],
        );
        check(
            r#"Negotiate abc==, Basic realm="r", DPoP algs="ES256", Bearer scope=a"#,
            &[
                ("negotiate", &[]),
                ("basic", &[("realm", "r")]),
                ("dpop", &[("algs", "ES256")]),
                ("bearer", &[("scope", "a")]),
            ],
        );
        check(
            "Bearer resource_metadata=https://a/b?c, error=invalid_token",
            &[("bearer", &[("resource_metadata", "https://a/b?c"), ("error", "invalid_token")])],
        );
        check(r#"Bearer scope="a", scope="b""#, &[("bearer", &[("scope", "a")])]);
        check(r#"Bearer scope="never closed"#, &[("bearer", &[])]);
        check(r#"realm="no scheme""#, &[]);
        check(&format!("Bearer scope=\"{}\"", "x".repeat(9000)), &[]);
    }

    #[test]
    fn the_challenge_of_oauth_is_found_among_others() {
        let found = of_oauth([r#"Basic realm="x""#, r#"Bearer scope="a  b""#]).unwrap();
        assert_eq!(found.scopes().unwrap(), ["a", "b"]);
        assert!(of_oauth(["Basic realm=\"x\""]).is_none());
    }
}
