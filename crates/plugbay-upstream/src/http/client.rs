//! The HTTP client of one server: its headers, its certificates, its proxy.

use std::{sync::Once, time::Duration};

use plugbay_core::failure::Failure;
use reqwest::{
    Certificate, Client, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};

use super::remote;
use crate::spec::HttpSpec;

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// A remote that is away must not hold up its hosts: a call fails within 2 s.
const REMOTE_CONNECT_PATIENCE: Duration = Duration::from_millis(1800);
/// How long a connection to a remote may be silent before the system checks whether it is still alive.
const REMOTE_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long an unused connection is kept for the next request.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
const REDIRECTS: usize = 5;

pub(super) fn url(spec: &HttpSpec) -> Result<Url, Failure> {
    let url = Url::parse(&spec.url).map_err(|error| {
        Failure::new(format!("its address is not a URL: {error}"), Vec::new())
            .with_remedy("write \"url\" as https://HOST/PATH")
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        let what = format!("its address begins with \"{}:\", which is not HTTP", url.scheme());
        return Err(Failure::new(what, Vec::new()).with_remedy("write \"url\" as https://HOST/PATH"));
    }
    Ok(if spec.remote { remote::base(url) } else { url })
}

/// Builds the client. `session_id` names the hosts' session to a remote gateway.
pub(super) fn build(spec: &HttpSpec, url: &Url, session_id: Option<&str>) -> Result<Client, Failure> {
    install_crypto();
    let mut headers = headers(spec)?;
    if let Some(id) = session_id.and_then(|id| HeaderValue::from_str(id).ok())
        && !headers.contains_key(remote::SESSION_ID)
    {
        headers.insert(remote::SESSION_ID, id);
    }
    let connect_patience = if spec.remote { REMOTE_CONNECT_PATIENCE } else { CONNECT_PATIENCE };
    let mut builder = Client::builder()
        .user_agent(concat!("plugbay/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .connect_timeout(connect_patience)
        .pool_idle_timeout(KEEP_ALIVE)
        .redirect(same_origin());
    if spec.remote {
        builder = builder.tcp_keepalive(REMOTE_KEEP_ALIVE);
    }
    if is_loopback(url) {
        builder = builder.no_proxy(); // a proxy's loopback is not ours
    }
    if let Some(path) = &spec.ca_file {
        let broken = |why: String| {
            Failure::new(format!("its certificates in {} cannot be used: {why}", path.display()), Vec::new())
                .with_remedy("give a file with certificates in PEM as \"caFile\"")
        };
        let pem = plugbay_files::read(path, plugbay_files::LARGEST_CA_FILE)
            .map_err(|error| broken(error.to_string()))?;
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| broken(error.to_string()))?;
        builder = builder.tls_certs_merge(certificates);
    } else if url.scheme() == "http" {
        builder = builder.tls_certs_only([]); // not needed, and the system's are slow to read
    }
    builder.build().map_err(|error| Failure::new(format!("no HTTP client for it: {error}"), Vec::new()))
}

fn headers(spec: &HttpSpec) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in &spec.headers {
        let invalid = || {
            // The value is not shown: it may be a secret.
            Failure::new(format!("the header {name:?} in its configuration is not valid"), Vec::new())
                .with_remedy("use letters, digits and hyphens in its name, and no line breaks in its value")
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let mut value = HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.append(header, value);
    }
    Ok(headers)
}

/// Follows redirects only within the same origin: headers may hold credentials. Only 307 and 308 keep a POST;
/// other redirects would turn it into a GET without a body.
fn same_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let origin = attempt.previous().first().map(Url::origin);
        if attempt.previous().len() > REDIRECTS {
            attempt.error("it redirects without end")
        } else if matches!(attempt.status().as_u16(), 307 | 308)
            && origin.as_ref() == Some(&attempt.url().origin())
        {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
