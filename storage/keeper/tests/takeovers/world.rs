//! All of them, and what must hold.

use std::collections::BTreeMap;

use seawall_keeper::quorum::{self, Quorum};
use seawall_keeper::turn;
use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Position, State};

use crate::host::{Host, Phase};
use crate::keeper::{Conn, Keeper};
use crate::pipe::Pipe;
use crate::scratch::{COMMITS, Commit, Scratch, line_of};
use crate::volume::Volume;
use fastrand::Rng;

thread_local! {
    static SCRATCH: Scratch = Scratch::new();
}

pub struct World {
    seed: u64,
    rng: Rng,
    keepers: Vec<Keeper>,
    quorum: Quorum,
    hosts: Vec<Host>,
    conns: Vec<Conn>,
    /// What copies at a position have.
    images: BTreeMap<Position, Vec<u8>>,
    volume: Volume,
    /// What was acknowledged, and by whose writer.
    acknowledged: Vec<(Epoch, Commit)>,
    pub takeovers: u64,
    pub refused: u64,
    pub replaced: u64,
    pub alone: u64,
    pub returned: u64,
}

impl World {
    pub fn new(seed: u64, mut rng: Rng) -> Self {
        let keepers = 1 + rng.usize(..4);
        let acks = 1 + rng.usize(..keepers);
        let affirms = rng.usize(..3) == 0;
        // At least one has data.
        let keepers_of = |i: usize, rng: &mut Rng| Keeper::new(i > 0 && rng.usize(..4) == 0, affirms);
        let keepers: Vec<Keeper> = (0..keepers).map(|i| keepers_of(i, &mut rng)).collect();
        let quorum = Quorum { keepers: keepers.len(), acks };
        let mut world = Self {
            seed,
            rng,
            keepers,
            quorum,
            hosts: Vec::new(),
            conns: Vec::new(),
            images: BTreeMap::new(),
            volume: Volume::default(),
            acknowledged: Vec::new(),
            takeovers: 0,
            refused: 0,
            replaced: 0,
            alone: 0,
            returned: 0,
        };
        world.take_over();
        world
    }

    pub fn commits(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    pub fn step(&mut self) {
        let keeper = self.rng.usize(..self.keepers.len());
        let host = self.rng.usize(..self.hosts.len().min(3)) + self.hosts.len().saturating_sub(3);
        match self.rng.usize(..100) {
            0 => match self.rng.usize(..25) {
                0 => self.keepers[keeper].restart(),
                1..=3 => self.take_over(),
                4..=7 => self.replace(host),
                8..=11 => self.go_alone(host),
                _ => self.cut(),
            },
            1..=3 => self.connect(host, keeper),
            4..=45 => self.serve(),
            46..=74 => self.hear(host, keeper),
            75 | 76 => self.choose(host),
            77 | 78 => self.alone(host),
            79..=84 => {
                let most = if self.rng.usize(..4) == 0 { usize::MAX } else { 1 };
                self.hosts[host].bring(most);
            }
            85..=91 => self.hosts[host].write(),
            _ => SCRATCH.with(|scratch| self.hosts[host].lead(scratch)),
        }
    }

    /// Somebody begins to take the log over, whoever has it.
    fn take_over(&mut self) {
        // It finds some of them, and nobody tells what they promise meanwhile: two may draw the same number.
        let found = self.rng.usize(..self.keepers.len());
        let states = self.keepers[found..].iter().map(|keeper| keeper.copy.state());
        // Of two that draw the same counter anyone may come first.
        let writer = (self.rng.usize(..100) * 1000 + self.hosts.len() + 1) as u64;
        let epoch = turn::next_epoch(states, writer);
        self.hosts.push(Host::new(epoch, self.quorum.keepers, self.quorum.acks));
        self.connect_to_all(self.hosts.len() - 1);
    }

    /// A daemon is killed, and another one goes on.
    fn replace(&mut self, host: usize) {
        if self.hosts[host].is_replaced() {
            self.replaced += 1;
            self.connect_to_all(host);
        }
    }

    /// It goes on without keepers.
    fn go_alone(&mut self, host: usize) {
        if self.volume.host == host && matches!(self.hosts[host].phase, Phase::Serves) {
            self.hosts[host].goes_alone(&mut self.volume);
        }
    }

    /// Whatever a host does that is alone, or about to be.
    fn alone(&mut self, host: usize) {
        let has_disk = self.volume.host == host;
        match self.hosts[host].phase {
            // Without its disk nothing is made durable there, and nothing is acknowledged.
            Phase::Secures(_) if has_disk => {
                self.hosts[host].goes_alone(&mut self.volume);
                self.alone += u64::from(matches!(self.hosts[host].phase, Phase::Alone));
            }
            _ if self.hosts[host].is_alone() && has_disk && self.rng.usize(..3) > 0 => self.sync(host),
            Phase::Alone if has_disk => self.come_back(host),
            // Too few promised, or a keeper refused: it looks again.
            Phase::Returns(_) if has_disk && self.rng.usize(..20) == 0 => self.come_back(host),
            Phase::Returns(_) => self.hosts[host].begins(),
            _ => {}
        }
    }

    /// All that its programs wrote is made durable, by the disk.
    fn sync(&mut self, host: usize) {
        let epoch = self.hosts[host].epoch;
        let durable = self.hosts[host].syncs(&mut self.volume);
        self.acknowledged.extend(durable.into_iter().map(|commit| (epoch, commit)));
    }

    /// Its files leave the log, each with a sync, and enough keepers are looked for.
    fn come_back(&mut self, host: usize) {
        self.sync(host);
        let needed = self.quorum.begins();
        let first = self.rng.usize(..self.keepers.len() - needed + 1);
        let copies = self.keepers[first..].iter().map(|keeper| &keeper.copy);
        let found: Vec<(Epoch, Epoch)> =
            copies.map(|copy| (copy.promised(), copy.position().epoch)).collect();
        self.hosts[host].returns(&found);
        self.connect_to_all(host);
    }

    fn connect_to_all(&mut self, host: usize) {
        (0..self.keepers.len()).for_each(|keeper| self.connect(host, keeper));
    }

    fn connect(&mut self, host: usize, keeper: usize) {
        if self.hosts[host].misses(keeper) {
            let pipe = Pipe::default();
            self.conns.push(self.keepers[keeper].meet(keeper, pipe.clone()));
            self.hosts[host].connect(keeper, pipe);
        }
    }

    /// One of the newest connections. Old ones are served as well, late.
    fn some_conn(&mut self) -> usize {
        self.conns.len() - 1 - self.rng.usize(..self.conns.len().min(10))
    }

    /// A connection breaks. What it carried may be lost from any byte on.
    fn cut(&mut self) {
        let at = self.some_conn();
        let pipe = &self.conns[at].pipe;
        let left =
            if self.rng.usize(..2) == 0 { usize::MAX } else { self.rng.usize(..pipe.on_the_way() + 1) };
        pipe.end(left);
    }

    fn serve(&mut self) {
        let at = self.some_conn();
        let conn = &mut self.conns[at];
        let keeper = &mut self.keepers[conn.keeper];
        keeper.serve(conn);
        let Some(image) = keeper.image() else { return };
        let position = keeper.copy.position();
        let other = self.images.entry(position).or_insert_with(|| image.clone());
        assert!(*other == image, "seed {}: two copies at {position:?} differ", self.seed);
    }

    fn choose(&mut self, host: usize) {
        if matches!(self.hosts[host].phase, Phase::Looks) && !self.hosts[host].choose() {
            self.refused += 1;
        }
    }

    fn hear(&mut self, host: usize, keeper: usize) {
        let served = matches!(self.hosts[host].phase, Phase::Serves);
        let more = if self.rng.usize(..2) == 0 { usize::MAX / 2 } else { 1 + self.rng.usize(..2 * LINE) };
        let acknowledged = self.hosts[host].hear(keeper, more);
        if !served && matches!(self.hosts[host].phase, Phase::Serves) {
            self.serves(host);
        }
        // The last keeper's word may come late: then those who took over since have the commit.
        let epoch = self.hosts[host].epoch;
        if !acknowledged.is_empty() && self.hosts[host].has_all() {
            self.others_are_enough(epoch);
        }
        self.acknowledged.extend(acknowledged.into_iter().map(|commit| (epoch, commit)));
        for newer in 0..self.hosts.len() {
            if self.hosts[newer].epoch > epoch && matches!(self.hosts[newer].phase, Phase::Serves) {
                self.check(newer);
            }
        }
    }

    /// Every keeper counted when a batch did: whichever are lost now with the host, as many as the quorum survives, the
    /// others have the log.
    fn others_are_enough(&self, epoch: Epoch) {
        let states: Vec<State> = self.keepers.iter().map(|keeper| keeper.copy.state()).collect();
        // A newer writer, or a keeper that lost everything meanwhile, is another story.
        if states.iter().any(|state| !state.is_kept() || state.promised != epoch) {
            return;
        }
        let with_data = states.iter().filter(|state| !state.is_witness()).count();
        let may_be_lost = self.quorum.survives(0, with_data);
        for lost in 0..1_u32 << states.len() {
            if lost.count_ones() as usize == may_be_lost {
                let left = |(i, state): (usize, &State)| (lost & 1 << i == 0).then_some(*state);
                let answers: Vec<Option<State>> = states.iter().enumerate().map(left).collect();
                let found = quorum::newest(self.quorum, &answers);
                assert!(found.is_ok(), "seed {}: without {lost:b}: {found:?}", self.seed);
            }
        }
    }

    /// Enough keepers have its log.
    fn serves(&mut self, host: usize) {
        if self.hosts[host].is_returning {
            if self.volume.host != host {
                self.hosts[host].phase = Phase::Over;
                return;
            }
            self.hosts[host].is_returning = false;
            self.sync(host);
            self.returned += 1;
        } else if !self.hosts[host].is_open {
            self.takeovers += 1;
            self.recover(host);
        }
        self.check(host);
    }

    /// The disk is with whoever took the log over last.
    fn recover(&mut self, host: usize) {
        let epoch = self.hosts[host].epoch;
        let is_late = |other: &Host| other.epoch > epoch && (other.is_open || other.has_recovered());
        if self.hosts.iter().any(is_late) {
            self.hosts[host].phase = Phase::Over;
            return;
        }
        self.volume.recover(host, &self.hosts[host].image);
        self.hosts[host].closes(self.volume.files);
    }

    /// The files hold everything that was acknowledged by this writer and those before it, and what was written before
    /// that.
    fn check(&self, host: usize) {
        if !self.hosts[host].has_recovered() {
            return;
        }
        let (image, seed, us) = (&self.hosts[host].files, self.seed, self.hosts[host].epoch);
        let newest = image.iter().map(|commit| commit.order).max().unwrap_or(0);
        for (line, commit) in image.iter().enumerate() {
            let due = (0..COMMITS as u64)
                .map(|back| newest.saturating_sub(back))
                .find(|order| *order as usize % COMMITS == line);
            let is_due = self.volume.is_mixed || commit.order >= due.unwrap_or(0);
            assert!(is_due, "seed {seed}: line {line} of {image:?} is old");
        }
        for (_, acknowledged) in self.acknowledged.iter().filter(|(epoch, _)| *epoch <= us) {
            let found = image[line_of(*acknowledged)];
            assert!(
                found == *acknowledged || found.order > acknowledged.order,
                "seed {seed}: {us:?} has {found:?}, and {acknowledged:?} was acknowledged"
            );
        }
    }
}
