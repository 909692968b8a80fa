//! jq filters and scripts in a real child process, which is this program itself with the argument for
//! children.

mod code;
mod corpus;
mod limits;
mod probe;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use plugbay_sandbox::{COMMAND, child_main};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(COMMAND) => return child_main(),
        Some(probe::COMMAND) => return probe::main(),
        Some(limits::ALONE) => return limits::main(),
        _ => {}
    }
    let trials = [corpus::trials(), limits::trials(), probe::trials(), code::trials()].into_iter().flatten();
    let trials: Vec<Trial> = trials.collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
