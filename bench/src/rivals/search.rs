//! Part `search`: how often the gateway's own search names the right tool.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::rivals::Effort;
use crate::rivals::description::{Search, fill};
use crate::rivals::link::Link;
use crate::rivals::running::Rival;
use crate::sandbox::{Sandbox, Server};
use crate::search::data::{Catalog, Data};
use crate::search::metrics::{recall, tokens};
use crate::stats::{median, millis};

/// The catalog of real servers, with queries written by hand.
const CATALOG: &str = "real";

const READY: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(20);

/// Number of queries, taken evenly from all sets, that every gateway gets.
const QUERIES: usize = 200;

/// Time limit for all queries.
const QUERYING: Duration = Duration::from_secs(120);

/// Measures the search; `{"none": …}` for a gateway without one.
pub(crate) fn measure(rival: &Rival, data: &Path, effort: Effort) -> Outcome<Value> {
    let Some(search) = &rival.about.search else { return Ok(json!({ "none": "it has no search" })) };
    let all = Data::read(data)?;
    let catalog = all.catalogs.iter().find(|catalog| catalog.name == CATALOG);
    let catalog = catalog.ok_or_else(|| format!("{} has no catalog {CATALOG}", data.display()))?;
    let names = names(catalog, search);
    let queries: Vec<_> = catalog.sets.iter().flat_map(|set| &set.queries).collect();
    let wanted = effort.pick(40, QUERIES).min(queries.len());
    let queries: Vec<_> = (0..wanted).map(|number| queries[number * queries.len() / wanted]).collect();

    let sandbox = Sandbox::new()?;
    let mut running = rival.start(&sandbox, &servers(catalog, data), READY)?;
    running.link.tools(READY)?;
    wait_for_all(&mut running.link, search, queries[0].text.as_str(), &names)?;

    let (mut recalls, mut sizes, mut times) = ([0.0; 2], Vec::new(), Vec::new());
    let start = Instant::now();
    for query in &queries {
        if start.elapsed() > QUERYING {
            let (done, all) = (times.len(), queries.len());
            return Err(format!("answered {done} of {all} queries in {} s", QUERYING.as_secs()).into());
        }
        let began = Instant::now();
        let params = fill(&search.call, &[("{query}", &query.text)], &Value::Null);
        let reply = running.link.request("tools/call", &params, ANSWER).good()?;
        times.push(millis(began.elapsed()));
        let text = text(&reply);
        let ranking = ranking(&text, &names, |tool| query.gold.iter().any(|group| group.contains(&tool)));
        for (sum, depth) in recalls.iter_mut().zip([1, 5]) {
            *sum += recall(&ranking, query, depth);
        }
        sizes.push(f64::from(u32::try_from(tokens(&text)).unwrap_or(u32::MAX)));
    }
    let count = f64::from(u32::try_from(times.len()).unwrap_or(u32::MAX));
    Ok(json!({
        "catalog": CATALOG,
        "tools": catalog.tools.len(),
        "queries": times.len(),
        "recall_at_1": recalls[0] / count,
        "recall_at_5": recalls[1] / count,
        "reply_tokens": median(&sizes),
        "reply_ms": median(&times),
    }))
}

/// Waits until two replies, a second apart, name the same tools: before that, servers are still being added.
fn wait_for_all(link: &mut Link, search: &Search, query: &str, names: &[String]) -> Outcome<()> {
    let params = fill(&search.call, &[("{query}", query)], &Value::Null);
    let (began, mut last) = (Instant::now(), None);
    std::thread::sleep(Duration::from_secs(3));
    while began.elapsed() < READY {
        let reply = link.request("tools/call", &params, ANSWER).good().ok();
        let names_tools = |reply: &Value| !ranking(&text(reply), names, |_| false).is_empty();
        if reply == last && reply.as_ref().is_some_and(names_tools) {
            return Ok(());
        }
        last = reply;
        std::thread::sleep(Duration::from_secs(1));
    }
    Err(format!("found nothing for {query:?} within {} s", READY.as_secs()).into())
}

fn servers(catalog: &Catalog, data: &Path) -> Vec<Server> {
    let file = data.join(CATALOG).join("catalog.jsonl").display().to_string();
    let names: BTreeSet<&str> = catalog.tools.iter().map(|(server, _)| server.as_str()).collect();
    let args = |name: &str| ["--catalog".to_owned(), file.clone(), name.to_owned()];
    names.into_iter().map(|name| Server::new(name, args(name))).collect()
}

/// The name of each tool in a reply.
fn names(catalog: &Catalog, search: &Search) -> Vec<String> {
    let name = |(server, tool): &(String, plugbay_core::catalog::Tool)| {
        search.hit.replace("{server}", server).replace("{tool}", &tool.name)
    };
    catalog.tools.iter().map(name).collect()
}

fn text(reply: &Value) -> String {
    let blocks = reply["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The tools that a reply names, in the order of their first mention. If a name stands for several tools, the
/// right one counts.
fn ranking(reply: &str, names: &[String], is_right: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut found: Vec<(usize, u32)> =
        names.iter().zip(0..).filter_map(|(name, number)| Some((place(reply, name)?, number))).collect();
    found.sort_unstable_by_key(|(place, number)| (*place, !is_right(*number)));
    found.dedup_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, number)| number).collect()
}

/// The position of a name that is not part of a longer one.
fn place(reply: &str, name: &str) -> Option<usize> {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let mut places = reply.match_indices(name).map(|(at, _)| at);
    places
        .find(|at| !part(reply[..*at].chars().next_back()) && !part(reply[at + name.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_ranked_by_where_they_are_named_first() {
        let names = ["git__log", "git__log_all", "git__diff"].map(str::to_owned);
        let ranking = |reply| ranking(reply, &names, |_| false);
        assert_eq!(ranking("1. git__log_all\n2. git__diff, like git__log_all"), [1, 2]);
        assert_eq!(ranking("\"git__log\""), [0]);
        assert!(ranking("nothing").is_empty());
    }

    #[test]
    fn one_word_for_several_tools_takes_one_rank() {
        let names = ["log", "diff", "log"].map(str::to_owned);
        assert_eq!(ranking("log, diff", &names, |tool| tool == 2), [2, 1]);
        assert_eq!(ranking("log, diff", &names, |_| false).len(), 2);
    }
}
