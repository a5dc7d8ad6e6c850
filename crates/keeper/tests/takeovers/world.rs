//! All of them, and what must hold.

use seawall_keeper::quorum::Quorum;
use seawall_wire::keeper::Epoch;

use crate::Rng;
use crate::keeper::{Conn, Keeper};
use crate::scratch::{Commit, LINES, Scratch, line_of};
use crate::writer::{Phase, Writer};

thread_local! {
    static SCRATCH: Scratch = Scratch::new();
}

pub struct World {
    seed: u64,
    rng: Rng,
    keepers: Vec<Keeper>,
    quorum: Quorum,
    writers: Vec<Writer>,
    /// Each with its keeper.
    conns: Vec<(usize, Conn)>,
    /// What was acknowledged, and by whose writer.
    acknowledged: Vec<(Epoch, Commit)>,
    pub takeovers: u64,
    pub refused: u64,
}

impl World {
    pub fn new(seed: u64, mut rng: Rng) -> Self {
        let keepers = 1 + rng.below(4);
        let acks = 1 + rng.below(keepers);
        let affirms = rng.below(3) == 0;
        // At least one has data.
        let keepers_of = |i: usize, rng: &mut Rng| Keeper::new(i > 0 && rng.below(4) == 0, affirms);
        let keepers: Vec<Keeper> = (0..keepers).map(|i| keepers_of(i, &mut rng)).collect();
        let quorum = Quorum { keepers: keepers.len(), acks };
        let mut world = Self {
            seed,
            rng,
            keepers,
            quorum,
            writers: Vec::new(),
            conns: Vec::new(),
            acknowledged: Vec::new(),
            takeovers: 0,
            refused: 0,
        };
        world.take_over();
        world
    }

    pub fn commits(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    pub fn step(&mut self) {
        let keeper = self.rng.below(self.keepers.len());
        let writer = self.rng.below(self.writers.len().min(3)) + self.writers.len().saturating_sub(3);
        match self.rng.below(100) {
            0 => match self.rng.below(25) {
                0 => self.keepers[keeper].restart(),
                1..=3 => self.take_over(),
                4..=20 => self.writers[writer].connect(keeper, &mut self.conns),
                _ => self.choose(writer),
            },
            1 if self.rng.below(4) == 0 => {
                // What a broken connection carried may be lost from any point on.
                let conn = self.rng.below(self.conns.len());
                let requests = &mut self.conns[conn].1.requests;
                let left = self.rng.below(requests.len() + 1);
                requests.truncate(left);
                self.conns[conn].1.is_broken = true;
            }
            1..=50 => {
                // Old connections are served as well, late.
                let newest = self.conns.len().min(10);
                let conn = self.conns.len() - 1 - self.rng.below(newest);
                let (keeper, conn) = &mut self.conns[conn];
                self.keepers[*keeper].serve(conn);
            }
            51..=74 => self.hear(writer, keeper),
            75 | 76 => self.choose(writer),
            77..=85 => self.writers[writer].bring(keeper, &mut self.conns),
            86..=91 => {
                let by = self.writers[writer].epoch.writer;
                self.writers[writer].write(by);
            }
            replaces => {
                let conns = &mut self.conns;
                SCRATCH.with(|scratch| self.writers[writer].lead(replaces == 99, scratch, conns));
            }
        }
    }

    /// Somebody begins to take the log over, whoever has it.
    fn take_over(&mut self) {
        // It looks at one of them for a number; two may draw the same one.
        let keeper = self.rng.below(self.keepers.len());
        let counter = self.keepers[keeper].copy.promised().counter + 1;
        let epoch = Epoch { counter, writer: 1 + self.writers.len() as u64 };
        let mut writer = Writer::new(epoch, self.quorum);
        for keeper in 0..self.keepers.len() {
            writer.connect(keeper, &mut self.conns);
        }
        self.writers.push(writer);
    }

    fn choose(&mut self, writer: usize) {
        if matches!(self.writers[writer].phase, Phase::Looks) && !self.writers[writer].choose(&mut self.conns)
        {
            self.refused += 1;
        }
    }

    fn hear(&mut self, writer: usize, keeper: usize) {
        let served = matches!(self.writers[writer].phase, Phase::Serves);
        let acknowledged = self.writers[writer].hear(keeper, &mut self.conns);
        if !served && matches!(self.writers[writer].phase, Phase::Serves) {
            self.takeovers += 1;
            self.check(writer);
        }
        // The last keeper's word may come late: then those who took over since have the commit.
        let epoch = self.writers[writer].epoch;
        self.acknowledged.extend(acknowledged.into_iter().map(|commit| (epoch, commit)));
        for newer in 0..self.writers.len() {
            if self.writers[newer].epoch > epoch && matches!(self.writers[newer].phase, Phase::Serves) {
                self.check(newer);
            }
        }
    }

    /// The image holds everything that was acknowledged by this writer and those before it, and what was written before
    /// that.
    fn check(&self, writer: usize) {
        let (image, seed, us) = (&self.writers[writer].image, self.seed, self.writers[writer].epoch);
        let newest = image.iter().map(|commit| commit.order).max().unwrap_or(0);
        for (line, commit) in image.iter().enumerate() {
            let due = (0..LINES as u64)
                .map(|back| newest.saturating_sub(back))
                .find(|order| *order as usize % LINES == line);
            assert!(commit.order >= due.unwrap_or(0), "seed {seed}: line {line} of {image:?} is old");
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
