//! The cgroup of the servers. No process can leave it by changing its group, session or environment.
//!
//! Only Linux has cgroups, and not every user may make one below their own. Without one, the process groups
//! and the marker in the environment must do.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

const PREFIX: &str = "plugbay-";

/// The cgroup of one gateway's servers.
#[derive(Debug)]
pub(super) struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Creates it below the cgroup of this process, if that is allowed.
    pub(super) fn create(instance: &str) -> Option<Self> {
        let folder = place(instance)?;
        for other in fs::read_dir(folder.parent()?).ok()?.flatten() {
            if other.file_name().to_string_lossy().starts_with(PREFIX) {
                // Left by a gateway whose servers outlived it. Removing one that is in use fails.
                _ = fs::remove_dir(other.path());
            }
        }
        fs::create_dir(&folder).ok()?;
        Some(Self { folder })
    }

    /// The cgroup that the gateway has created: its helper is in the same parent cgroup as the gateway.
    pub(super) fn find(instance: &str) -> Option<Self> {
        place(instance).filter(|folder| folder.is_dir()).map(|folder| Self { folder })
    }

    /// Moves a process into the cgroup, with everything that it starts from now on.
    pub(super) fn add(&self, pid: Pid) {
        // Another gateway may remove the folder while it is empty, even between these two steps.
        for _ in 0..2 {
            _ = fs::create_dir(&self.folder);
            match fs::write(self.folder.join("cgroup.procs"), pid.as_raw_pid().to_string()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // A process that cannot be moved is still found by its group and its marker.
                _ => return,
            }
        }
    }

    /// Kills all members at once, including those that are just being started.
    pub(super) fn kill(&self) {
        _ = fs::write(self.folder.join("cgroup.kill"), "1");
    }

    pub(super) fn members(&self) -> HashSet<Pid> {
        let mut members = HashSet::new();
        gather(&self.folder, &mut members);
        members
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Fails while it has members, such as a browser that a login opened.
        _ = fs::remove_dir(&self.folder);
    }
}

/// Collects members, including those of the cgroups below: a server may be a gateway.
fn gather(folder: &Path, members: &mut HashSet<Pid>) {
    let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    members.extend(listed.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            gather(&entry.path(), members);
        }
    }
}

fn place(instance: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    Some(own_folder(&mounts, &own)?.join(format!("{PREFIX}{instance}")))
}

/// The folder of this process's cgroup (version 2).
fn own_folder(mounts: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| place.split(' ').nth(4))?
    })?;
    Some(Path::new(mount).join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_by_its_mount() {
        let mounts = "24 29 0:22 / /proc rw,nosuid - proc proc rw\n\
            30 29 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = "1:name=systemd:/other\n0::/user.slice/app.scope\n";
        assert_eq!(own_folder(mounts, own), Some("/sys/fs/cgroup/user.slice/app.scope".into()));
        assert_eq!(own_folder(mounts, "0::/\n"), Some("/sys/fs/cgroup".into()));
        assert_eq!(own_folder("", own), None);
        assert_eq!(own_folder(mounts, "3:memory:/x\n"), None);
    }
}
