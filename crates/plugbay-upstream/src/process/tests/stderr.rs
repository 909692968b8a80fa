//! A child may write anything to stderr: it is never blocked, and plugbay's memory does not grow.

use std::time::Duration;

use super::{read_line, sh, within};

const FLOOD: u64 = 256 * 1024 * 1024;

#[tokio::test]
async fn a_flood_of_stderr_lines_does_not_stall_the_server() {
    flood("yes 'a line of the flood'", "a line of the flood").await;
}

#[tokio::test]
async fn stderr_without_newlines_does_not_stall_the_server() {
    flood("tr '\\0' x < /dev/zero", "xxxxxxxx").await;
}

async fn flood(source: &str, expected: &str) {
    let before = resident();
    let mut process = sh(&format!("{source} | head -c {FLOOD} >&2; echo >&2; echo done; cat"));

    assert_eq!(read_line(process.stdout.as_mut().expect("stdout")).await, "done");
    let grown = resident().saturating_sub(before);
    let ring = process.stderr.clone();
    within(process.shutdown(Duration::from_secs(60))).await;

    // Other tests run in the same program, so this only distinguishes bounded from unbounded growth.
    assert!(grown < FLOOD / 4 * 3, "{grown} bytes more");
    let tail = ring.tail(usize::MAX);
    assert!(tail.first().is_some_and(|line| line.contains(expected)), "{tail:?}");
}

/// Bytes of memory in use, of this whole test program.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = status.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

#[cfg(not(target_os = "linux"))]
fn resident() -> u64 {
    0
}

#[tokio::test]
async fn other_servers_go_on_during_a_stderr_flood() {
    let flooding = sh("yes >&2");
    let mut other = sh("echo answer");

    assert_eq!(read_line(other.stdout.as_mut().expect("stdout")).await, "answer");
    drop(flooding);
}

#[tokio::test]
async fn a_stray_that_keeps_stderr_open_does_not_delay_the_exit() {
    let mut process = sh("sleep 1000 & echo why >&2; exit 1");

    assert_eq!(within(process.wait()).await.to_string(), "exit code 1");

    assert_eq!(process.stderr.tail(9), ["why"]);
}
