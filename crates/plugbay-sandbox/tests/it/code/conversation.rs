//! The conversation with a script: order, sizes, ends.

use std::{process::Command, time::Duration};

use bytes::Bytes;
use libtest_mimic::Trial;
use plugbay_sandbox::{
    Answer, Call, CodeFailure, Event, Limits, Reading, Run, RunLimits, Sandbox, Script, Settings,
};

use super::play::{answer, block_on, play, play_in, plenty, script, told};
use crate::{
    corpus::{PLENTY, SHORT, sandbox},
    limits::children,
};

const TESTS: [(&str, fn()); 13] = [
    ("a_replayed_script_makes_the_same_calls", a_replayed_script_makes_the_same_calls),
    ("answers_may_come_in_any_order", answers_may_come_in_any_order),
    ("answers_that_wait_are_not_waited_for", answers_that_wait_are_not_waited_for),
    ("large_answers_and_arguments_cross", large_answers_and_arguments_cross),
    ("the_next_event_may_be_cancelled_at_any_time", the_next_event_may_be_cancelled_at_any_time),
    ("text_comes_before_the_call_that_follows_it", text_comes_before_the_call_that_follows_it),
    ("waiting_for_answers_is_not_computing", waiting_for_answers_is_not_computing),
    ("the_end_stays_the_end", the_end_stays_the_end),
    ("scripts_do_not_take_the_turns_of_filters", scripts_do_not_take_the_turns_of_filters),
    ("a_program_that_is_none_of_ours_runs_no_script", a_program_that_is_none_of_ours_runs_no_script),
    ("a_spare_child_serves_filters_and_scripts", a_spare_child_serves_filters_and_scripts),
    ("the_confinement_of_a_run_is_told", the_confinement_of_a_run_is_told),
    ("the_seed_and_the_time_are_those_of_the_script", the_seed_and_the_time_are_those_of_the_script),
];

/// These tests examine the children of their process, so each needs its own.
pub(crate) const ALONE: [(&str, fn()); 3] = [
    ("a_run_that_is_dropped_leaves_no_process", a_run_that_is_dropped_leaves_no_process),
    ("a_killed_process_is_told", a_killed_process_is_told),
    ("endless_scripts_leave_nothing_behind", endless_scripts_leave_nothing_behind),
];

pub(super) fn trials() -> Vec<Trial> {
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(format!("code::{name}"), move || {
            test();
            Ok(())
        })
    };
    TESTS.into_iter().map(trial).collect()
}

async fn run(code: &str) -> Run {
    sandbox().code(script(code), plenty()).await.unwrap()
}

async fn next_call(run: &mut Run) -> Call {
    match run.next().await {
        Event::Call(call) => call,
        event => panic!("{event:?} instead of a call"),
    }
}

fn done(value: &str) -> Event {
    Event::Done(Bytes::copy_from_slice(value.as_bytes()))
}

fn number(value: u32) -> Answer {
    Answer::Value(value.to_string().into())
}

fn a_replayed_script_makes_the_same_calls() {
    let code = "
        const seen = new Map();
        const one = async (n) => {
          const id = Math.floor(Math.random() * 1e9);
          const { rows } = await tools.test.rows({ count: n, id, at: Date.now() });
          for (const row of rows) seen.set(row.id + ':' + id, await tools.test.echo({ ...row, chance: Math.random() }));
          return rows.length;
        };
        const counts = await Promise.all([3, 1, 2].map(one));
        try { await tools.test.fail({ counts }) } catch (error) { console.log(error.stack) }
        const garbage = Array.from({ length: 20000 }, () => ({ a: [Math.random()] }));
        await tools.test.echo({ keys: [...seen.keys()].sort(), last: garbage.at(-1).a[0] });
        return [...seen]";
    let [first, second] = [0, 1].map(|_| play(script(code), plenty(), false));
    assert_eq!(first, second);
    assert_eq!(first.calls.len(), 3 + 6 + 2, "{first:?}");
    let other = play(Script { seed: 8, ..script(code) }, plenty(), false);
    assert_ne!(first.calls, other.calls, "another seed is another chance");
}

fn the_seed_and_the_time_are_those_of_the_script() {
    let code = "[Date.now(), new Date().getTime(), Math.random()]";
    let ends = [(1, 2), (1, 3), (2, 2), (u64::MAX, -5)]
        .map(|(seed, now)| play(Script { seed, now, ..script(code) }, plenty(), false).end.unwrap());
    assert!(ends[0].starts_with("[2,2,0.") && ends[3].starts_with("[-5,-5,0."), "{ends:?}");
    assert_eq!(ends[0].split(',').nth(2), ends[1].split(',').nth(2));
    assert_ne!(ends[0], ends[2]);
}

fn answers_may_come_in_any_order() {
    block_on(async {
        let code = "const order = [];
            const values = await Promise.all([0, 1, 2].map(async (n) => {
              const value = await tools.test.echo({ n });
              order.push(n);
              return value;
            }));
            return [order, values]";
        let mut run = run(code).await;
        for expected in 0..3 {
            assert_eq!(next_call(&mut run).await.number, expected);
        }
        assert_eq!(run.next().await, Event::Waiting);
        for number_of_call in [2, 0] {
            run.answer(number_of_call, number(number_of_call * 10));
            assert_eq!(run.next().await, Event::Waiting);
        }
        run.answer(1, number(10));
        assert_eq!(run.next().await, done("[[2,0,1],[0,10,20]]"));
    });
}

fn answers_that_wait_are_not_waited_for() {
    block_on(async {
        let mut run =
            run("for (let n = 0; n < 3; n += 1) await Promise.all([tools.a.b({ n }), tools.a.b({ n })])")
                .await;
        let mut events = Vec::new();
        for round in 0..3 {
            let numbers = [next_call(&mut run).await.number, next_call(&mut run).await.number];
            assert_eq!(numbers, [round * 2, round * 2 + 1]);
            assert_eq!(run.next().await, Event::Waiting);
            for call in numbers {
                run.answer(call, number(1));
            }
            events.push(numbers);
        }
        // Between the two answers of a round, the script sends nothing.
        assert_eq!(run.next().await, done(""), "{events:?}");
    });
}

/// Both directions are full at the same time, and neither side may wait for the other.
fn large_answers_and_arguments_cross() {
    block_on(async {
        let size = 16 * 1024 * 1024 - 100;
        let code = format!(
            "const big = 'x'.repeat({size});
             const calls = [tools.test.echo({{ n: 0 }}), tools.test.echo({{ big }}), tools.test.echo({{ big }})];
             const [first] = await Promise.all(calls);
             return first.text.length"
        );
        let mut run = run(&code).await;
        let raw =
            Bytes::from(format!(r#"{{"content":[],"structuredContent":{{"text":"{}"}}}}"#, "y".repeat(size)));
        let large = Answer::Result { raw, read: Reading::Structured };
        let first = next_call(&mut run).await.number;
        // Queued while the child still writes its own arguments.
        run.answer(first, large.clone());
        for expected in 1..3 {
            let call = next_call(&mut run).await;
            assert_eq!((call.number, call.arguments.len()), (expected, size + r#"{"big":""}"#.len()));
            run.answer(call.number, large.clone());
        }
        assert_eq!(run.next().await, done(&size.to_string()));
    });
}

fn the_next_event_may_be_cancelled_at_any_time() {
    block_on(async {
        let code = "let n = 0;
            for (let i = 0; i < 20; i += 1) {
              console.log('x'.repeat(10000));
              n += (await tools.test.echo({ pad: 'y'.repeat(100000) })).pad.length;
            }
            return n";
        let mut run = run(code).await;
        let (mut text, mut calls) = (0, 0);
        loop {
            let event = tokio::select! {
                biased;
                event = run.next() => event,
                () = tokio::task::yield_now() => continue,
            };
            match event {
                Event::Call(call) => {
                    calls += 1;
                    run.answer(call.number, answer(&call));
                }
                Event::Text(piece) => text += piece.len(),
                Event::Waiting => {}
                end => {
                    assert_eq!(end, done("2000000"));
                    break;
                }
            }
        }
        assert_eq!((text, calls), (20 * 10001, 20));
    });
}

fn text_comes_before_the_call_that_follows_it() {
    block_on(async {
        let mut run = run("text('ä'); await tools.a.b(); text('b'); text('c'); return 1").await;
        assert_eq!(run.next().await, Event::Text("ä\n".into()));
        let call = next_call(&mut run).await;
        assert_eq!(told(&call), "a.b {}");
        assert_eq!(run.next().await, Event::Waiting);
        run.answer(0, Answer::Unknown);
        assert_eq!(run.next().await, Event::Text("b\nc\n".into()));
        assert_eq!(run.next().await, done("1"));
    });
}

fn waiting_for_answers_is_not_computing() {
    block_on(async {
        let limits = RunLimits { compute: Duration::from_secs(2), ..RunLimits::default() };
        let mut run = sandbox().code(script("await tools.a.b()"), limits).await.unwrap();
        next_call(&mut run).await;
        assert_eq!(run.next().await, Event::Waiting);
        let waited = tokio::time::timeout(limits.compute + SHORT, run.next()).await;
        assert!(waited.is_err(), "{waited:?}");
        run.answer(0, number(5));
        assert_eq!(run.next().await, done("5"));
    });
}

fn the_end_stays_the_end() {
    block_on(async {
        let mut run = run("tools.a.b(); throw new Error('x')").await;
        next_call(&mut run).await;
        let end = run.next().await;
        assert!(matches!(end, Event::Failed(CodeFailure::Thrown { .. })), "{end:?}");
        run.answer(0, Answer::Unknown);
        assert_eq!(run.next().await, end);
    });
}

fn scripts_do_not_take_the_turns_of_filters() {
    block_on(async {
        let program = std::env::current_exe().unwrap();
        let settings = Settings { jobs: 1, runs: 1, spare: Duration::ZERO, ..Settings::new(program) };
        let sandbox = Sandbox::new(settings);
        let first = sandbox.code(script("await tools.a.b()"), plenty()).await.unwrap();
        let short = RunLimits { compute: SHORT, ..RunLimits::default() };
        assert_eq!(sandbox.code(script("1"), short).await.unwrap_err(), CodeFailure::Busy);
        let limits = Limits { deadline: PLENTY, ..Limits::default() };
        assert_eq!(sandbox.jq(".", Bytes::from_static(b"1"), limits).await.unwrap().output, "1\n");
        assert!(sandbox.reach("tools.a.b()").await.unwrap().is_complete);
        drop(first);
        assert_eq!(play_in(&sandbox, script("2"), plenty(), false).await.end.unwrap(), "2");
    });
}

fn a_program_that_is_none_of_ours_runs_no_script() {
    for program in ["/bin/cat", "/bin/true", "/nowhere/plugbay"] {
        let sandbox = Sandbox::new(Settings::new(program.into()));
        let failure = block_on(sandbox.code(script("1"), plenty())).unwrap_err();
        assert!(matches!(failure, CodeFailure::Unavailable(_)), "{program}: {failure:?}");
        assert!(!failure.is_about_the_script());
    }
}

fn a_spare_child_serves_filters_and_scripts() {
    block_on(async {
        let program = std::env::current_exe().unwrap();
        let sandbox = Sandbox::new(Settings { spare: PLENTY, ..Settings::new(program) });
        sandbox.prepare();
        let limits = Limits { deadline: PLENTY, ..Limits::default() };
        for round in 0..3 {
            let code = format!("(await tools.test.echo({{ n: {round} }})).n");
            let played = play_in(&sandbox, script(&code), plenty(), false).await;
            assert_eq!(played.end, Ok(round.to_string()));
            let outcome = sandbox.jq(". + 1", Bytes::from(round.to_string()), limits).await.unwrap();
            assert_eq!(outcome.output, format!("{}\n", round + 1));
        }
    });
}

fn the_confinement_of_a_run_is_told() {
    block_on(async {
        let run = run("1").await;
        assert_eq!(run.confinement(), sandbox().confinement().await.unwrap());
        assert!(run.confinement().limits);
    });
}

/// Waits until no process is left that this one has started.
async fn all_gone() {
    let start = std::time::Instant::now();
    while !children().is_empty() {
        assert!(start.elapsed() < PLENTY, "{:?}", children());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn a_run_that_is_dropped_leaves_no_process() {
    block_on(async {
        for code in ["await tools.a.b()", "for (;;);", "for (;;) console.log('x'.repeat(1000))"] {
            let mut run = run(code).await;
            if code.starts_with("await") {
                next_call(&mut run).await;
            }
            drop(run);
        }
        all_gone().await;
    });
}

fn a_killed_process_is_told() {
    let kill = || {
        let killed = Command::new("kill").arg("-9").args(children()).status().unwrap();
        assert!(killed.success());
    };
    block_on(async {
        if children().is_empty() && cfg!(not(target_os = "linux")) {
            return;
        }
        let mut run = run("await tools.a.b()").await;
        next_call(&mut run).await;
        assert_eq!(run.next().await, Event::Waiting);
        kill();
        let Event::Failed(failure) = run.next().await else { panic!("it goes on") };
        assert!(matches!(failure, CodeFailure::Died(_)) && !failure.is_about_the_script(), "{failure:?}");
        all_gone().await;
    });
}

fn endless_scripts_leave_nothing_behind() {
    block_on(async {
        let sandbox = sandbox();
        let limits = RunLimits { compute: Duration::from_millis(30), ..RunLimits::default() };
        for _ in 0..20 {
            let played = play_in(&sandbox, script("for (;;);"), limits, false).await;
            assert_eq!(played.end, Err(CodeFailure::TooSlow(limits.compute)));
        }
        all_gone().await;
    });
}
