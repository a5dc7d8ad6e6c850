//! Guards (promise P5) stand still while a call acts on a name that one may take.
//!
//! A guard that comes or goes gives the file that it stands for another name. So a call finds out where that file is, and then acts,
//! and no guard may move between the two:
//!
//! | the call | the daemon |
//! |---|---|
//! | notes how often guards have moved, and finds out where the file is | says that one moves: the number is odd |
//! | counts itself among those that act | waits until nobody acts |
//! | acts if no guard has moved since its note, or else begins anew | moves the guard; the number is even again |
//!
//! One of the two sees the other, whoever is first. To act is one system call, so nobody waits long, and whoever acts waits for nothing
//! that the daemon does.
//!
//! What may not be trusted: that either goes on. Of a process that died nothing counts. While one is stopped in the middle of its
//! system call no guard moves, which is an error for whoever wants it to. A daemon that died over a move has a successor, and until then
//! no guard moves.

use core::sync::atomic::Ordering::SeqCst;
#[cfg(feature = "std")]
use std::time::{Duration, Instant};

use seawall_wire::shm::Client;

use crate::{Engine, Owner};

/// How long a move is waited for: a daemon that was stopped over it is not. And how often one looks.
const LOOKS: u32 = 20_000;
const LOOK_NS: u64 = 50_000;

/// How long the daemon waits for those that act.
#[cfg(feature = "std")]
const PATIENCE: Duration = Duration::from_secs(2);

/// The guards of one log, as far as they move or stand still.
#[derive(Clone, Copy)]
pub struct Guards<'e>(&'e Engine);

/// No guard moves as long as this lives.
pub struct Still<'s>(Client<'s>);

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.0.at_guards().fetch_sub(1, SeqCst);
    }
}

/// A guard may move: until this is dropped nobody acts.
#[cfg(feature = "std")]
pub struct Moving<'e>(&'e Engine);

#[cfg(feature = "std")]
impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.shm().header().guard_moves().fetch_add(1, SeqCst);
    }
}

/// Process `pid` has been acting for so long that no guard could move.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acting {
    /// As the daemon sees it.
    pub pid: u32,
}

impl Engine {
    /// The guards of this log.
    pub fn guards(&self) -> Guards<'_> {
        Guards(self)
    }
}

impl<'e> Guards<'e> {
    /// How often guards have moved, once none does. `nap` sleeps for so many nanoseconds.
    pub fn wait(self, nap: impl Fn(u64)) -> u64 {
        for _ in 0..LOOKS {
            if let Some(moves) = self.at_rest() {
                return moves;
            }
            nap(LOOK_NS);
        }
        self.moves()
    }

    /// How often guards have moved. `None` while one does.
    pub fn at_rest(self) -> Option<u64> {
        let moves = self.moves();
        (moves.is_multiple_of(2) || !self.0.has_daemon()).then_some(moves)
    }

    /// The same, also while one does.
    pub fn moves(self) -> u64 {
        self.0.shm().header().guard_moves().load(SeqCst)
    }

    /// Keeps them where they are, if none has moved since they had moved so often. `who` acts, and asks the daemon for nothing meanwhile.
    pub fn stand_still(self, who: Owner, since: u64) -> Option<Still<'e>> {
        let client = self.0.shm().client(who.client())?;
        client.at_guards().fetch_add(1, SeqCst);
        let still = Still(client);
        (self.moves() == since).then_some(still)
    }

    /// For the daemon, and one thread of it at a time: nobody acts until the result is dropped.
    ///
    /// # Errors
    /// Somebody did so for two seconds.
    #[cfg(feature = "std")]
    pub fn moving(self) -> Result<Moving<'e>, Acting> {
        let moves = self.0.shm().header().guard_moves();
        // A daemon that died in between left it odd. It is another number in any case.
        let now = moves.load(SeqCst);
        moves.store(now + 1 + now % 2, SeqCst);
        let moving = Moving(self.0);
        let until = Instant::now() + PATIENCE;
        let mut acting = self.acting();
        while let Some(pid) = acting {
            if Instant::now() > until {
                return Err(Acting { pid });
            }
            std::thread::sleep(Duration::from_nanos(LOOK_NS));
            acting = self.acting();
        }
        Ok(moving)
    }

    /// A living process that acts.
    #[cfg(feature = "std")]
    fn acting(self) -> Option<u32> {
        let shm = self.0.shm();
        let mut clients = (0..shm.shape().clients).filter_map(|i| Some((i, shm.client(i)?)));
        let acts = |(number, client): &(u32, Client<'_>)| {
            client.at_guards().load(SeqCst) != 0 && !Owner::new(*number, 0).is_dead(shm)
        };
        clients.find(acts).map(|(_, client)| client.pid().load(SeqCst))
    }
}
