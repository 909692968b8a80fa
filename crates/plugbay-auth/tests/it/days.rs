//! Thirty simulated days: sixteen processes share one login whose tokens live for ten minutes.
//!
//! Access tokens live for 600 s, and a refresh token can be used once: a second use revokes the grant, and
//! the test fails. Meanwhile the authorization server fails, processes are killed, and the machine's clock
//! jumps.
//!
//! An answer with a rotated refresh token can get lost: the connection breaks, or the waiting process is
//! killed. No client can prevent that. Like most real servers, the scripted one accepts the predecessor for a
//! short time (60 s).

mod child;
mod worker;

use std::{
    io::Write as _,
    os::unix::fs::FileExt as _,
    time::{Duration, Instant},
};

use self::worker::{Reply, Worker};
use crate::{
    bench::Bench,
    scripted::{START, Site, Trouble},
};

const DAYS: u64 = 30;
const PROCESSES: usize = 16;
const LIFE: u64 = 600;
/// A token is refreshed at 80% of its lifetime.
const DUE: u64 = LIFE / 5 * 4;
/// The longest pause after a failed renewal, plus a second.
const PAUSE: u64 = 61;
/// The jumps of the machine's clock, in seconds.
const JUMPS: [i64; 6] = [-3600, 24 * 3600, -300, 300, -24 * 3600, 3600];

#[tokio::test]
async fn thirty_days_of_refresh_tokens_in_sixteen_processes() {
    let began = Instant::now();
    let mut days = Days::start().await;
    while days.site.now() < START + DAYS * 24 * 3600 {
        days.moment().await;
    }
    days.settle().await;
    days.verdict(began);
}

/// The simulation.
struct Days {
    site: Site,
    bench: Bench,
    workers: Vec<Worker>,
    /// The file that all processes read the time from.
    clock: std::fs::File,
    /// The error of the machine's clock, in seconds.
    offset: i64,
    random: Random,
    /// The time from which no request may fail.
    calm: u64,
    /// When the authorization server's trouble ends.
    trouble_until: Option<u64>,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Figures {
    moments: usize,
    requests: usize,
    failed: usize,
    outages: usize,
    kills: usize,
    kills_of_holders: usize,
    lost_answers: usize,
    jumps: usize,
}

impl Days {
    async fn start() -> Self {
        let site = Site::start().await;
        site.script().grants.life = LIFE;
        let bench = Bench::new(&site);
        bench.logged_in().await;
        let path = bench.folder.path().join("clock");
        let clock = std::fs::File::create(&path).unwrap();
        let mut days = Self {
            site,
            bench,
            workers: Vec::new(),
            clock,
            offset: 0,
            random: Random(0x5eed),
            calm: START,
            trouble_until: None,
            figures: Figures::default(),
        };
        days.pass(0);
        for _ in 0..PROCESSES {
            days.workers.push(Worker::start(&days.bench, &path));
        }
        days
    }

    /// Lets time pass, for the authorization server and on this machine.
    fn pass(&mut self, seconds: u64) {
        self.site.pass(seconds);
        let now = self.site.now().checked_add_signed(self.offset).unwrap();
        self.clock.write_all_at(&now.to_le_bytes(), 0).unwrap();
    }

    /// Lets some time pass, perhaps makes something happen, and makes some processes send requests.
    async fn moment(&mut self) {
        self.figures.moments += 1;
        let gap = match self.random.below(10) {
            0..5 => 1 + self.random.below(240),
            5..8 => 240 + self.random.below(1260),
            _ => 1500 + self.random.below(26_500),
        };
        self.pass(gap);
        if self.trouble_until.is_some_and(|until| self.site.now() >= until) {
            self.end_trouble().await;
        }
        if self.trouble_until.is_none() {
            match self.random.below(100) {
                0..6 => self.begin_trouble(),
                6..9 => self.kill().await,
                9..11 => self.kill_holder(Trouble::Held).await,
                11..13 => self.kill_holder(Trouble::HeldAfter).await,
                13..16 => self.lose_answer().await,
                16..18 => self.jump().await,
                _ => {}
            }
        }
        let most = if self.random.below(10) == 0 { PROCESSES as u64 } else { 8 };
        let count = 1 + self.random.below(most);
        self.requests(usize::try_from(count).unwrap(), "call").await;
    }

    /// Makes this many processes send requests at the same time.
    async fn requests(&mut self, count: usize, command: &str) {
        let first = usize::try_from(self.random.below(PROCESSES as u64)).unwrap();
        let chosen: Vec<usize> = (first..first + count).map(|number| number % PROCESSES).collect();
        for &number in &chosen {
            self.workers[number].send(command).await;
        }
        for &number in &chosen {
            let reply = self.workers[number].reply().await;
            self.judge(&reply);
        }
    }

    fn judge(&mut self, reply: &Reply) {
        self.figures.requests += 1;
        let is_calm = self.trouble_until.is_none() && self.site.now() >= self.calm;
        match reply {
            Reply::Done => {}
            Reply::Failed(_) if !is_calm => self.figures.failed += 1,
            other => panic!("{other:?} after {} s: {:?}", self.site.now() - START, self.figures),
        }
    }

    /// Waits until no process is renewing a token.
    async fn settle(&mut self) {
        for worker in &mut self.workers {
            worker.send("settle").await;
        }
        for worker in &mut self.workers {
            assert_eq!(worker.reply().await, Reply::Done);
        }
    }

    fn begin_trouble(&mut self) {
        self.figures.outages += 1;
        let trouble = match self.random.below(3) {
            0 => Trouble::Killed,
            1 => Trouble::Unavailable,
            _ => Trouble::Slow(Duration::from_millis(20)),
        };
        self.site.trouble(trouble);
        self.trouble_until = Some(self.site.now() + 60 + self.random.below(7200));
    }

    async fn end_trouble(&mut self) {
        self.site.trouble(Trouble::None);
        self.trouble_until = None;
        // A process may not know of its failure yet; its pause begins then.
        self.settle().await;
        self.calm = self.site.now() + PAUSE;
    }

    /// Kills a process in the middle of its request; it may be renewing the token.
    async fn kill(&mut self) {
        self.settle().await;
        self.figures.kills += 1;
        let victim = usize::try_from(self.random.below(PROCESSES as u64)).unwrap();
        self.workers[victim].send("call").await;
        self.replace(victim).await;
        self.recover().await;
    }

    /// Kills the process that holds the lock of the store, while others wait for it.
    async fn kill_holder(&mut self, trouble: Trouble) {
        self.settle().await;
        self.figures.kills_of_holders += 1;
        self.pass(LIFE + 100);
        self.site.trouble(trouble);
        let holder = usize::try_from(self.random.below(PROCESSES as u64)).unwrap();
        self.workers[holder].send("call").await;
        self.site.held(1).await;
        let others: Vec<usize> = (1..6).map(|more| (holder + more) % PROCESSES).collect();
        for &other in &others {
            self.workers[other].send("call").await;
        }
        self.replace(holder).await;
        self.site.trouble(Trouble::None);
        for &other in &others {
            let reply = self.workers[other].reply().await;
            self.judge(&reply);
        }
        self.recover().await;
    }

    /// The authorization server refreshes, and the connection breaks in the middle of its answer.
    async fn lose_answer(&mut self) {
        self.settle().await;
        self.figures.lost_answers += 1;
        self.pass(LIFE + 100);
        let bytes = usize::try_from(self.random.below(150)).unwrap();
        self.site.trouble(Trouble::Broken(bytes));
        self.workers[0].send("call").await;
        assert!(matches!(self.workers[0].reply().await, Reply::Failed(_)), "its answer was lost");
        self.site.trouble(Trouble::None);
        self.calm = self.site.now() + PAUSE;
        self.recover().await;
    }

    /// Makes a request seconds after an answer got lost, within the server's grace.
    async fn recover(&mut self) {
        self.pass(3);
        self.requests(4, "call settle").await;
    }

    async fn replace(&mut self, number: usize) {
        let new = Worker::start(&self.bench, &self.bench.folder.path().join("clock"));
        std::mem::replace(&mut self.workers[number], new).kill().await;
    }

    /// Makes the machine's clock jump.
    async fn jump(&mut self) {
        self.settle().await;
        self.figures.jumps += 1;
        self.offset += JUMPS[self.figures.jumps % JUMPS.len()];
        self.pass(0);
    }

    fn verdict(&self, began: Instant) {
        let authorized = self.site.paths().iter().filter(|path| *path == "/authorize").count();
        assert_eq!(authorized, 1, "the user has logged in once");
        let grants = &self.site.script().grants;
        let mut early = 0;
        let mut last = START;
        for &at in &grants.refreshed {
            early += usize::from(at - last < DUE);
            last = at;
        }
        let figures = &self.figures;
        let _ = writeln!(
            std::io::stderr(),
            "{DAYS} days, {PROCESSES} processes in {:.1} s: {} refreshes ({early} early, {} within the grace), {figures:?}",
            began.elapsed().as_secs_f32(),
            grants.refreshed.len(),
            grants.graced,
        );
        assert_eq!((grants.logins, grants.registered, grants.reused), (1, 1, 0));
        // A lost answer and a clock jump cost one refresh each; all others are as far apart as possible.
        let losses = figures.lost_answers + figures.kills + figures.kills_of_holders;
        assert!(grants.graced <= losses, "{} refresh tokens were used again", grants.graced);
        assert!(early <= grants.graced + figures.jumps, "{early} refreshes were early");
        assert!(figures.jumps > 5 && figures.kills > 10 && figures.kills_of_holders > 10, "{figures:?}");
        assert!(figures.outages > 20 && figures.lost_answers > 5, "{figures:?}");
        assert!(!crate::log::text().contains(crate::scripted::SECRET));
    }
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
