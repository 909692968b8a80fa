//! Why a tool was found: which words matched, in which fields, and what the embeddings added.

use serde::Serialize;

use super::{
    Engine, SYNONYM,
    dictionary::TermId,
    document::{FIELDS, Field, each_text},
    postings::Posting,
    query::WeightedTerm,
    words,
};
use crate::catalog::Tool;

/// How a tool came to its score. A long request is explained as a whole, not by its sentences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The most important first.
    pub matches: Vec<Match>,
    /// The share of the tool's name that was asked for.
    pub name_covered: f32,
    /// The cosine between the embeddings of tool and query; `None` without a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<f32>,
}

/// A word of the tool that matches one of the query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Match {
    /// The word as the index has it, without its ending.
    pub word: String,
    pub relation: Relation,
    /// Its part in the tool's whole score by words.
    pub share: f32,
    /// The fields of the tool in which it stands, each with its part in the share.
    pub fields: Vec<(Field, f32)>,
}

/// How a word of a tool is related to the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// A word of the query itself.
    Said,
    /// What a word of the query was read as: an everyday word, a literal, a mistyped word.
    Read,
    /// A word that tools use for the same thing, from the groups of synonyms.
    Synonym,
    /// Its embedding is near that of a word of the query that no tool has.
    Akin,
}

impl Engine {
    /// Explains the score of a tool: `number` is its number, `tool` the tool that was given under it.
    pub fn explain(&self, query: &str, number: u32, (server, tool): (&str, &Tool)) -> Explanation {
        let whole = self.read(query).whole;
        let said: Vec<TermId> =
            whole.terms.iter().filter(|term| term.is_said()).map(|term| term.id).collect();
        let given = whole.terms.iter().map(|term| (*term, term.relation));
        let related = self.synonyms.of(&said).into_iter().map(|id| {
            let term = WeightedTerm { id, weight: SYNONYM, relation: Relation::Synonym };
            (term, Relation::Synonym)
        });
        let itself = number..number + 1;
        let sum = |postings: &[Posting]| postings.iter().map(|posting| posting.value).sum::<f32>();
        let mut matches: Vec<Match> = Vec::new();
        for (term, relation) in given.chain(related) {
            let value = sum(self.index.postings(term.id).scores(&itself));
            if value > 0.0 {
                let fields = self.fields(term.id, server, tool);
                let word = self.index.spelling(term.id).to_owned();
                matches.push(Match { word, relation, share: term.weight * value, fields });
            }
        }
        let all: f32 = matches.iter().map(|found| found.share).sum();
        for found in &mut matches {
            found.share /= all.max(f32::MIN_POSITIVE);
        }
        matches.sort_by(|a, b| b.share.total_cmp(&a.share));
        let of_name = |id: &TermId| sum(self.index.postings(*id).names(&itself));
        let embedding = whole.embedding.as_ref();
        Explanation {
            matches,
            name_covered: said.iter().map(of_name).sum(),
            meaning: embedding.and_then(|embedding| self.index.cosine(number, embedding)),
        }
    }

    /// The fields of a tool in which a term stands, with their parts in its weight.
    fn fields(&self, term: TermId, server: &str, tool: &Tool) -> Vec<(Field, f32)> {
        let mut weights = [0.0f32; FIELDS];
        each_text(server, tool, &mut |field, text| {
            words::each(&text.searched(), |word, _| {
                if self.index.term(word) == Some(term) {
                    weights[field as usize] += field.weight();
                }
            });
        });
        let whole: f32 = weights.iter().sum();
        let with = Field::ALL.into_iter().filter(|field| weights[*field as usize] > 0.0);
        with.map(|field| (field, weights[field as usize] / whole)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_of_a_search_names_words_with_their_fields() {
        let definition = r#"{"name":"create_issue","description":"Opens an issue","inputSchema":{"properties":{"title":{}}}}"#;
        let tool = Tool::parse(definition.into()).unwrap();
        let other = Tool::parse(r#"{"name":"insert","description":"inserts nothing"}"#.into()).unwrap();
        let engine = Engine::build(&[("github", &tool), ("y", &other)], None);
        let explanation = engine.explain("insert an issue title", 0, ("github", &tool));
        let matches: Vec<_> =
            explanation.matches.iter().map(|found| (found.word.as_str(), found.relation)).collect();
        assert!(
            matches.contains(&("issu", Relation::Said)) && matches.contains(&("titl", Relation::Said)),
            "{matches:?}"
        );
        assert!(matches.contains(&("creat", Relation::Synonym)), "{matches:?}");
        let issue = explanation.matches.iter().find(|found| found.word == "issu").unwrap();
        assert_eq!(issue.fields, [(Field::Name, 0.8), (Field::Description, 0.2)]);
        let sum: f32 = explanation.matches.iter().map(|found| found.share).sum();
        assert!((sum - 1.0).abs() < 1e-5);
        assert!(explanation.name_covered > 0.0 && explanation.meaning.is_none());
    }
}
