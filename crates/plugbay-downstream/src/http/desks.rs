//! The desks of modern hosts: such a host has no session, so what it switches on belongs to a name in its URL.
//! Without one it has at least the same mode in each request, by what it calls itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::Uri;
use tokio::time::Instant;

use crate::{
    desk::{Desk, Lasting},
    seal::Owner,
};

const LIMIT: usize = 1024;
const LONGEST_NAME: usize = 64;
/// Whoever has not come for so long is not taken to be here any more,
const AWAY: Duration = Duration::from_secs(3600);
/// and a desk that nobody has used for so long is cleared.
const IDLE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct Desks(Mutex<HashMap<Place, Used>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    owner: Owner,
    /// The name of the desk, or of the host.
    name: String,
    lasting: Lasting,
}

#[derive(Debug)]
struct Used {
    desk: Arc<Desk>,
    at: Instant,
}

impl Desks {
    /// The one that `?desk=NAME` names, for this caller alone; without a name, one where nothing stays on.
    pub(super) fn of(&self, owner: Owner, uri: &Uri, client: Option<&str>) -> Arc<Desk> {
        let (name, lasting) = match named(uri) {
            Some(name) => (name, Lasting::Named),
            None => (client.unwrap_or_default(), Lasting::No),
        };
        let name = name.chars().take(LONGEST_NAME).collect();
        let place = Place { owner, name, lasting };
        let (mut desks, now) = (self.0.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if desks.len() >= LIMIT
            && !desks.contains_key(&place)
            && let Some(oldest) = desks.iter().min_by_key(|(_, used)| used.at).map(|(key, _)| key.clone())
        {
            desks.remove(&oldest);
        }
        let used = desks.entry(place);
        let used = used.or_insert_with(|| Used { desk: Arc::new(Desk::new(lasting)), at: now });
        used.at = now;
        Arc::clone(&used.desk)
    }

    pub(super) fn sweep(&self, now: Instant) {
        let mut desks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        desks.retain(|_, used| {
            let idle = now.duration_since(used.at);
            if idle >= AWAY {
                used.desk.rise();
            }
            idle < IDLE
        });
    }
}

fn named(uri: &Uri) -> Option<&str> {
    let values = uri.query()?.split('&').filter_map(|pair| pair.strip_prefix("desk="));
    values.into_iter().find(|name| !name.is_empty() && name.len() <= LONGEST_NAME)
}

#[cfg(test)]
mod tests {
    use plugbay_core::era::Era;

    use super::*;
    use crate::guests::{Guests, Introduction};

    #[tokio::test(start_paused = true)]
    async fn a_name_leads_its_caller_to_the_same_desk() {
        let desks = Desks::default();
        let of =
            |owner: u8, uri: &'static str| desks.of(Owner([owner; 32]), &Uri::from_static(uri), Some("host"));
        let mine = of(1, "/mcp?desk=a");
        assert!(mine.is_lasting() && Arc::ptr_eq(&mine, &of(1, "/mcp?x=y&desk=a")));
        assert!(!Arc::ptr_eq(&mine, &of(2, "/mcp?desk=a")) && !Arc::ptr_eq(&mine, &of(1, "/mcp?desk=b")));
        for unnamed in ["/mcp", "/mcp?desk=", "/mcp?adesk=a"] {
            assert!(!of(1, unnamed).is_lasting(), "{unnamed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_not_come_for_long_is_not_here_and_may_come_back() {
        let (desks, guests) = (Desks::default(), Guests::default());
        let come = || {
            let host = Introduction { name: Some("host".into()), version: None, era: Era::Modern };
            desks.of(Owner::default(), &Uri::from_static("/mcp"), Some("host")).sit(&host, &guests);
        };
        for _ in 0..2 {
            come();
            desks.sweep(Instant::now());
            assert_eq!(guests.watch().borrow().len(), 1);
            tokio::time::advance(AWAY).await;
            desks.sweep(Instant::now());
            assert!(guests.watch().borrow().is_empty());
        }
        assert_eq!(desks.0.lock().unwrap().len(), 1, "the desk is left as it was");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_gives_way_when_there_are_too_many() {
        let desks = Desks::default();
        let of =
            |name: usize| desks.of(Owner::default(), &format!("/mcp?desk={name}").parse().unwrap(), None);
        let first = of(0);
        for name in 1..LIMIT {
            tokio::time::advance(Duration::from_millis(1)).await;
            of(name);
        }
        assert!(Arc::ptr_eq(&first, &of(0)), "who comes back to the oldest finds it");
        for name in 1..=LIMIT {
            tokio::time::advance(Duration::from_millis(1)).await;
            of(name);
        }
        assert_eq!(desks.0.lock().unwrap().len(), LIMIT);
        assert!(!Arc::ptr_eq(&first, &of(0)));
    }
}
