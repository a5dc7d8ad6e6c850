//! Made traces: patterns that databases show in parts, each alone and as bad as it gets.

use seawall_media::mix;

use seawall_cache::access::Access;

use super::Trace;
use seawall_cache::key::Block;

/// Blocks of each file.
pub const BLOCKS: u32 = 10_000;
const ACCESSES: usize = 100_000;
/// What is looked at is spread over the file: hot blocks are not neighbours.
const SPREAD: u64 = 7919;

/// All of them.
pub fn all() -> Vec<Trace> {
    vec![zipf(), zipf_and_scans(), zipf_and_writes(), shifting(), uniform(), looping(), writes()]
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.next() % u64::from(n)) as u32
    }
}

/// Draws ranks by Zipf's law with exponent 1: the n-th is drawn n times as rarely as the first.
struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    fn new() -> Self {
        let mut sum = 0.0;
        let sums = (1..=BLOCKS).map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        });
        Self { sums: sums.collect() }
    }

    fn rank(&self, random: &mut Random) -> u32 {
        let total = self.sums.last().copied().unwrap_or(0.0);
        let at = random.fraction() * total;
        self.sums.partition_point(|sum| *sum < at).min(BLOCKS as usize - 1) as u32
    }
}

fn block(number: u32) -> Block {
    Block { file: 0, number }
}

fn spread(rank: u32) -> Block {
    block((u64::from(rank) * SPREAD % u64::from(BLOCKS)) as u32)
}

fn trace(name: &str, access: impl FnMut(usize) -> Access) -> Trace {
    Trace { name: name.to_owned(), accesses: (0..ACCESSES).map(access).collect() }
}

fn zipf() -> Trace {
    let (zipf, mut random) = (Zipf::new(), Random(1));
    trace("Zipf", |_| Access::Read(spread(zipf.rank(&mut random))))
}

/// Every tenth thousand of reads a table is read from end to end, another one each time.
fn zipf_and_scans() -> Trace {
    let (zipf, mut random) = (Zipf::new(), Random(2));
    trace("Zipf + scans", |i| match (i / 4000, i % 4000) {
        (scan, at) if scan % 4 == 3 => Access::Read(Block { file: 1 + scan as u32 / 4, number: at as u32 }),
        _ => Access::Read(spread(zipf.rank(&mut random))),
    })
}

fn zipf_and_writes() -> Trace {
    let (zipf, mut random) = (Zipf::new(), Random(3));
    trace("Zipf, 30 % writes", |_| {
        let block = spread(zipf.rank(&mut random));
        if random.below(10) < 3 { Access::Write(block) } else { Access::Read(block) }
    })
}

/// What is hot changes altogether four times.
fn shifting() -> Trace {
    let (zipf, mut random) = (Zipf::new(), Random(4));
    trace("Zipf that shifts", |i| {
        let shift = (i * 5 / ACCESSES) as u32 * (BLOCKS / 5);
        Access::Read(spread((zipf.rank(&mut random) + shift) % BLOCKS))
    })
}

fn uniform() -> Trace {
    let mut random = Random(5);
    trace("uniform", |_| Access::Read(block(random.below(BLOCKS))))
}

fn looping() -> Trace {
    trace("loop", |i| Access::Read(block(i as u32 % BLOCKS)))
}

fn writes() -> Trace {
    let mut random = Random(6);
    trace("pure writes", |_| Access::Write(block(random.below(BLOCKS))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_same_each_time_and_what_they_say() {
        assert_eq!(all(), all());
        let of = |name: &str| all().into_iter().find(|trace| trace.name == name).expect("a trace");
        assert_eq!(of("loop").blocks(), BLOCKS as usize);
        assert_eq!(of("pure writes").blocks(), 0);
        let zipf = of("Zipf");
        let first = zipf.accesses.iter().filter(|access| **access == Access::Read(spread(0))).count();
        assert!((9_000..12_000).contains(&first), "the hottest of Zipf's blocks: {first} of {ACCESSES}");
    }
}
