//! The environment of a child: an allow-listed part of the gateway's, the configured variables, and our
//! marker.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

pub(super) const PATH: &str = "PATH";

/// The variable that every child and its descendants carry: the guard's helper finds strays by it.
pub(super) const MARKER: &str = "PLUGBAY_INSTANCE";

/// The variable that tells a child how many gateways are above it.
pub(super) const DEPTH: &str = "PLUGBAY_DEPTH";

/// Variables that every server inherits: addresses, folders and switches, but no token. All others may be
/// secrets.
#[rustfmt::skip]
const ALLOWED: &[&str] = &[
    PATH, "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "SHELL", "TZ", "__CF_USER_TEXT_ENCODING",
    // Behind a company's proxy nothing works without these.
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_USE_ENV_PROXY",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    // Agents, daemons and the desktop: sockets and files that the system itself protects.
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GIT_SSH", "GIT_SSH_COMMAND",
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST",
    "KUBECONFIG",
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "WSL_DISTRO_NAME", "WSL_INTEROP",
    // Where runtimes, packages and browsers are installed.
    "NVM_DIR", "FNM_DIR", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "ASDF_DIR", "ASDF_DATA_DIR",
    "MISE_DATA_DIR", "MISE_CONFIG_DIR", "PYENV_ROOT", "RBENV_ROOT", "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME",
    "RUSTUP_HOME", "NIX_PATH", "NIX_LD", "NIX_LD_LIBRARY_PATH", "PLAYWRIGHT_BROWSERS_PATH", "PUPPETEER_CACHE_DIR",
    "PUPPETEER_EXECUTABLE_PATH",
    // Caches and settings of npx, uvx and pipx.
    "npm_config_cache", "NPM_CONFIG_CACHE", "npm_config_userconfig", "NPM_CONFIG_USERCONFIG", "YARN_CACHE_FOLDER",
    "PIP_CONFIG_FILE", "PIP_CACHE_DIR", "PIP_CERT", "PIPX_HOME", "UV_CACHE_DIR", "UV_CONFIG_FILE", "UV_PYTHON",
    "UV_PYTHON_PREFERENCE", "UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "UV_OFFLINE",
    "UV_NATIVE_TLS", "UV_SYSTEM_CERTS",
];

/// Addresses of package registries. They may contain passwords, and are then not inherited.
#[rustfmt::skip]
const ALLOWED_ADDRESSES: &[&str] = &[
    "npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL",
    "UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "GOPROXY",
];

const ALLOWED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Without these, programs on Windows fail in strange ways.
const ALLOWED_ON_WINDOWS: &[&str] = &[
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "COMMONPROGRAMW6432",
    "COMPUTERNAME",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PUBLIC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

pub(super) fn for_child(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &BTreeMap<String, String>,
    instance: &str,
    depth: usize,
) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> =
        ours.into_iter().filter(|(name, value)| is_inherited(name, value)).collect();
    environment.extend(configured.iter().map(|(name, value)| (name.into(), value.into())));
    environment.insert(MARKER.into(), instance.into());
    environment.insert(DEPTH.into(), depth.to_string().into());
    environment
}

/// The part of an environment that servers inherit, and the number of gateways above them.
pub fn inherited(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().filter(|(name, value)| is_inherited(name, value) || name == DEPTH)
}

/// How many gateways are above the process that got this value.
pub(super) fn depth(given: Option<&OsStr>) -> usize {
    given.and_then(OsStr::to_str).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// Whether every server inherits this variable, without being named in the server's entry.
pub fn is_inherited(name: &OsStr, value: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    // Variable names on Windows are not case-sensitive.
    let is =
        |allowed: &&str| if cfg!(windows) { name.eq_ignore_ascii_case(allowed) } else { name == *allowed };
    let allowed = ALLOWED.iter().any(is)
        || cfg!(windows) && ALLOWED_ON_WINDOWS.iter().any(is)
        || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || ALLOWED_ADDRESSES.iter().any(is) && !may_hold_password(value);
    allowed && !is_shell_function(value)
}

/// Whether any of these addresses may contain a password. A query may hold a token.
fn may_hold_password(addresses: &OsStr) -> bool {
    let Some(addresses) = addresses.to_str() else { return true };
    let authority = |rest: &str| rest.split(['/', ' ', ',', '|']).next().is_some_and(|one| one.contains('@'));
    addresses.contains('?') || addresses.split("://").skip(1).any(authority)
}

/// Some shells execute such values as code.
fn is_shell_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_holds_allowed_and_configured_variables_and_the_marker() {
        let ours = [
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("LC_ALL", "C"),
            ("XDG_RUNTIME_DIR", "/run/me"),
            ("https_proxy", "http://proxy"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("PIP_INDEX_URL", "https://index.example/simple"),
            ("UV_INDEX", "one=https://one.example/simple two=https://me:secret@two.example/simple"),
            ("npm_config_registry", "https://registry.example/?token=secret"),
            ("NPM_CONFIG__AUTH", "secret"),
            ("UV_INDEX_ONE_PASSWORD", "secret"),
            ("GITHUB_TOKEN", "secret"),
            ("MY_PATH", "secret"),
            ("LCX", "secret"),
            ("SHELL", "() { :; }; echo"),
            ("PLUGBAY_INSTANCE", "of-an-outer-gateway"),
        ]
        .map(|(name, value)| (name.into(), value.into()));
        let configured = BTreeMap::from([("PATH".into(), "/opt/bin".into()), ("KEY".into(), "mine".into())]);

        let environment = for_child(ours, &configured, "id", 1);

        let expected = [
            ("HOME", "/home/me"),
            ("KEY", "mine"),
            ("LC_ALL", "C"),
            ("PATH", "/opt/bin"),
            ("PLUGBAY_DEPTH", "1"),
            ("PIP_INDEX_URL", "https://index.example/simple"),
            ("PLUGBAY_INSTANCE", "id"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("XDG_RUNTIME_DIR", "/run/me"),
            ("https_proxy", "http://proxy"),
        ];
        assert_eq!(environment, expected.map(|(name, value)| (name.into(), value.into())).into());
    }

    #[test]
    fn the_configuration_cannot_forge_the_marker_or_the_depth() {
        let configured = [MARKER, DEPTH].map(|name| (name.to_owned(), "0".to_owned())).into();

        let environment = for_child([], &configured, "id", 7);

        assert_eq!(environment, BTreeMap::from([(MARKER.into(), "id".into()), (DEPTH.into(), "7".into())]));
        assert_eq!(depth(environment.get(OsStr::new(DEPTH)).map(AsRef::as_ref)), 7);
        assert_eq!((depth(None), depth(Some("x".as_ref()))), (0, 0));
    }
}
