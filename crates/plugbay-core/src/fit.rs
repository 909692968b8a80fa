//! Which results are replaced by an outline: by the user's settings, the host, and the way the call came.

use crate::{policy::Patterns, profile::Profile};

/// Results with more bytes get an outline, unless the host cuts sooner or the user says otherwise.
///
/// About 5,000 tokens. An outline costs some 700 tokens and a further turn, which reads the conversation again. With a
/// conversation of 30,000 cached tokens that pays from about 2,500 tokens on if the model needs a part of the result, and
/// never if it needs the whole. If half of the results are needed whole, it pays from 5,000 tokens on.
pub const DEFAULT_THRESHOLD: usize = 20_000;
/// Shorter results never get an outline: it would be as long.
pub const LEAST_THRESHOLD: usize = 2_000;

/// The length from which on results have an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// Never: they stay as they are.
    Whole,
    /// If they have more bytes.
    Above(usize),
}

/// How the user wants large results of one server to be answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultRules {
    /// The threshold for all tools; `None`: as it fits the host.
    pub threshold: Option<Threshold>,
    /// Thresholds for tools by pattern: the first that matches counts.
    pub tools: Vec<(Patterns, Threshold)>,
    /// The rules also apply to tools that the host has in its list, whose results else stay as they are.
    pub listed: bool,
}

impl ResultRules {
    /// The bytes above which a result of this tool has an outline; `None` if it stays whole. `listed`: the host has called
    /// the tool by its own name.
    pub fn threshold(&self, tool: &str, listed: bool, host: HostTakes) -> Option<usize> {
        if listed && !self.listed || !host.outlines {
            return None;
        }
        let by_pattern = self.tools.iter().find(|(patterns, _)| patterns.matches(tool));
        match by_pattern.map(|(_, threshold)| *threshold).or(self.threshold) {
            Some(Threshold::Whole) => None,
            Some(Threshold::Above(bytes)) => Some(bytes.max(LEAST_THRESHOLD)),
            None => Some(host.result.unwrap_or(usize::MAX).clamp(LEAST_THRESHOLD, DEFAULT_THRESHOLD)),
        }
    }
}

/// How a host handles large results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostTakes {
    /// Its model can read an outline, and then parts of the result.
    pub outlines: bool,
    /// The longest result that it does not cut, in bytes.
    pub result: Option<usize>,
    /// It refuses texts that are JSON, but no objects.
    pub refuses_bare_json: bool,
}

impl HostTakes {
    /// A host that runs code takes results as values, and a gateway passes them on: both get no outlines.
    pub fn of(host: &Profile) -> Self {
        Self {
            outlines: !host.code_mode && !host.gateway,
            result: host.limits.result,
            refuses_bare_json: host.refuses_bare_json,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profiles;

    fn host(name: &str) -> HostTakes {
        HostTakes::of(Profiles::built_in(name).unwrap())
    }

    #[test]
    fn the_threshold_is_what_the_host_takes_but_no_more_than_pays() {
        let rules = ResultRules::default();
        let of = |name| rules.threshold("read", false, host(name));
        assert_eq!(of("codex/plain"), Some(12_000));
        assert_eq!((of("copilot-cli"), of("claude-code")), (Some(19_000), Some(DEFAULT_THRESHOLD)));
        assert_eq!((of("cursor"), of("codex"), of("plugbay")), (Some(DEFAULT_THRESHOLD), None, None));
        assert_eq!(rules.threshold("read", true, host("cursor")), None, "a listed tool stays as it is");
    }

    #[test]
    fn the_user_decides_by_server_and_by_tool() {
        let pattern = |glob: &str| Patterns::compile([glob]).unwrap();
        let tools = vec![(pattern("read_*"), Threshold::Whole), (pattern("*_all"), Threshold::Above(5_000))];
        let rules = ResultRules { threshold: Some(Threshold::Above(100_000)), tools, listed: true };
        let of = |tool, listed| rules.threshold(tool, listed, host("claude-code"));
        assert_eq!(
            (of("read_all", false), of("list_all", true), of("get", true)),
            (None, Some(5_000), Some(100_000))
        );
        assert_eq!(rules.threshold("get", true, host("codex")), None, "code takes values");
        let whole = ResultRules { threshold: Some(Threshold::Whole), ..ResultRules::default() };
        assert_eq!(whole.threshold("get", false, host("claude-code")), None);
        let tiny = ResultRules { threshold: Some(Threshold::Above(1)), ..ResultRules::default() };
        assert_eq!(tiny.threshold("get", false, host("claude-code")), Some(LEAST_THRESHOLD));
    }
}
