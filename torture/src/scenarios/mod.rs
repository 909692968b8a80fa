//! All scenarios, by class.

mod answers;
mod clients;
mod files;
mod generator;
mod kills;
mod limits;
mod lists;
mod memory;
mod names;
mod replies;
mod sessions;
mod soak;
mod streams;
mod time;
mod work;

use crate::scenario::Scenario;

pub(crate) fn all() -> Vec<Scenario> {
    let classes = [
        kills::ALL,
        streams::ALL,
        clients::ALL,
        sessions::ALL,
        answers::ALL,
        work::ALL,
        lists::ALL,
        replies::ALL,
        memory::ALL,
        names::ALL,
        files::ALL,
        limits::ALL,
        time::ALL,
        soak::ALL,
    ];
    classes.concat()
}
