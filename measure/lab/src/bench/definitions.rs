//! `definitions`: databases and tables that are made and dropped, with the policy under which no page can tear: each is a file or
//! some hundred of them, with names.
//!
//! On file systems of their own that keep the order of names: an ext4 in memory, whose flushes take no time, and one whose flushes
//! take a millisecond, as many a volume's do.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::runs::Runs;
use super::slow_disk::SlowDisk;
use super::{Fields, Scope, SectionResult, databases, mariadb};
use crate::lab::Lab;
use crate::mariadb::{Server, Variant as MariadbVariant, install};
use crate::pg::{Cluster, Template, Variant as PgVariant};
use crate::process::run as finish;
use crate::side::{Preset, Side, order};
use crate::spread::Spread;
use crate::table::{self, short};
use crate::tools::postgres_bin;

const POSTGRES: PgVariant =
    PgVariant { settings: &[], on_seawall: &[("full_page_writes", "off")], preset: Preset::PostgresAtomic };
const MARIADB: MariadbVariant = MariadbVariant {
    settings: &[],
    on_seawall: &["--innodb-doublewrite=OFF"],
    preset: Preset::MariadbAtomic,
};
/// The disk is memory.
const DISK: u64 = 3 << 30;
/// What the templates take on the data's disk.
pub const SPACE: u64 = 1 << 30;
const FLUSHES_MS: [u64; 2] = [0, 1];

/// What is made and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Database,
    Table,
}

/// By whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Fs,
    Seawall,
    Unsafe,
    Control,
}

impl Who {
    const ALL: [Self; 4] = [Self::Fs, Self::Seawall, Self::Unsafe, Self::Control];

    fn name(self) -> &'static str {
        match self {
            Self::Fs => "fs",
            Self::Seawall => "seawall",
            Self::Unsafe => "unsafe",
            Self::Control => "control",
        }
    }

    /// The unsafe ones are without any sync, which no server's settings do.
    fn side(self) -> Side {
        match self {
            Self::Fs => Side::Fs,
            Self::Seawall => Side::Seawall,
            Self::Unsafe | Self::Control => Side::Eatmydata,
        }
    }
}

impl What {
    const ALL: [Self; 2] = [Self::Database, Self::Table];

    fn product(self) -> &'static str {
        match self {
            Self::Database => "postgres",
            Self::Table => "mariadb",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Database => "CREATE and DROP DATABASE, PostgreSQL",
            Self::Table => "CREATE and DROP TABLE, MariaDB",
        }
    }

    fn pairs(self, scope: Scope) -> u32 {
        match self {
            _ if scope.quick => 3,
            Self::Database => 20,
            Self::Table => 200,
        }
    }

    /// A data directory, of which each side gets a copy.
    fn template<'l>(self, lab: &'l Lab) -> Result<Template<'l>> {
        match self {
            Self::Database => Template::create_with(lab, &postgres_bin()?, |_| Ok(())),
            Self::Table => {
                let data = lab.work.data("definitions-mariadb");
                install(lab, &data)?;
                Ok(Template::of(lab, data))
            }
        }
    }

    fn measure(self, lab: &Lab, who: Who, data: &Path, pairs: u32) -> Result<f64> {
        match self {
            Self::Database => {
                let bin = postgres_bin()?;
                let cluster = Cluster::start_as(lab, &bin, who.side(), data, &POSTGRES)?;
                let mut loops = || {
                    let mut psql = cluster.client("psql");
                    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
                    for _ in 0..pairs {
                        psql.args(["-c", "CREATE DATABASE made", "-c", "DROP DATABASE made"]);
                    }
                    finish(psql, "psql").map(drop)
                };
                let taken = timed(pairs, &mut loops)?;
                cluster.stop()?;
                Ok(taken)
            }
            Self::Table => {
                let server = Server::start_as(lab, who.side(), data, &MARIADB)?;
                let pair = "CREATE TABLE made (a INT PRIMARY KEY) ENGINE=InnoDB; DROP TABLE made;";
                server.sql("CREATE DATABASE IF NOT EXISTS definitions")?;
                let mut loops = || server.sql(&format!("USE definitions; {}", pair.repeat(pairs as usize)));
                let taken = timed(pairs, &mut loops)?;
                server.stop()?;
                Ok(taken)
            }
        }
    }
}

/// Milliseconds for each pair of statements, the second time.
fn timed(pairs: u32, loops: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    loops()?;
    let start = Instant::now();
    loops()?;
    Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(pairs))
}

/// What is missing is named before anything is measured.
pub fn find_programs() -> Result<()> {
    databases::find_postgres()?;
    mariadb::find_programs()?;
    crate::tools::eatmydata_library().map(drop)
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    let cases = if SlowDisk::is_possible() { What::ALL.len() * FLUSHES_MS.len() } else { 0 };
    cases * Who::ALL.len() * scope.rounds
}

/// Measures everything. Only root makes file systems: nothing for anybody else.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    if !SlowDisk::is_possible() {
        return Ok((
            Vec::new(),
            "definitions: only root mounts the file systems that they need\n".to_owned(),
        ));
    }
    let mut rows = Vec::new();
    for what in What::ALL {
        lab.progress.doing(what.title());
        let template = what.template(lab)?;
        for flush_ms in FLUSHES_MS {
            rows.push(row(lab, scope, what, flush_ms, &template)?);
        }
        template.remove()?;
    }
    let table = format!("{}  log on: {}\n", table(&rows), lab.medium());
    Ok((rows.iter().map(Row::fields).collect(), table))
}

fn row(lab: &Lab, scope: Scope, what: What, flush_ms: u64, template: &Template<'_>) -> Result<Row> {
    let disk = SlowDisk::mount(lab, DISK, Duration::from_millis(flush_ms))?;
    let mut data: Vec<(Who, PathBuf)> = Vec::new();
    for who in Who::ALL {
        let dir = disk.path().join(who.name());
        lab.fresh_dir(&dir)?;
        data.push((who, template.copy_into(&dir)?));
    }
    let mut row = Row { what, flush_ms, runs: Runs::default() };
    for round in 0..scope.rounds {
        for (who, data) in order(&data.iter().collect::<Vec<_>>(), round) {
            lab.settle()?;
            let title = format!("round {}: {}, {}", round + 1, what.title(), who.name());
            let taken = what.measure(lab, *who, data, what.pairs(scope)).with_context(|| title.clone())?;
            lab.progress.done(&format!("{title}, flushes of {flush_ms} ms: {} ms", short(taken)));
            row.runs.add(*who, taken);
        }
    }
    Ok(row)
}

/// The runs of one statement on one disk.
struct Row {
    what: What,
    flush_ms: u64,
    runs: Runs<Who, f64>,
}

impl Row {
    /// How many times as fast.
    fn over(&self, fast: Who, slow: Who) -> Option<Spread> {
        self.runs.ratio(slow, fast, |ms| *ms).ok()
    }

    fn fields(&self) -> Fields {
        let mut row = Fields::default().with("database", self.what.product()).with("flush_ms", self.flush_ms);
        for who in Who::ALL {
            let key = format!("{}_ms", who.name());
            row = row.with_spread_if_any(&key, self.runs.spread(who, |ms| *ms).ok());
        }
        row.with_spread_if_any("speedup", self.over(Who::Seawall, Who::Fs))
            .with_spread_if_any("of_unsafe", self.over(Who::Seawall, Who::Unsafe))
            .with_spread_if_any("control", self.over(Who::Control, Who::Unsafe))
    }

    fn lines(&self) -> Vec<String> {
        let told = |spread: Option<Spread>| spread.map_or("–".to_owned(), |s| s.told(short));
        let mut line = vec![format!("{}, flushes of {} ms", self.what.title(), self.flush_ms)];
        line.extend(Who::ALL.map(|who| told(self.runs.spread(who, |ms| *ms).ok())));
        line.push(told(self.over(Who::Seawall, Who::Fs)));
        line
    }
}

fn table(rows: &[Row]) -> String {
    let header = ["ms for both", "bare", "Seawall", "no sync", "no sync again", "times as fast as bare"];
    table::format(&header, &rows.iter().map(Row::lines).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let mut runs = Runs::default();
        Who::ALL.into_iter().for_each(|who| runs.add(who, 1.0));
        Row { what: What::Table, flush_ms: 1, runs }.fields().assert_keys(keys::DEFINITIONS);
    }
}
