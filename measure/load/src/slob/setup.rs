//! `setup`: makes the tables and loads them, in random order, from several connections.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::ledger;
use super::store::{Database, Keeper, Loaded, Table};
use super::targets;
use super::{Conf, Layout};
use crate::progress::Progress;
use crate::random::{Random, Shuffled};
use crate::target::Target;
use crate::threads;

/// Rows that are loaded at a time: some 2.5 MB.
const CHUNK: u64 = 1024;

/// What was loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetupReport {
    /// `postgres`, `mariadb`, `sqlite`.
    pub database: String,
    /// The tables of each schema.
    pub layout: Layout,
    /// How many schemas.
    pub schemas: u32,
    /// Rows of all tables together.
    pub rows: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Loads the tables of `conf`, in place of those of an earlier setup, and begins the ledger.
pub fn setup(target: &Target, conf: &Conf, ledger: &Path, progress: &dyn Progress) -> Result<SetupReport> {
    if let Some(why) = conf.contradiction() {
        bail!("{why}");
    }
    let started = Instant::now();
    let database = targets::open(target);
    let mut keeper = database.keeper()?;
    let layout = Layout::new(conf, keeper.block_bytes()?)?;
    keeper.create(conf.schemas)?;
    let setup = Random::fresh_seed() | 1;
    let chunks = chunks(conf.schemas, &layout);
    let rows = u64::from(conf.schemas) * (layout.rows + layout.scan_rows);
    progress.begin("rows loaded", rows);
    let loaders = conf.load_parallel_degree.min(database.loaders_max()).min(chunks.len() as u32);
    load(database.as_ref(), &layout, &chunks, loaders, setup, progress)?;
    progress.begin("schemas with an index", conf.schemas.into());
    for schema in 1..=conf.schemas {
        keeper.finish(schema)?;
        progress.advance(1);
    }
    let loaded = Loaded { setup, schemas: conf.schemas, rows: layout.rows, scan_rows: layout.scan_rows };
    keeper.note_loaded(&loaded)?;
    ledger::Writer::create(ledger, setup)?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(SetupReport { database: target.name().to_owned(), layout, schemas: conf.schemas, rows, seconds })
}

/// A stretch of a table's places.
#[derive(Clone, Copy)]
struct Chunk {
    schema: u32,
    table: Table,
    first: u64,
    behind: u64,
}

fn chunks(schemas: u32, layout: &Layout) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for schema in 1..=schemas {
        for (table, rows) in [(Table::Data, layout.rows), (Table::Scan, layout.scan_rows)] {
            let starts = (0..rows).step_by(CHUNK as usize);
            chunks.extend(starts.map(|first| Chunk {
                schema,
                table,
                first,
                behind: (first + CHUNK).min(rows),
            }));
        }
    }
    chunks
}

fn load(
    database: &dyn Database,
    layout: &Layout,
    chunks: &[Chunk],
    loaders: u32,
    seed: u64,
    progress: &dyn Progress,
) -> Result<()> {
    let next = AtomicU64::new(0);
    let work = || -> Result<()> {
        let mut keeper = database.keeper()?;
        while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            load_chunk(keeper.as_mut(), layout, *chunk, seed)?;
            progress.advance(chunk.behind - chunk.first);
        }
        Ok(())
    };
    threads::each(0..loaders, |_| work()).into_iter().collect()
}

fn load_chunk(keeper: &mut dyn Keeper, layout: &Layout, chunk: Chunk, seed: u64) -> Result<()> {
    let rows = if chunk.table == Table::Data { layout.rows } else { layout.scan_rows };
    let order = Shuffled::new(rows, seed ^ u64::from(chunk.schema));
    let mut custids = (chunk.first..chunk.behind).map(|place| order.at(place) + 1);
    keeper.load(chunk.schema, chunk.table, &mut custids)
}
