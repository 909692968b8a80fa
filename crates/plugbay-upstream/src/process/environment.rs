//! The environment of a child: an allow-listed part of the gateway's, configured variables, our marker.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

pub(super) const PATH: &str = "PATH";

/// Carried by every child and whatever it starts: how the guard's helper finds strays.
pub(super) const MARKER: &str = "PLUGBAY_INSTANCE";

/// Tells a child how many gateways there are above it.
pub(super) const DEPTH: &str = "PLUGBAY_DEPTH";

/// Everything else of ours may be a secret and stays here.
const ALLOWED: &[&str] = &[
    PATH,
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TERM",
    "TMPDIR",
    "SHELL",
    "TZ",
    // Behind a company's proxy nothing works without these.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];

const ALLOWED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Programs on Windows fail in strange ways without these.
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
        ours.into_iter().filter(|(name, value)| is_allowed(name) && !is_shell_function(value)).collect();
    environment.extend(configured.iter().map(|(name, value)| (name.into(), value.into())));
    environment.insert(MARKER.into(), instance.into());
    environment.insert(DEPTH.into(), depth.to_string().into());
    environment
}

/// How many gateways there are above the process that got this value.
pub(super) fn depth(given: Option<&OsStr>) -> usize {
    given.and_then(OsStr::to_str).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

pub(super) fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    if cfg!(windows) {
        // Names there have no case.
        let is = |allowed: &&str| name.eq_ignore_ascii_case(allowed);
        return ALLOWED.iter().any(is) || ALLOWED_ON_WINDOWS.iter().any(is);
    }
    ALLOWED.contains(&name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Some shells run code out of such values.
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
            ("PLUGBAY_INSTANCE", "id"),
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
