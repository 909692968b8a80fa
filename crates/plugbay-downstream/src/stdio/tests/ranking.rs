//! Search with a model: it changes the order, and never blocks the search.

use std::{sync::Arc, time::Duration};

use plugbay_core::model::{Model, ModelError, Prompt, Reply, ReplyFuture, TextListener, Turn};
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use super::{
    builtin::searchable,
    harness::{Harness, cancel, request},
};
use crate::{
    ranking::{Choice, Chosen},
    scripted::soon,
};

const DEADLINE: Duration = Duration::from_secs(5);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A model whose answers the test writes.
#[derive(Debug)]
struct Scripted(mpsc::UnboundedSender<Asked>);

struct Asked {
    prompt: Prompt,
    answer: oneshot::Sender<Result<Reply, ModelError>>,
}

impl Model for Scripted {
    fn ask(&self, prompt: Prompt, _: Option<TextListener>) -> ReplyFuture<'_> {
        let (answer, answered) = oneshot::channel();
        let _ = self.0.send(Asked { prompt, answer });
        Box::pin(async { answered.await.expect("the test answers") })
    }
}

impl Asked {
    fn text(&self) -> &str {
        let [Turn::User(text)] = &self.prompt.turns[..] else { panic!("{:?}", self.prompt) };
        text
    }

    fn say(self, text: &str) {
        let _ = self.answer.send(Ok(Reply { text: text.to_owned(), ..Reply::default() }));
    }

    fn fail(self, trouble: ModelError) {
        let _ = self.answer.send(Err(trouble));
    }
}

struct RankingHarness {
    harness: Harness,
    server_requests: mpsc::UnboundedReceiver<Asked>,
}

impl RankingHarness {
    /// A harness with the tools `s__draw`, which paints, and `s__echo`.
    async fn new() -> Self {
        let mut harness = Harness::with(searchable());
        let (asked, server_requests) = mpsc::unbounded_channel();
        let model = Chosen::Model(Arc::new(Scripted(asked)));
        harness.ranker.choose(Some(Choice { model, deadline: DEADLINE }));
        harness.open().await;
        Self { harness, server_requests }
    }

    async fn search(&mut self, query: &str) {
        self.harness.say(search(7, query)).await;
    }

    async fn asked(&mut self) -> Asked {
        soon("a server request to the model", self.server_requests.recv()).await.expect("the model is there")
    }

    /// The lines of the next answer to a search.
    async fn found(&mut self) -> Vec<String> {
        let answer = self.harness.hear().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        text.lines().map(str::to_owned).collect()
    }

    /// Searches, and expects that the model is not asked.
    async fn found_without(&mut self, query: &str) -> Vec<String> {
        self.search(query).await;
        let found = self.found().await;
        assert!(self.server_requests.try_recv().is_err(), "the model was asked");
        found
    }
}

fn search(id: u64, query: &str) -> String {
    let params = json!({ "name": "search_tools", "arguments": { "query": query } });
    request(id, "tools/call", &params.to_string())
}

#[tokio::test(start_paused = true)]
async fn the_model_ranks_search_hits_without_blocking_the_session() {
    let mut ranking = RankingHarness::new().await;
    ranking.search("paint a landscape").await;
    let asked = ranking.asked().await;
    assert!(asked.text().starts_with("Query: \"paint a landscape\"\n"), "{}", asked.text());
    let tools = asked.text().split("Tools:\n").nth(1).unwrap();
    assert_eq!(tools, "s__draw() - Paints a landscape.\ns__echo(count: int) - Says it again.\n");
    assert_eq!(ranking.harness.ask(request(8, "ping", "{}")).await["id"], 8);
    asked.say(r#"```json ["s__echo", "s__nothing", "s__echo"]```"#);
    let found = ranking.found().await;
    assert!(
        found[0].starts_with("s__echo") && found.iter().any(|line| line.starts_with("s__draw")),
        "{found:?}"
    );
    assert!(found.iter().all(|line| !line.contains("nothing")), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn search_hits_include_tools_that_only_the_model_names() {
    let mut ranking = RankingHarness::new().await;
    ranking.search("zebra").await;
    ranking.asked().await.say(r#"["s__draw"]"#);
    let found = ranking.found().await;
    assert!(found[0].starts_with("s__draw - ") && found[1].starts_with('{'), "with its schema: {found:?}");
    ranking.search("okapi").await;
    ranking.asked().await.say("[]");
    assert!(ranking.found().await[0].starts_with("No tool found."));
}

#[tokio::test(start_paused = true)]
async fn a_search_query_is_ranked_once_for_each_catalog() {
    let mut ranking = RankingHarness::new().await;
    ranking.search("paint a landscape").await;
    ranking.asked().await.say(r#"["s__echo","s__draw"]"#);
    let first = ranking.found().await;
    assert_eq!(ranking.found_without("  Paint a\n LANDSCAPE ").await, first);
    ranking.search("paint a portrait").await;
    ranking.asked().await.say(r#"["s__draw"]"#);
    ranking.found().await;
    assert_eq!(ranking.found_without("paint a landscape").await, first);
    ranking.harness.snapshots.send_replace(searchable());
    ranking.harness.hear_nothing().await;
    ranking.search("paint a landscape").await;
    ranking.asked().await.say("[]");
    assert!(ranking.found().await[0].starts_with("s__draw"), "the local order, from now on");
}

#[tokio::test(start_paused = true)]
async fn the_number_of_cached_rankings_is_limited() {
    let mut ranking = RankingHarness::new().await;
    for number in 0..=256 {
        ranking.search(&format!("paint {number}")).await;
        ranking.asked().await.say(r#"["s__draw"]"#);
        ranking.found().await;
    }
    ranking.found_without("paint 1").await;
    ranking.search("paint 0").await;
    ranking.asked().await.say("[]");
}

#[tokio::test(start_paused = true)]
async fn a_failed_ranking_of_one_query_leaves_the_local_search_hits() {
    let mut ranking = RankingHarness::new().await;
    for trouble in [ModelError::Refused("no".to_owned()), ModelError::Malformed("no".to_owned())] {
        ranking.search("paint").await;
        ranking.asked().await.fail(trouble);
        assert!(ranking.found().await[0].starts_with("s__draw"));
    }
    ranking.search("paint").await;
    ranking.asked().await.say("I would paint.");
    assert!(ranking.found().await[0].starts_with("s__draw"));
    // None of these answers is cached.
    ranking.search("paint").await;
    ranking.asked().await.say(r#"["s__echo"]"#);
    assert!(ranking.found().await[0].starts_with("s__echo"));
}

#[tokio::test(start_paused = true)]
async fn ranking_backs_off_from_a_failing_model() {
    let message = "m".to_owned();
    for (trouble, rest) in [
        (ModelError::RateLimited { retry_after: Some(7 * DEADLINE), message: message.clone() }, 7 * DEADLINE),
        (ModelError::RateLimited { retry_after: Some(Duration::MAX), message: message.clone() }, YEAR),
        (ModelError::RateLimited { retry_after: None, message: message.clone() }, 12 * DEADLINE),
        (ModelError::Unauthorised { key: "K".to_owned(), message: message.clone() }, 12 * DEADLINE),
        (ModelError::Failed { status: Some(500), message: message.clone() }, 12 * DEADLINE),
        (ModelError::Unreachable(message.clone()), 12 * DEADLINE),
    ] {
        let mut ranking = RankingHarness::new().await;
        ranking.search("paint").await;
        ranking.asked().await.fail(trouble);
        assert!(ranking.found().await[0].starts_with("s__draw"));
        sleep(rest.saturating_sub(Duration::from_millis(1))).await;
        assert!(ranking.found_without("paint").await[0].starts_with("s__draw"));
        sleep(Duration::from_millis(2)).await;
        ranking.search("paint").await;
        ranking.asked().await.say("[]");
    }
}

#[tokio::test(start_paused = true)]
async fn search_does_not_wait_for_a_slow_model() {
    let mut ranking = RankingHarness::new().await;
    ranking.search("paint").await;
    let mut asked = ranking.asked().await;
    let begun = tokio::time::Instant::now();
    assert!(ranking.found().await[0].starts_with("s__draw"));
    assert!(begun.elapsed() <= DEADLINE + Duration::from_millis(1), "{:?}", begun.elapsed());
    soon("the end of the server request", asked.answer.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn cancellation_of_a_search_ends_the_model_request() {
    let mut ranking = RankingHarness::new().await;
    ranking.search("paint").await;
    let mut asked = ranking.asked().await;
    ranking.harness.say(cancel(7)).await;
    soon("the end of the server request", asked.answer.closed()).await;
    ranking.harness.hear_nothing().await;
    // The same happens when the host disconnects.
    ranking.search("paint").await;
    let mut asked = ranking.asked().await;
    ranking.harness.close();
    soon("the end of the server request", asked.answer.closed()).await;
    ranking.harness.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ranking_asks_no_model_for_an_unknown_server() {
    let mut ranking = RankingHarness::new().await;
    let arguments = json!({ "query": "paint", "server": "x".repeat(1000) });
    let params = json!({ "name": "search_tools", "arguments": arguments });
    ranking.harness.say(request(7, "tools/call", &params.to_string())).await;
    assert!(ranking.found().await[0].starts_with("`server`: there is nothing named"));
    assert!(ranking.server_requests.try_recv().is_err(), "the model was asked");
}

#[tokio::test(start_paused = true)]
async fn another_ranking_model_is_used_at_once() {
    let mut ranking = RankingHarness::new().await;
    ranking.search("paint").await;
    ranking.asked().await.say(r#"["s__echo"]"#);
    assert!(ranking.found().await[0].starts_with("s__echo"));
    ranking.harness.ranker.choose(None);
    assert!(ranking.found_without("paint").await[0].starts_with("s__draw"));
}
