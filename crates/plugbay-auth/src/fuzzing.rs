//! Entry points of the fuzz targets.

pub use crate::challenge::{Challenge, parse as parse_challenges};
