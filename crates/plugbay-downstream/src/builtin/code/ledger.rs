//! The calls of a run. If a script is started again, it gets its earlier answers in the same order. It
//! therefore makes the same calls, and none of them is sent twice.

use bytes::Bytes;
use plugbay_core::{
    script::{Function, ScriptAnswer, ScriptCall},
    surface::Effect,
};

/// Limit of arguments and answers that are kept, in bytes. A run that needs more cannot be started again.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The calls of one run, in the order in which its script makes them.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// The calls that are answered, in the order of their answers.
    answered: Vec<u32>,
    bytes: usize,
    /// How many calls the current start of the script has made, and how many answers it has got.
    made: u32,
    delivered: usize,
}

/// One call.
#[derive(Debug)]
pub(super) struct Entry {
    function: Function,
    arguments: Bytes,
    /// Set for the call of a tool that was found.
    pub(super) tool: Option<CalledTool>,
    pub(super) state: CallState,
    answer: Option<ScriptAnswer>,
}

/// The tool of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CalledTool {
    /// The name that hosts know.
    pub(super) name: String,
    pub(super) effect: Effect,
}

/// The state of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallState {
    /// It was not sent to a server, or not yet.
    Unsent,
    /// It was sent and has no answer yet.
    UnderWay,
    Done,
    Failed(String),
    /// It never reached a server.
    Refused(String),
    /// In a dry run: the call could be made.
    Checked,
    /// In a dry run: its arguments contain results that are not known yet.
    Unchecked,
}

/// How a call of the script relates to the ledger.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entered {
    New,
    /// The script made the same call before it was started again.
    Known,
    /// At this place the script made another call before it was started again.
    Different,
}

impl Ledger {
    /// Enters a call of the script.
    pub(super) fn enter(&mut self, call: &ScriptCall) -> Entered {
        self.made = call.number + 1;
        if let Some(entry) = self.entries.get(call.number as usize) {
            let is_same = entry.function == call.function && entry.arguments == call.arguments;
            return if is_same { Entered::Known } else { Entered::Different };
        }
        self.bytes += call.arguments.len();
        let arguments = if self.is_replayable() { call.arguments.clone() } else { Bytes::new() };
        let function = call.function.clone();
        self.entries.push(Entry { function, arguments, tool: None, state: CallState::Unsent, answer: None });
        Entered::New
    }

    pub(super) fn entry(&mut self, number: u32) -> &mut Entry {
        &mut self.entries[number as usize]
    }

    /// Keeps the answer of a call.
    pub(super) fn answer(&mut self, number: u32, answer: ScriptAnswer) {
        self.bytes += match &answer {
            ScriptAnswer::Result { raw, .. } | ScriptAnswer::Value(raw) => raw.len(),
            ScriptAnswer::Error { message, result, .. } => {
                message.len() + result.as_ref().map_or(0, Bytes::len)
            }
            ScriptAnswer::Unknown => 0,
        };
        self.entry(number).answer = Some(answer);
        self.answered.push(number);
    }

    /// The next answer for the running script, if it has made that call.
    pub(super) fn next_answer(&mut self) -> Option<(u32, ScriptAnswer)> {
        let number = *self.answered.get(self.delivered)?;
        if number >= self.made {
            return None;
        }
        self.delivered += 1;
        let keeps = self.is_replayable();
        let answer = &mut self.entry(number).answer;
        let answer = if keeps { answer.clone() } else { answer.take() };
        answer.map(|answer| (number, answer))
    }

    /// Whether the script can be started again.
    pub(super) fn is_replayable(&self) -> bool {
        self.bytes <= MOST_BYTES
    }

    /// Resets the progress for a new start of the script, which has made no call yet.
    pub(super) fn rewind(&mut self) {
        (self.made, self.delivered) = (0, 0);
    }

    /// The calls of tools, numbered from 1. The numbers count all calls.
    pub(super) fn tool_calls(&self) -> impl Iterator<Item = (usize, &CalledTool, &Entry)> {
        let entries = self.entries.iter().zip(1..);
        entries.filter_map(|(entry, number)| Some((number, entry.tool.as_ref()?, entry)))
    }

    /// The names of tools whose calls are under way.
    pub(super) fn under_way(&self) -> Vec<&str> {
        let calls = self.tool_calls().filter(|(_, _, entry)| entry.state == CallState::UnderWay);
        calls.map(|(_, tool, _)| tool.name.as_str()).collect()
    }
}

impl Entry {
    /// Raw JSON.
    pub(super) fn arguments(&self) -> &[u8] {
        &self.arguments
    }

    /// The name that the script wrote, for a call of an unknown tool.
    pub(super) fn written_name(&self) -> String {
        match &self.function {
            Function::Tool { server: Some(server), tool } => format!("{server}.{tool}"),
            Function::Tool { server: None, tool } => tool.clone(),
            Function::Search | Function::Describe | Function::Help | Function::Result => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u32, arguments: &'static str) -> ScriptCall {
        let function = Function::Tool { server: None, tool: "t".to_owned() };
        ScriptCall { number, function, arguments: Bytes::from_static(arguments.as_bytes()) }
    }

    fn value(json: &'static str) -> ScriptAnswer {
        ScriptAnswer::Value(Bytes::from_static(json.as_bytes()))
    }

    #[test]
    fn a_script_that_is_started_again_gets_the_answers_of_before_in_their_order() {
        let mut ledger = Ledger::default();
        for number in 0..3 {
            assert_eq!(ledger.enter(&call(number, "{}")), Entered::New);
        }
        ledger.answer(2, value("2"));
        ledger.answer(0, value("0"));
        assert_eq!(ledger.next_answer(), Some((2, value("2"))));
        ledger.rewind();
        assert_eq!(ledger.next_answer(), None, "no call is made yet");
        assert_eq!(ledger.enter(&call(0, "{}")), Entered::Known);
        assert_eq!(ledger.next_answer(), None, "call 2 was answered first");
        for number in 1..3 {
            ledger.enter(&call(number, "{}"));
        }
        assert_eq!(
            [ledger.next_answer(), ledger.next_answer()],
            [Some((2, value("2"))), Some((0, value("0")))]
        );
        assert_eq!(ledger.next_answer(), None, "call 1 is under way");
        ledger.answer(1, value("1"));
        assert_eq!(ledger.next_answer(), Some((1, value("1"))));
    }

    #[test]
    fn another_call_in_the_place_of_one_that_was_made_is_noticed() {
        let mut ledger = Ledger::default();
        ledger.enter(&call(0, "{}"));
        ledger.rewind();
        assert_eq!(ledger.enter(&call(0, r#"{"n":1}"#)), Entered::Different);
    }

    #[test]
    fn what_is_too_much_to_keep_cannot_be_started_again() {
        let mut ledger = Ledger::default();
        ledger.enter(&call(0, "{}"));
        let large = ScriptAnswer::Value(vec![b' '; MOST_BYTES].into());
        ledger.answer(0, large.clone());
        assert!(!ledger.is_replayable());
        assert_eq!(ledger.next_answer(), Some((0, large)), "it is delivered all the same");
        assert_eq!(ledger.entry(0).answer, None, "and not kept");
    }
}
