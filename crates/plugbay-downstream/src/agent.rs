//! Agent runs: a sentence becomes tool calls. A language model of the user's choice decides which calls to
//! make. The gateway makes them as if the host had, and answers with the model's text and a record of the
//! calls.
//!
//! Calls that only read are made without asking. Calls that may change something are made if the
//! configuration allows it, or if the host's user agrees to that very call.

mod outcome;
mod report;
mod toolbox;

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    era::Era,
    model::{ModelError, Prompt, Reply, Stop, ToolCall, ToolResult, Turn, Usage},
    name::ServerName,
    surface::{BuiltinTool, Effect},
    tokens::estimate,
};
use tokio::time::{Instant, sleep, timeout_at};

use self::{
    outcome::Outcome,
    report::{CallStatus, Report, RunError},
    toolbox::Toolbox,
};
pub use crate::agent_settings::{Agents, Limits, Terms};
use crate::{
    context::RequestContext,
    ranking::Chosen,
    respond,
    run::{
        ActiveRun, Ending,
        calls::{PlannedCall, RunningCalls},
        consent,
        host::Host,
    },
};

/// Limit of tokens that the model may write in one turn.
const ANSWER: u32 = 4096;
/// How often the model is asked again after an unreadable answer.
const UNREADABLE_REPLIES: usize = 2;
/// Pauses before the model is asked again after a temporary failure, unless the failure names its own pause.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];

/// A natural-language request, limited to one server if named.
#[derive(Debug)]
pub(crate) struct AgentRequest {
    pub(crate) query: String,
    pub(crate) server: Option<String>,
}

/// Runs the agent and answers the request. Cancelling the request cancels the model request and calls in flight.
pub(crate) fn begin(context: RequestContext<'_>, agent_request: AgentRequest) {
    if context.era == Era::Modern {
        match context.gateway().suspended.resume_run(context) {
            Ok(true) => return,
            Ok(false) => {}
            Err(refusal) => return context.refuse(&refusal),
        }
    }
    // The agent's tools are found by search, so the indexes must be ready.
    context.when_searchable(&context.snapshot(), |context| begin_now(context, agent_request));
}

fn begin_now(context: RequestContext<'_>, agent_request: AgentRequest) {
    let run = |host| async move {
        match AgentRun::prepare(host, agent_request) {
            Ok(agent) => ending(agent.run().await),
            Err(why) => Box::new(move |context: RequestContext<'_>| context.text(&Err(why))),
        }
    };
    ActiveRun::new(context, run).drive(context);
}

fn ending(report: Report) -> Ending {
    Box::new(move |context| {
        let (blocks, failed) = (report.content(), report.has_failed());
        context.answer(respond::tool_content(context.request.id(), context.era, &blocks, failed));
    })
}

struct AgentRun {
    host: Host,
    terms: Arc<Terms>,
    toolbox: Toolbox,
    /// The system prompt.
    role: String,
    query: String,
    deadline: Instant,
    spent: Spent,
    report: Report,
}

#[derive(Default)]
struct Spent {
    calls: usize,
    turns: usize,
    tokens: u64,
    unreadable_replies: usize,
    /// The model has been told that it has no calls left.
    warned: bool,
}

impl AgentRun {
    fn prepare(host: Host, agent_request: AgentRequest) -> Result<Self, String> {
        let session = &host.outer.session;
        let terms = session.gateway().agents.terms();
        let terms =
            terms.ok_or("no language model is chosen: the configuration needs naturalLanguage.model")?;
        if matches!(terms.model, Chosen::Host) && !host.has_sampling_tools() {
            let why = "the host has not declared the capability \"sampling.tools\"";
            return Err(format!("this host's model cannot be asked: {why}"));
        }
        let snapshot = session.snapshot();
        let server = agent_request.server.as_deref().map(|name| {
            let known = snapshot.servers().into_iter();
            let known: Vec<_> = known.filter(|server| snapshot.layout.runs_agents_with(server)).collect();
            let names = || known.iter().map(ServerName::as_str).collect::<Vec<_>>().join(", ");
            // No two server names differ only in case.
            let found = known.iter().find(|server| server.as_str().eq_ignore_ascii_case(name)).cloned();
            found.ok_or_else(|| format!("there is no server {name:?}, but {}", names()))
        });
        let server = server.transpose()?;
        let toolbox =
            Toolbox::select(&snapshot, &agent_request.query, server.as_ref(), session.gateway().table);
        if toolbox.is_empty() {
            let failure =
                server.and_then(|server| Some((snapshot.catalog.failure(&server)?.clone(), server)));
            return Err(match failure {
                Some((failure, server)) => format!("{server} {}", failure.of_server()),
                None => "there is no tool that could be called".to_owned(),
            });
        }
        let role = toolbox.role(&snapshot, terms.instructions.as_deref());
        Ok(Self {
            host,
            toolbox,
            role,
            query: agent_request.query,
            deadline: Instant::now() + terms.limits.time,
            terms,
            spent: Spent::default(),
            report: Report::default(),
        })
    }

    async fn run(mut self) -> Report {
        let end = self.converse().await;
        self.report.ended(end);
        self.report
    }

    /// Alternates model and tool calls until the model calls no more tools. Returns its last text.
    async fn converse(&mut self) -> Result<String, RunError> {
        let mut turns = vec![Turn::User(self.query.clone())];
        loop {
            let Reply { text, calls, stop, .. } = self.ask(&mut turns).await?;
            if calls.is_empty() {
                let cut = if stop == Stop::Limit { " […]" } else { "" };
                return Ok(format!("{text}{cut}"));
            }
            if self.spent.warned {
                return Err(RunError::Calls(self.terms.limits.calls));
            }
            if self.spent.tokens >= self.terms.limits.tokens {
                return Err(RunError::Tokens(self.terms.limits.tokens));
            }
            let results = self.make(&calls).await?;
            turns.extend([Turn::Model { text, calls }, Turn::Results(results)]);
        }
    }

    async fn ask(&mut self, turns: &mut Vec<Turn>) -> Result<Reply, RunError> {
        let limits = self.terms.limits;
        let mut pauses = PAUSES.into_iter();
        loop {
            if self.spent.turns >= limits.turns {
                return Err(RunError::Turns(limits.turns));
            }
            if self.spent.tokens >= limits.tokens {
                return Err(RunError::Tokens(limits.tokens));
            }
            self.spent.turns += 1;
            self.report_progress("asking the model");
            let prompt = Prompt {
                system: Some(self.role.clone()),
                turns: turns.clone(),
                tools: self.toolbox.specs(),
                limit: ANSWER,
            };
            let estimated = estimated_cost(&prompt);
            let reply = timeout_at(self.deadline, self.reply(prompt)).await;
            match reply.map_err(|_| RunError::Time(limits.time))?.and_then(reject_cut_off) {
                Ok(reply) => {
                    self.spend(cost(&reply, estimated));
                    return Ok(reply);
                }
                Err(ModelError::Malformed(why)) if self.spent.unreadable_replies < UNREADABLE_REPLIES => {
                    self.spent.unreadable_replies += 1;
                    self.spend(estimated);
                    turns.push(Turn::User(format!("Your last answer cannot be read: {why}. Try again.")));
                }
                Err(trouble) => {
                    let pause = pause_after(&trouble, &mut pauses).filter(|pause| self.has_time_for(*pause));
                    let Some(pause) = pause else { return Err(RunError::Model(trouble)) };
                    self.report_progress("waiting for the model");
                    sleep(pause).await;
                }
            }
        }
    }

    async fn reply(&mut self, prompt: Prompt) -> Result<Reply, ModelError> {
        match &self.terms.model {
            Chosen::Model(model) => {
                model.ask(prompt, Some(self.host.outer.progress.sentence_reporter())).await
            }
            Chosen::Host => {
                let left = self.deadline.saturating_duration_since(Instant::now());
                let reply = self.host.sample(&prompt).await;
                // Only if the host was away can it answer after the deadline. The clock stood still
                // meanwhile.
                if Instant::now() >= self.deadline {
                    self.deadline = Instant::now() + left;
                }
                reply
            }
        }
    }

    /// Saturating, because the numbers come from a provider.
    fn spend(&mut self, tokens: u64) {
        self.spent.tokens = self.spent.tokens.saturating_add(tokens);
    }

    fn has_time_for(&self, pause: Duration) -> bool {
        Instant::now().checked_add(pause).is_some_and(|then| then < self.deadline)
    }

    /// Makes the calls of one turn, in their order; all at once, if none of them changes anything.
    async fn make(&mut self, calls: &[ToolCall]) -> Result<Vec<ToolResult>, RunError> {
        let mut results = Vec::new();
        let mut ready = Vec::new();
        for call in calls {
            let planned = match self.plan(call).await {
                Ok(planned_call) => {
                    let line = self.report.planned(&planned_call.tool, &planned_call.arguments);
                    ready.push((results.len(), line, planned_call));
                    None
                }
                Err(why) => {
                    let line = self.report.planned(self.toolbox.exposed(&call.name), call.arguments.get());
                    Some(self.report.done(line, Outcome::refused(&why)))
                }
            };
            results.push(planned);
        }
        let together = ready.iter().all(|(_, _, planned_call)| planned_call.effect == Effect::Reads);
        let mut running = RunningCalls::default();
        for (at, line, planned_call) in ready {
            if planned_call.is_stale(&self.host.outer.session.snapshot()) {
                results[at] = Some(
                    self.report.done(line, Outcome::refused("the tool has changed meanwhile, or is gone")),
                );
                continue;
            }
            if Instant::now() >= self.deadline {
                return Err(RunError::Time(self.terms.limits.time));
            }
            self.report_progress(&format!("calling {}", planned_call.tool));
            self.report.begun(line);
            running.begin((at, line), planned_call, &self.host.outer);
            if !together {
                self.gather(&mut running, &mut results).await?;
            }
        }
        self.gather(&mut running, &mut results).await?;
        let outcomes = results.into_iter().flatten();
        Ok(calls.iter().zip(outcomes).map(|(call, outcome)| tool_result(call, outcome)).collect())
    }

    /// Waits for all running calls. Cancels them at the deadline.
    async fn gather(
        &mut self,
        running: &mut RunningCalls<(usize, usize)>,
        results: &mut [Option<Outcome>],
    ) -> Result<(), RunError> {
        let late = |_| RunError::Time(self.terms.limits.time);
        while let Some(((at, line), end)) = timeout_at(self.deadline, running.next()).await.map_err(late)? {
            results[at] = Some(self.report.done(line, Outcome::of(end)));
        }
        Ok(())
    }

    /// Checks, repairs and authorises a call. `Err` is the reason that the model reads.
    async fn plan(&mut self, call: &ToolCall) -> Result<PlannedCall, String> {
        let found = self.toolbox.get(&call.name);
        let found = found.ok_or_else(|| format!("there is no tool {:?}", call.name))?;
        let limit = self.terms.limits.calls;
        if self.spent.calls >= limit {
            self.spent.warned = true;
            return Err(format!("all {limit} calls are used up: answer with what you have"));
        }
        let gateway = self.host.outer.session.gateway();
        let (number, repair) = (gateway.tickets.next(), gateway.settings().repair);
        let planned_call = PlannedCall::new(number, found, call.arguments.get().as_bytes(), repair)?;
        // Calls that the user declines count too, so that the user is not asked without end.
        self.spent.calls += 1;
        if planned_call.effect > self.terms.unasked {
            self.consent(&planned_call).await?;
        }
        Ok(planned_call)
    }

    /// Asks the user to consent. The clock stands still meanwhile.
    async fn consent(&mut self, planned_call: &PlannedCall) -> Result<(), String> {
        self.report_progress(&format!("asking whether {} may be called", planned_call.tool));
        let begun = Instant::now();
        let remedy = match planned_call.effect {
            Effect::Destroys => "naturalLanguage.allowDestructive",
            Effect::Reads | Effect::Writes => "naturalLanguage.allowWrites",
        };
        let by = BuiltinTool::NaturalLanguage;
        let answer = consent::obtain(planned_call, &mut self.host, by, remedy).await;
        self.deadline += begun.elapsed();
        answer
    }

    fn report_progress(&self, what: &str) {
        self.host.outer.progress.report(what);
    }
}

/// The pause before the model is asked again, if asking again makes sense. Nothing was done yet, so nothing
/// can be done twice.
fn pause_after(trouble: &ModelError, pauses: &mut impl Iterator<Item = Duration>) -> Option<Duration> {
    match trouble {
        ModelError::RateLimited { retry_after: Some(pause), .. } => Some(*pause),
        trouble if trouble.is_passing() => pauses.next(),
        _ => None,
    }
}

/// Rejects an answer that was cut off within its calls: the last call may look whole, and half a path is a
/// path too.
fn reject_cut_off(reply: Reply) -> Result<Reply, ModelError> {
    if reply.stop == Stop::Limit && !reply.calls.is_empty() {
        let why = format!("it was cut off after {ANSWER} tokens, and none of its calls was made");
        return Err(ModelError::Malformed(why));
    }
    Ok(reply)
}

/// The result of a call for the model.
fn tool_result(call: &ToolCall, outcome: Outcome) -> ToolResult {
    ToolResult {
        call: call.id.clone(),
        name: call.name.clone(),
        text: outcome.text,
        failed: outcome.status != CallStatus::Done,
    }
}

/// The tokens that the provider reports, or an estimate: hosts report none.
fn cost(reply: &Reply, estimated: u64) -> u64 {
    if reply.usage != Usage::default() {
        return reply.usage.input.saturating_add(reply.usage.output);
    }
    let calls = reply.calls.iter().map(|call| estimate(call.arguments.get()));
    estimated + (estimate(&reply.text) + calls.sum::<usize>()) as u64
}

fn estimated_cost(prompt: &Prompt) -> u64 {
    let turns = prompt.turns.iter().map(|turn| match turn {
        Turn::User(text) => estimate(text),
        Turn::Model { text, calls } => {
            estimate(text) + calls.iter().map(|call| estimate(call.arguments.get())).sum::<usize>()
        }
        Turn::Results(results) => results.iter().map(|result| estimate(&result.text)).sum(),
    });
    let tools = prompt.tools.iter().map(|tool| estimate(&tool.description) + estimate(tool.schema.get()));
    let system = prompt.system.as_deref().map(estimate).unwrap_or_default();
    (system + turns.sum::<usize>() + tools.sum::<usize>()) as u64
}
