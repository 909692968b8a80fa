//! The limits at which an agent run ends before it is done.

use std::time::Duration;

use plugbay_core::{
    model::{ModelError, Reply, Stop, Usage},
    surface::Effect,
};
use tokio::time::{Instant, sleep};

use super::harness::{AgentHarness, COST, LIMITS, calls, says};
use crate::{agent::Limits, scripted::soon};

const READ: &str = "s__read";

/// Answers a call that the model has asked for.
async fn served(agent: &mut AgentHarness) {
    agent.harness.forwarded().await.answer(r#"{"content":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn an_agent_can_conclude_after_its_last_tool_call() {
    let mut agent = AgentHarness::new().await;
    agent.want("x").await;
    agent.asked().await.answer(calls(&[(READ, "{}"); 5]));
    for _ in 0..3 {
        served(&mut agent).await;
    }
    let asked = agent.asked().await;
    let told = &asked.turns()[2];
    assert_eq!(told.matches("not made").count(), 2, "{told}");
    assert!(told.ends_with("not made: all 3 calls are used up: answer with what you have!"), "{told}");
    asked.answer(says("Three times."));
    let (words, record, failed) = agent.told().await;
    assert_eq!((words.as_str(), failed), ("Three times.", false));
    assert_eq!(record.matches(": done").count(), 3, "{record}");
    assert!(
        record.ends_with("\n5. s__read {}: not made: all 3 calls are used up: answer with what you have")
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_stopped_at_the_limit_of_tool_calls() {
    let mut agent = AgentHarness::new().await;
    agent.want("x").await;
    for _ in 0..3 {
        agent.asked().await.answer(calls(&[(READ, "{}")]));
        served(&mut agent).await;
    }
    agent.asked().await.answer(calls(&[(READ, "{}")]));
    agent.asked().await.answer(calls(&[(READ, "{}")]));
    let (words, record, failed) = agent.told().await;
    assert_eq!((words.as_str(), failed), ("Not finished: the limit of 3 calls is reached.", true));
    assert_eq!(record.matches(": done").count(), 3, "{record}");
    agent.harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn no_tool_call_is_made_from_a_model_answer_that_was_cut_off() {
    let mut agent = AgentHarness::new().await;
    let cut = || Reply { stop: Stop::Limit, ..calls(&[(READ, "{}")]) };
    agent.want("x").await;
    agent.asked().await.answer(cut());
    let asked = agent.asked().await;
    assert!(asked.turns()[1].contains("cut off after 4096 tokens"), "{:?}", asked.turns());
    asked.answer(cut());
    agent.asked().await.answer(cut());
    let (words, record, failed) = agent.told().await;
    assert!(failed && words.contains("cut off"), "{words}");
    assert_eq!(record, "No tool was called.");
    agent.harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn agent_turns_are_limited() {
    let mut agent = AgentHarness::new().await;
    agent.agree(Limits { turns: 2, ..LIMITS }, Effect::Reads);
    agent.want("x").await;
    for _ in 0..2 {
        agent.asked().await.answer(calls(&[(READ, "{}")]));
        served(&mut agent).await;
    }
    let (words, record, failed) = agent.told().await;
    assert_eq!(
        (words.as_str(), failed),
        ("Not finished: the model has been asked 2 times, which is the limit.", true)
    );
    assert_eq!(record.matches(": done").count(), 2, "{record}");
}

#[tokio::test(start_paused = true)]
async fn agent_tokens_are_limited_and_no_tool_call_is_made_beyond() {
    let mut agent = AgentHarness::new().await;
    agent.agree(Limits { tokens: 2 * COST, ..LIMITS }, Effect::Reads);
    agent.want("x").await;
    agent.asked().await.answer(calls(&[(READ, "{}")]));
    served(&mut agent).await;
    agent.asked().await.answer(calls(&[(READ, "{}")]));
    let (words, record, failed) = agent.told().await;
    assert_eq!((words.as_str(), failed), ("Not finished: the limit of 200 tokens is reached.", true));
    assert_eq!(record, "Calls:\n1. s__read {}: done");
    agent.harness.nothing_forwarded().await;
    // A token count that overflows also exceeds the limit.
    agent.want("x").await;
    agent.asked().await.answer(calls(&[(READ, "{}")]));
    served(&mut agent).await;
    let usage = Usage { input: u64::MAX, output: 1 };
    agent.asked().await.answer(Reply { usage, ..calls(&[(READ, "{}")]) });
    assert_eq!(agent.told().await.0, words);
    // Text that the model has already written is not lost.
    agent.want("x").await;
    agent.asked().await.answer(calls(&[(READ, "{}")]));
    served(&mut agent).await;
    agent.asked().await.answer(says("Done."));
    assert_eq!(agent.told().await.0, "Done.");
}

#[tokio::test(start_paused = true)]
async fn agent_tokens_are_estimated_if_the_model_reports_none() {
    let mut agent = AgentHarness::new().await;
    agent.agree(Limits { tokens: 50, ..LIMITS }, Effect::Reads);
    agent.want("x").await;
    let mut reply = calls(&[(READ, "{}")]);
    reply.usage = Usage::default();
    agent.asked().await.answer(reply);
    assert_eq!(agent.told().await.0, "Not finished: the limit of 50 tokens is reached.");
}

#[tokio::test(start_paused = true)]
async fn at_its_time_limit_an_agent_cancels_its_tool_calls() {
    let mut agent = AgentHarness::new().await;
    agent.want("x").await;
    let begun = Instant::now();
    let mut asked = agent.asked().await;
    let (words, record, failed) = agent.told().await;
    assert_eq!((words.as_str(), failed), ("Not finished: the limit of 120 s is reached.", true));
    assert_eq!(record, "No tool was called.");
    soon("the end of the server request", asked.gone()).await;
    assert!(begun.elapsed() <= LIMITS.time + Duration::from_millis(5), "{:?}", begun.elapsed());

    agent.want("x").await;
    sleep(Duration::from_secs(100)).await;
    agent.asked().await.answer(calls(&[(READ, "{}")]));
    let call = agent.harness.forwarded().await;
    let (_, record, failed) = agent.told().await;
    assert_eq!(record, "Calls:\n1. s__read {}: cancelled; it may have been done all the same");
    assert_eq!((agent.harness.cancelled().await.0, failed), (call.ticket(), true));
}

#[tokio::test(start_paused = true)]
async fn an_agent_retries_when_the_model_says() {
    let mut agent = AgentHarness::new().await;
    let limited = |pause| ModelError::RateLimited { retry_after: pause, message: "slow down".to_owned() };
    agent.want("x").await;
    let begun = Instant::now();
    agent.asked().await.fail(limited(Some(Duration::from_secs(9))));
    agent.asked().await.answer(says("Now."));
    assert_eq!(begun.elapsed().as_secs(), 9);
    assert_eq!(agent.told().await.0, "Now.");
    // A failure that names no pause is also retried, but not without end.
    agent.want("x").await;
    let begun = Instant::now();
    agent.asked().await.fail(limited(None));
    agent.asked().await.fail(ModelError::BrokenOff);
    agent.asked().await.answer(says("Now."));
    assert_eq!((begun.elapsed().as_millis(), agent.told().await.0.as_str()), (3500, "Now."));
    for (times, pause) in [(3, None), (1, Some(LIMITS.time)), (1, Some(Duration::MAX))] {
        agent.want("x").await;
        for _ in 0..times {
            agent.asked().await.fail(limited(pause));
        }
        let (words, _, failed) = agent.told().await;
        assert!(failed && words.contains("it is asked too often") && words.contains("slow down"), "{words}");
    }
}
