//! The limit of open file descriptors of this process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// The limit that plugbay asks for. It allows thousands of connections and servers; more is of no use.
const WANTED: u64 = 8192;

/// Raises the limit of open descriptors as far as the system allows, and returns how many are usable. Systems allow a
/// process few of them unless it asks for more.
pub fn raise_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(WANTED).min(WANTED);
    if limit.current.is_some_and(|current| current < allowed) {
        limit.current = Some(allowed);
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(WANTED);
    usize::try_from(current.min(WANTED)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: &str = "PLUGBAY_DOWNSTREAM_CHILD";

    /// The limit concerns all threads of a process, so the test runs in a child process.
    #[test]
    fn the_limit_of_descriptors_is_raised() {
        if std::env::var_os(CHILD).is_none() {
            let test = "descriptors::tests::the_limit_of_descriptors_is_raised";
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test])
                .env(CHILD, "")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&child.stdout);
            assert!(child.status.success() && told.contains("1 passed"), "{told}");
            return;
        }
        let mut few = getrlimit(Resource::Nofile);
        let Some(maximum) = few.maximum.filter(|maximum| *maximum > 64) else { return };
        few.current = Some(64);
        setrlimit(Resource::Nofile, few).unwrap();
        let usable = raise_limit();
        assert_eq!(usable as u64, maximum.min(WANTED));
        assert_eq!(getrlimit(Resource::Nofile).current, Some(maximum.min(WANTED)));
    }
}
