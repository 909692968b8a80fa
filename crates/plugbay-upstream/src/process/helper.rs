//! The helper process of the orphan guard: waits for the gateway's end, then ends its child processes.
//!
//! Synchronous and small on purpose: it sleeps in one `read` for the whole life of the gateway.

use std::{
    collections::HashSet,
    io::{self, BufRead},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::strays::Strays;

pub(super) const REGISTER: char = '+';
pub(super) const UNREGISTER: char = '-';
/// The gateway's last order if it ends regularly: it has ended its servers itself.
pub(super) const GOODBYE: &[u8] = b"bye\n";

/// Time from TERM to KILL, and from KILL to giving up on processes that hang in the kernel.
const PATIENCE: Duration = Duration::from_millis(1500);
const POLL: Duration = Duration::from_millis(50);
/// Time within which a child that was just being started shows its marker, after the gateway's death.
const SETTLED: Duration = Duration::from_millis(100);

/// The body of the hidden subcommand that [`super::Guard`] starts. Reads orders from stdin until
/// its end; `instance` is the argument that the guard added.
pub fn guard_main(instance: &str) -> ExitCode {
    ignore_signals();
    Orders::read(io::stdin().lock()).execute(instance);
    ExitCode::SUCCESS
}

/// Ignores signals: hosts that end a whole process tree would otherwise take the helper along while the
/// gateway is still shutting down. Only the end of the pipe ends the helper.
fn ignore_signals() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        // Nobody reads the flag: the mere existence of a handler keeps the signal from killing. If it cannot
        // be set, the helper's own group still protects it from the terminal's signals.
        _ = signal_hook::flag::register(signal.as_raw(), Arc::new(AtomicBool::new(false)));
    }
}

/// The orders of the gateway until its end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Orders {
    groups: HashSet<Pid>,
    /// Whether the gateway has said goodbye.
    in_good_order: bool,
}

impl Orders {
    fn read(mut input: impl BufRead) -> Self {
        let mut orders = Self::default();
        let mut line = Vec::new();
        // An error counts as the end of the input: there is nothing left to read.
        while input.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            orders.obey(&line);
            line.clear();
        }
        orders
    }

    fn obey(&mut self, line: &[u8]) {
        if line == GOODBYE {
            self.in_good_order = true;
        } else if let Some((order, group)) = parse(line) {
            match order {
                REGISTER => _ = self.groups.insert(group),
                UNREGISTER => _ = self.groups.remove(&group),
                _ => {}
            }
        }
    }

    fn execute(self, instance: &str) {
        // A process that left its group, such as a browser that a login opened, survives a regular end.
        let strays = (!self.in_good_order).then(|| Strays::of(instance));
        let mut survivors = Survivors { groups: self.groups, strays };
        if !survivors.end_within(Signal::TERM) {
            survivors.end_within(Signal::KILL);
        }
    }
}

/// Parses an order. A line without a newline was cut short by the gateway's death: it may lack digits, so it
/// is ignored.
fn parse(line: &[u8]) -> Option<(char, Pid)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (order, group) = line.split_at_checked(1)?;
    // 0 would be our own group, and 1 would mean everybody when it is negated.
    let group: i32 = group.parse().ok().filter(|group| *group > 1)?;
    Some((order.chars().next()?, Pid::from_raw(group)?))
}

/// The processes that outlived the gateway.
struct Survivors {
    groups: HashSet<Pid>,
    strays: Option<Strays>,
}

impl Survivors {
    /// Sends a signal, and waits until nothing is left or the time is over. True when nothing is left.
    fn end_within(&mut self, signal: Signal) -> bool {
        let start = Instant::now();
        if let Some(strays) = &mut self.strays {
            // Strays are searched before their parents end: later, nothing would show whose children they
            // are.
            strays.find(&self.groups);
        }
        self.groups.retain(|group| send(*group, signal));
        loop {
            let strays_gone = self.strays.as_mut().is_none_or(|strays| {
                let found = strays.signal(signal, &self.groups);
                !found && start.elapsed() >= SETTLED
            });
            if self.groups.is_empty() && strays_gone {
                return true;
            }
            if start.elapsed() >= PATIENCE {
                return false;
            }
            sleep(POLL);
            self.groups.retain(|group| test_kill_process_group(*group).is_ok());
        }
    }
}

/// Signals a group; false if it is gone.
fn send(group: Pid, signal: Signal) -> bool {
    let sent = kill_process_group(group, signal).is_ok();
    // A stopped process acts on TERM only after CONT.
    sent && kill_process_group(group, Signal::CONT).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(orders: &str, groups: &[i32], in_good_order: bool) {
        let groups = groups.iter().filter_map(|group| Pid::from_raw(*group)).collect();
        assert_eq!(Orders::read(orders.as_bytes()), Orders { groups, in_good_order }, "{orders:?}");
    }

    #[test]
    fn the_guard_follows_orders() {
        check("", &[], false);
        check("+20\n+30\n-20\n", &[30], false);
        check("+20\n-20\nbye\n", &[], true);
    }

    #[test]
    fn the_guard_believes_only_whole_and_harmless_orders() {
        check("+20\n+30", &[20], false);
        check("+0\n+1\n+-5\n+x\n+\n\n20\n*20\n\u{fffd}2\n+99999999999\n", &[], false);
    }
}
