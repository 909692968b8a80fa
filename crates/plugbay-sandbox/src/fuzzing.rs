//! Entry points of the fuzz targets.

pub use crate::parent::{Conversation, outcome_of};
