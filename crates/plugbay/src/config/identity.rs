//! The identity of a launch, used as the name of its cache file.

use std::fmt::Write;

use plugbay_core::credentials::CredentialSource;
use plugbay_upstream::spec::{ServerSpec, Transport};
use sha2::{Digest, Sha256};

/// The identity: the same for the same launch in every run. It differs if anything differs that the server
/// can notice, or if its definitions are read differently. Its name and its timeouts do not count.
pub fn identity(spec: &ServerSpec) -> String {
    let count;
    let mut parts: Vec<&[u8]> = Vec::new();
    match &spec.transport {
        Transport::Stdio(stdio) => {
            count = stdio.args.len().to_string();
            parts.extend([b"stdio", stdio.command.as_bytes(), count.as_bytes()]);
            parts.extend(stdio.args.iter().map(String::as_bytes));
            parts.extend(stdio.cwd.as_ref().map(|cwd| cwd.as_os_str().as_encoded_bytes()));
            // Two parts for each variable, so that an absent folder cannot be confused with a variable.
            parts.extend(stdio.env.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
        }
        // With other credentials a server may have other tools.
        Transport::Http(http) => {
            parts.extend([b"http", http.url.as_bytes()]);
            parts.extend(http.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
            parts.extend(credentials(&http.credentials));
        }
    }

    // Its lists are kept unchanged, or without hidden characters.
    parts.extend((!spec.sanitize).then_some(&b"definitions as they came"[..]));

    let mut whole = Vec::new();
    for part in parts {
        // Lengths distinguish ["ab", "c"] from ["a", "bc"].
        whole.extend((part.len() as u64).to_le_bytes());
        whole.extend(part);
    }
    hex_digest(&whole)
}

/// The credentials, as far as they tell users apart. Header names have no spaces, so they cannot be confused
/// with these.
fn credentials(source: &CredentialSource) -> Vec<&[u8]> {
    match source {
        CredentialSource::Headers => Vec::new(),
        CredentialSource::OAuth(settings) => {
            let client = settings.client.as_ref().map(|client| client.id.as_bytes());
            let client = client.into_iter().flat_map(|id| [&b"login of client"[..], id]);
            let scopes =
                settings.scopes.iter().flatten().flat_map(|scope| [&b"scope of login"[..], scope.as_bytes()]);
            client.chain(scopes).collect()
        }
        CredentialSource::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.args).map(String::as_bytes);
            std::iter::once(&b"headers of command"[..]).chain(words).collect()
        }
        CredentialSource::File(path) => vec![b"headers of file", path.as_os_str().as_encoded_bytes()],
    }
}

pub fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}"); // a String takes everything
        hex
    })
}
