//! Limits, secrecy, and leftovers.

use std::{
    fs,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use bytes::Bytes;
use libtest_mimic::Trial;
use plugbay_sandbox::{Cut, Landlock, Limits, Sandbox, SandboxFailure, Settings};

use crate::{
    code,
    corpus::{PLENTY, SHORT, jq, sandbox},
};

pub(crate) const ALONE: &str = "__alone";

const TESTS: [(&str, fn()); 10] = [
    ("no_variable_of_the_parent_is_in_the_child", no_variable_of_the_parent_is_in_the_child),
    ("output_over_its_limit_is_cut_and_counted", output_over_its_limit_is_cut_and_counted),
    ("endless_output_is_cut", endless_output_is_cut),
    ("a_large_input_comes_back_unchanged", a_large_input_comes_back_unchanged),
    ("endless_filters_leave_nothing_behind", endless_filters_leave_nothing_behind),
    ("a_job_whose_future_is_dropped_ends", a_job_whose_future_is_dropped_ends),
    ("a_spare_child_does_the_next_job_and_goes", a_spare_child_does_the_next_job_and_goes),
    ("more_jobs_than_turns_wait", more_jobs_than_turns_wait),
    ("the_confinement_is_told", the_confinement_is_told),
    ("a_filter_is_checked_without_running_it", a_filter_is_checked_without_running_it),
];

/// The tests, each in a separate process because it examines its children and its memory.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(name, _): (&'static str, fn())| {
        Trial::test(format!("limits::{name}"), move || {
            let alone = Command::new(std::env::current_exe()?).args([ALONE, name]).output()?;
            let words = String::from_utf8_lossy(&alone.stderr);
            if alone.status.success() { Ok(()) } else { Err(words.into_owned().into()) }
        })
    };
    TESTS.into_iter().chain(code::ALONE).map(trial).collect()
}

/// Runs the test that the second argument names.
pub(crate) fn main() -> ExitCode {
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let Some((_, test)) = TESTS.into_iter().chain(code::ALONE).find(|(name, _)| *name == wanted) else {
        return ExitCode::FAILURE;
    };
    test();
    ExitCode::SUCCESS
}

fn plenty() -> Limits {
    Limits { deadline: PLENTY, ..Limits::default() }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Reads the environment of a waiting child from the system; the filters of the corpus cannot.
fn no_variable_of_the_parent_is_in_the_child() {
    assert!(std::env::var_os("PATH").is_some(), "the parent has variables");
    block_on(async {
        let sandbox =
            Sandbox::new(Settings { spare: PLENTY, ..Settings::new(std::env::current_exe().unwrap()) });
        sandbox.prepare();
        if cfg!(not(target_os = "linux")) {
            return;
        }
        let child = children().pop().unwrap();
        // Until the new program is in place, the system shows the parent's environment.
        let start = Instant::now();
        while !fs::read(format!("/proc/{child}/cmdline")).unwrap().ends_with(b"\0__sandbox\0") {
            assert!(start.elapsed() < PLENTY);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(fs::read_to_string(format!("/proc/{child}/environ")).unwrap(), "");
    });
}

fn output_over_its_limit_is_cut_and_counted() {
    let limits = Limits { output: 10, ..plenty() };
    let outcome = jq("range(20)", "null", limits).unwrap();
    assert_eq!((&outcome.output[..], outcome.values), (&b"0\n1\n2\n3\n4\n"[..], 5));
    assert_eq!(outcome.cut, Some(Cut { bytes: 50, at_least: false }));
    let outcome = jq("[.,.]", "\"ääää\"", limits).unwrap();
    assert_eq!((&outcome.output[..], outcome.values), ("[\"ääää".as_bytes(), 0), "the beginning of a value");
    assert_eq!(outcome.cut, Some(Cut { bytes: 24, at_least: false }));
    assert_eq!(jq("1234567890", "null", limits).unwrap().cut.map(|cut| cut.bytes), Some(11));
    assert_eq!(jq("123456789", "null", limits).unwrap().cut, None);
}

fn endless_output_is_cut() {
    let outcome = jq("repeat(1)", "null", Limits { output: 1000, ..plenty() }).unwrap();
    assert_eq!((outcome.output.len(), outcome.values), (1000, 500));
    assert!(outcome.cut.unwrap().at_least);
}

fn a_large_input_comes_back_unchanged() {
    let rows: Vec<String> = (0..40_000).map(|row| format!(r#"{{"z":{row}.10,"a":"ä{row}"}}"#)).collect();
    let input = format!("[{}]", rows.join(","));
    let limits = Limits { output: 8 << 20, ..plenty() };
    let outcome = jq(".", &input, limits).unwrap();
    assert_eq!(outcome.whole().next().unwrap(), input);
    assert_eq!(outcome.cut, None);
}

fn endless_filters_leave_nothing_behind() {
    block_on(async {
        let sandbox = sandbox();
        let limits = Limits { deadline: Duration::from_millis(30), ..Limits::default() };
        let endless = async |times: usize| {
            for _ in 0..times {
                let result = sandbox.jq("def f: f; f", Bytes::from_static(b"null"), limits).await;
                // A busy machine may not even start the child in time; the result is the same.
                assert_eq!(result, Err(SandboxFailure::TooSlow(limits.deadline)));
            }
        };
        endless(10).await;
        let before = memory();
        endless(100).await;
        let (start, mut left) = (Instant::now(), children());
        while !left.is_empty() {
            assert!(start.elapsed() < PLENTY, "{left:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
            left = children();
        }
        let after = memory();
        assert!(after < before + 8 * 1024 * 1024, "{before} bytes before, {after} after");
    });
}

fn a_job_whose_future_is_dropped_ends() {
    block_on(async {
        let sandbox = sandbox();
        let job = sandbox.jq("def f: f; f", Bytes::from_static(b"null"), plenty());
        assert!(tokio::time::timeout(SHORT, job).await.is_err());
        let start = Instant::now();
        while !children().is_empty() {
            assert!(start.elapsed() < PLENTY);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

fn a_spare_child_does_the_next_job_and_goes() {
    block_on(async {
        let spare = Duration::from_secs(1);
        let sandbox = Sandbox::new(Settings { spare, ..Settings::new(std::env::current_exe().unwrap()) });
        for number in 0..5 {
            let input = Bytes::from(number.to_string());
            assert_eq!(
                sandbox.jq(". + 1", input, plenty()).await.unwrap().output,
                format!("{}\n", number + 1)
            );
        }
        tokio::time::sleep(spare * 2).await;
        assert_eq!(sandbox.jq(".", Bytes::from_static(b"7"), plenty()).await.unwrap().output, "7\n");
    });
}

fn more_jobs_than_turns_wait() {
    block_on(async {
        let program = std::env::current_exe().unwrap();
        let sandbox = Sandbox::new(Settings { jobs: 1, spare: Duration::ZERO, ..Settings::new(program) });
        let job = |filter, deadline| {
            sandbox.jq(filter, Bytes::from_static(b"1"), Limits { deadline, ..Limits::default() })
        };
        let (endless, ended) = tokio::join!(job("def f: f; f", SHORT), job(".", PLENTY));
        assert_eq!(endless, Err(SandboxFailure::TooSlow(SHORT)));
        assert_eq!(ended.unwrap().output, "1\n");
        let (endless, busy) = tokio::join!(job("def f: f; f", SHORT * 4), job(".", SHORT));
        assert_eq!((endless, busy), (Err(SandboxFailure::TooSlow(SHORT * 4)), Err(SandboxFailure::Busy)));
    });
}

fn the_confinement_is_told() {
    let confinement = block_on(sandbox().confinement()).unwrap();
    assert!(confinement.limits, "{confinement}");
    if cfg!(target_os = "linux") {
        assert!(confinement.no_new_privileges, "{confinement}");
    } else {
        assert_eq!((confinement.landlock, confinement.system_calls), (Landlock::Absent, false));
    }
}

fn a_filter_is_checked_without_running_it() {
    let sandbox = sandbox();
    block_on(async {
        assert_eq!(sandbox.check("def f: f; f").await, Ok(()));
        assert!(matches!(sandbox.check("map(").await, Err(SandboxFailure::Filter(_))));
    });
}

/// The child processes of this one that were not reaped yet.
pub(crate) fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let names = processes.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let parent = |name: &String| {
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1).map(str::to_owned)
    };
    names.filter(|name| parent(name).as_ref() == Some(&own)).collect()
}

/// Resident memory of this process.
fn memory() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
