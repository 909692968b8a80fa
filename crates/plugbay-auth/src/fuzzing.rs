//! What fuzz targets call.

pub use crate::challenge::{Challenge, parse as parse_challenges};
