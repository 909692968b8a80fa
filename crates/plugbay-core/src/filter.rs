//! jq filters as the rest of the program sees them: a filter, its input and its output, or its error.

use std::{fmt, pin::Pin};

use bytes::Bytes;

/// Runs jq filters. Dropping the future ends the filter.
pub trait Filters: Send + Sync + fmt::Debug {
    /// `input` is one JSON text.
    fn run(&self, filter: String, input: Bytes) -> FilterFuture<'_>;
}

pub type FilterFuture<'a> = Pin<Box<dyn Future<Output = Result<FilterOutput, FilterError>> + Send + 'a>>;

/// The values that a filter gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilterOutput {
    /// JSON texts, one on each line.
    pub values: Bytes,
    pub count: usize,
    /// There were more, or longer ones, than a filter may give.
    pub cut: bool,
}

/// Why a filter gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The filter is wrong, does not fit its input, or takes too long or too much: the model can correct it.
    #[error("{0}")]
    Wrong(String),
    /// Filters cannot be run here, or not now.
    #[error("{0}")]
    Unavailable(String),
}

/// Runs no filters.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFilters;

impl Filters for NoFilters {
    fn run(&self, _: String, _: Bytes) -> FilterFuture<'_> {
        let why = "jq filters cannot run here".to_owned();
        Box::pin(std::future::ready(Err(FilterError::Unavailable(why))))
    }
}
