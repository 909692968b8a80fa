//! The page of the documentation, written from the results.

use std::path::Path;

use crate::Outcome;
use crate::rivals::results::Results;

pub(crate) fn write(_results: &Results, _docs: &Path) -> Outcome<()> {
    Err("no page".into())
}
