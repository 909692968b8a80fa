//! The hits of a search, and the reasons for them.

use std::fmt::Write;

use plugbay_core::search::{Explanation, Field, Match, Relation, reply};

use super::{Style, View, one_line, table::cut};
use crate::commands::{
    forget::Forgotten,
    search::{Learned, Memory, Results},
};

const INDENT: &str = "      ";
/// Words with a smaller share than this get no line.
const LEAST: f32 = 0.01;

impl View for Results {
    fn human(&self, style: Style) -> String {
        let mut text = String::new();
        for row in &self.hits {
            let signature = one_line(&row.signature);
            let (name, rest) = signature.split_at(row.tool.len().min(signature.len()));
            let room = style.width.map(|width| width.saturating_sub(INDENT.len() + name.len()));
            let rest = room.map_or(rest.to_owned(), |room| cut(rest, room));
            let score = row.score.map_or("   -".to_owned(), |score| format!("{score:.2}"));
            let _ = writeln!(text, "{score}  {}{rest}", style.bold(name));
            if let Some(explanation) = &row.explanation {
                text.push_str(&style.dim(&explain(explanation)));
            }
        }
        text.push_str(reply::further(self.further.iter().map(String::as_str)).trim_start());
        if !self.further.is_empty() {
            text.push('\n');
        }
        text
    }
}

impl View for Memory {
    fn human(&self, _: Style) -> String {
        if self.tools.is_empty() {
            return "nothing is remembered of searches in this project\n".to_owned();
        }
        let line = |tool: &Learned| {
            let words: Vec<String> =
                tool.words.iter().map(|(word, weight)| format!("{word} {weight:.1}")).collect();
            one_line(&format!("{}.{}: {}", tool.server, tool.tool, words.join(", "))) + "\n"
        };
        self.tools.iter().map(line).collect()
    }
}

impl View for Forgotten {
    fn human(&self, _: Style) -> String {
        match self.tools {
            0 => "nothing was remembered\n".to_owned(),
            1 => "forgot 1 tool\n".to_owned(),
            tools => format!("forgot {tools} tools\n"),
        }
    }
}

fn explain(explanation: &Explanation) -> String {
    let telling = explanation.matches.iter().filter(|found| found.share >= LEAST);
    let mut lines: Vec<String> = telling.map(line).collect();
    if explanation.name_covered > 0.0 {
        lines.push(format!("{} of the name was asked for", percent(explanation.name_covered)));
    }
    if let Some(meaning) = explanation.meaning {
        lines.push(format!("{:.2} near in meaning", meaning.max(0.0)));
    }
    lines.iter().flat_map(|line| [INDENT, line, "\n"]).collect()
}

/// `42% issue: name 80%, description 20%`
fn line(found: &Match) -> String {
    let places: Vec<String> =
        found.fields.iter().map(|(field, share)| format!("{} {}", place(*field), percent(*share))).collect();
    let relation = match found.relation {
        Relation::Said => "",
        Relation::Read => " (as it was read)",
        Relation::Synonym => " (synonym)",
        Relation::Akin => " (near in meaning)",
    };
    format!("{} {}{relation}: {}", percent(found.share), one_line(&found.word), places.join(", "))
}

fn place(field: Field) -> &'static str {
    match field {
        Field::Name => "name",
        Field::Server => "server",
        Field::Description => "description",
        Field::Parameter => "parameters",
        Field::Detail => "details",
    }
}

fn percent(share: f32) -> String {
    format!("{:.0}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::search::Row;

    #[test]
    fn hits_are_lines_and_reasons_stand_below() {
        let found = Match {
            word: "issu".to_owned(),
            relation: Relation::Synonym,
            share: 0.75,
            fields: vec![(Field::Name, 0.8), (Field::Detail, 0.2)],
        };
        let explanation = Explanation { matches: vec![found], name_covered: 0.5, meaning: Some(0.3) };
        let row = Row {
            tool: "a__b".to_owned(),
            server: "a".to_owned(),
            score: Some(0.9),
            signature: "a__b(x: int) - \u{1b}[31mDoes it.".to_owned(),
            explanation: Some(explanation),
        };
        let further = vec!["a__c".to_owned(), "b__d".to_owned()];
        let results = Results { clear: false, poor: true, hits: vec![row], further };
        let expected = "\
0.90  a__b(x: int) - Does it.
      75% issu (synonym): name 80%, details 20%
      50% of the name was asked for
      0.30 near in meaning
or: a__c, b__d
";
        assert_eq!(results.human(Style::PLAIN), expected);
        let narrow = results.human(Style { colour: false, width: Some(20) });
        assert!(narrow.lines().next().is_some_and(|line| line.chars().count() <= 20), "{narrow}");
    }
}
