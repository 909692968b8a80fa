//! The HTTP client for a model. Its key is sent only to the configured address.

use std::{net::IpAddr, sync::Once, time::Duration};

use plugbay_core::model::ModelError;
use reqwest::{Client, Url, redirect};

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn build(url: &Url) -> Result<Client, ModelError> {
    install_crypto();
    let mut builder = Client::builder()
        .user_agent(concat!("plugbay/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_PATIENCE)
        .redirect(redirect::Policy::none());
    if is_loopback(url) {
        builder = builder.no_proxy(); // a proxy's loopback is not ours
    }
    if url.scheme() == "http" {
        builder = builder.tls_certs_only([]); // not needed, and the system's are slow to read
    }
    builder.build().map_err(|error| unreachable(&error))
}

/// The innermost error, without the URL, which may hold a secret.
pub(crate) fn unreachable(error: &(dyn std::error::Error + 'static)) -> ModelError {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    ModelError::Unreachable(innermost.to_string())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let by_name = host == "localhost" || host.ends_with(".localhost");
    by_name || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
