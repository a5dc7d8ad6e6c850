//! The sides of a comparison, the presets, and the order in which sides take turns.

use serde::{Deserialize, Serialize};

/// One side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The bare file system: durable, as slow as the disk.
    Fs,
    /// The same program under `seawall run`.
    Seawall,
    /// The same program, bare, on a directory that `seawall mount` serves.
    Mount,
    /// The same program, set not to sync: the bound nothing durable can beat by much. Not durable.
    Unsafe,
    /// The same program under eatmydata, which turns syncs into nothing. Not durable.
    Eatmydata,
    /// [`Side::Unsafe`] once more, in a place of its own: what two equal sides differ by is what a difference
    /// has to exceed.
    Control,
}

impl Side {
    /// The three sides databases are compared on.
    pub const DATABASES: [Side; 3] = [Side::Fs, Side::Seawall, Side::Unsafe];
    /// The same with the control: what benchmarks compare.
    pub const CONTROLLED: [Side; 4] = [Side::Fs, Side::Seawall, Side::Unsafe, Side::Control];
    /// The four sides of the raw write benchmarks.
    pub const WRITES: [Side; 4] = [Side::Fs, Side::Seawall, Side::Unsafe, Side::Eatmydata];

    /// A short name, for directories too.
    pub fn name(self) -> &'static str {
        match self {
            Side::Fs => "fs",
            Side::Seawall => "seawall",
            Side::Mount => "mount",
            Side::Unsafe => "unsafe",
            Side::Eatmydata => "eatmydata",
            Side::Control => "control",
        }
    }

    /// Whether the database is set not to sync.
    pub fn is_unsafe(self) -> bool {
        matches!(self, Side::Unsafe | Side::Control)
    }

    /// Its name for people, where databases are compared.
    pub fn title(self) -> &'static str {
        match self {
            Side::Fs => "bare file system",
            Side::Seawall => "Seawall",
            Side::Mount => "Seawall's mount",
            Side::Unsafe => "unsafe bound",
            Side::Eatmydata => "eatmydata",
            Side::Control => "unsafe bound again",
        }
    }
}

/// The sides in the order of turn `turn`: no side is first more often than another, and after as many turns as there
/// are sides (twice as many if they are odd) each has followed each other one equally often, so that what a side
/// leaves behind counts against all others alike (Williams 1949: A B D C, B C A D, C D B A, D A C B).
pub fn order<T: Copy>(sides: &[T], turn: usize) -> Vec<T> {
    let n = sides.len();
    // First, second, last, third, last but one, …
    let zigzag = |place: usize| if place % 2 == 1 { place.div_ceil(2) } else { (n - place / 2) % n };
    let mut order: Vec<T> = (0..n).map(|place| sides[(zigzag(place) + turn) % n]).collect();
    if n % 2 == 1 && turn / n % 2 == 1 {
        order.reverse();
    }
    order
}

/// Which files Seawall looks after.
#[derive(Clone, Copy)]
pub enum Preset {
    Postgres,
    /// Every data file of PostgreSQL's.
    PostgresAtomic,
    Sqlite,
    Mariadb,
    Redis,
    Rocksdb,
    Lmdb,
    /// Only on a mount.
    Etcd,
}

impl Preset {
    /// Its name on the command lines of `seawall run` and `seawall mount`.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Postgres | Preset::PostgresAtomic => "postgres",
            Preset::Sqlite => "sqlite",
            Preset::Mariadb => "mariadb",
            Preset::Redis => "redis",
            Preset::Rocksdb => "rocksdb",
            Preset::Lmdb => "lmdb",
            Preset::Etcd => "etcd",
        }
    }

    /// What its `--policy` is.
    pub fn policy(self) -> &'static str {
        match self {
            Preset::PostgresAtomic => "atomic",
            _ => "tail",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_first_and_behind_each_other_one_equally_often() {
        assert_eq!([0, 1].map(|turn| order(&["A", "B", "C", "D"], turn).concat()), ["ABDC", "BCAD"]);
        for n in 2..7 {
            let sides: Vec<usize> = (0..n).collect();
            let turns = if n % 2 == 0 { n } else { 2 * n };
            let mut first = vec![0; n];
            let mut behind = vec![vec![0; n]; n];
            for order in (0..turns).map(|turn| order(&sides, turn)) {
                first[order[0]] += 1;
                order.windows(2).for_each(|pair| behind[pair[0]][pair[1]] += 1);
            }
            assert!(first.iter().all(|times| *times == turns / n), "{n} sides: {first:?}");
            let fair = |a: usize, b: usize| behind[a][b] == if a == b { 0 } else { turns / n };
            assert!(sides.iter().all(|a| sides.iter().all(|b| fair(*a, *b))), "{n} sides: {behind:?}");
        }
    }
}
