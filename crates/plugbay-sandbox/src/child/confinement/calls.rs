//! seccomp: allows the system calls of a computation; all others fail with `EPERM`.
//!
//! They fail instead of killing the process. So a function that needs a file, such as a time zone, raises an
//! error that the filter's author can read.

use std::env::consts::ARCH;

use rustix::{
    process::{Pid, getpid},
    thread::gettid,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

/// The allowed system calls, ready for the kernel.
#[derive(Debug)]
pub struct Calls {
    program: Option<BpfProgram>,
}

impl Calls {
    /// Must be created in the thread that does the job: it may end itself, but no other thread.
    #[expect(clippy::new_without_default, reason = "it looks at the thread")]
    pub fn new() -> Self {
        Self { program: program() }
    }

    /// Denies all other calls. False if the kernel has no seccomp.
    pub(super) fn deny_others(&self) -> bool {
        self.program.as_ref().is_some_and(|program| apply_filter_all_threads(program).is_ok())
    }
}

/// Calls that cannot reach anything outside the process, whatever their arguments are.
const ANY: [i64; 19] = [
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Threads that exist already, and the end.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    // Signals to itself: a handler reports a stack overflow.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    // Time and random numbers.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
];

fn program() -> Option<BpfProgram> {
    let no_exec = |argument| masked(argument, libc::PROT_EXEC, 0);
    let [process, thread] = [getpid(), gettid()].map(Pid::as_raw_pid);
    let conditional = [
        // Descriptors that an outer process forgot to close are useless.
        (libc::SYS_read, vec![rule(vec![is(0, 0)?])?]),
        (libc::SYS_write, vec![rule(vec![is(0, 1)?])?, rule(vec![is(0, 2)?])?]),
        (libc::SYS_writev, vec![rule(vec![is(0, 2)?])?]),
        // Anonymous memory, and no new code.
        (
            libc::SYS_mmap,
            vec![rule(vec![masked(3, libc::MAP_ANONYMOUS, libc::MAP_ANONYMOUS)?, no_exec(2)?])?],
        ),
        (libc::SYS_mprotect, vec![rule(vec![no_exec(2)?])?]),
        (libc::SYS_tgkill, vec![rule(vec![is(0, process)?])?]),
        (libc::SYS_tkill, vec![rule(vec![is(0, thread)?])?]),
    ];
    let allowed = ANY.into_iter().map(|call| (call, Vec::new())).chain(conditional).collect();
    let denied = SeccompAction::Errno(u32::try_from(libc::EPERM).ok()?);
    let filter = SeccompFilter::new(allowed, denied, SeccompAction::Allow, ARCH.try_into().ok()?).ok()?;
    filter.try_into().ok()
}

fn rule(conditions: Vec<SeccompCondition>) -> Option<SeccompRule> {
    SeccompRule::new(conditions).ok()
}

fn is(argument: u8, value: i32) -> Option<SeccompCondition> {
    SeccompCondition::new(argument, Dword, SeccompCmpOp::Eq, u64::try_from(value).ok()?).ok()
}

fn masked(argument: u8, mask: i32, value: i32) -> Option<SeccompCondition> {
    let operator = SeccompCmpOp::MaskedEq(u64::try_from(mask).ok()?);
    SeccompCondition::new(argument, Dword, operator, u64::try_from(value).ok()?).ok()
}
