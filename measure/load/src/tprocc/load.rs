//! `setup`: the warehouses, as the specification fills them.

mod rows;

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

pub use self::rows::{Rows, Table, Value};
use super::ledger;
use super::store::{Database, Keeper, Loaded};
use super::targets;
use super::{DISTRICTS, Scale};
use crate::progress::Progress;
use crate::random::Random;
use crate::target::Target;
use crate::threads;

/// Rows that are made and sent at a time.
const CHUNK: u32 = 1000;

/// Options of a setup.
#[derive(Clone, Debug, Args)]
pub struct SetupOptions {
    /// Warehouses, some 100 MB each
    #[arg(long, short = 'w', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub warehouses: u32,
    /// Connections that load
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub loaders: u32,
    /// Items: fewer than specified load faster, for trying
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pub items: u32,
    /// Customers of each district: fewer than specified load faster, for trying
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(30..=3000))]
    pub customers: u32,
}

/// What was loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetupReport {
    /// `postgres`, `mariadb`.
    pub database: String,
    /// How much there is of everything.
    pub scale: Scale,
    /// How long it took.
    pub seconds: f64,
}

/// Loads the warehouses, in place of those of an earlier setup, and begins the ledger.
pub fn setup(
    target: &Target,
    options: &SetupOptions,
    ledger: &Path,
    progress: &dyn Progress,
) -> Result<SetupReport> {
    let SetupOptions { warehouses, items, customers, loaders } = *options;
    let scale = Scale { warehouses, items, customers };
    ensure!(
        warehouses > 0 && items > 0 && customers > 9 && loaders > 0,
        "there would be too little to load: --warehouses, --items and --loaders must be above 0, and --customers at least 10"
    );
    let started = Instant::now();
    let database = targets::open(target)?;
    let mut keeper = database.keeper()?;
    keeper.create()?;
    let setup = Random::fresh_seed() | 1;
    let each = u64::from(items + DISTRICTS * customers * 3);
    progress.begin("stock, customers, history and orders loaded", u64::from(warehouses) * each);
    load_items(keeper.as_mut(), scale, setup)?;
    load_warehouses(database.as_ref(), scale, loaders.min(warehouses), setup, progress)?;
    progress.note("indexes and procedures");
    keeper.finish(&Loaded { setup, scale })?;
    ledger::Writer::create(ledger, setup)?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(SetupReport { database: target.name().to_owned(), scale, seconds })
}

/// The numbers from 1 to `count` in stretches.
fn stretches(count: u32) -> impl Iterator<Item = std::ops::RangeInclusive<u32>> {
    (1..=count).step_by(CHUNK as usize).map(move |first| first..=(first + CHUNK - 1).min(count))
}

fn load_items(keeper: &mut dyn Keeper, scale: Scale, seed: u64) -> Result<()> {
    let mut random = Random::new(seed, 0);
    stretches(scale.items).try_for_each(|items| keeper.load(&rows::items(&mut random, items)))
}

fn load_warehouses(
    database: &dyn Database,
    scale: Scale,
    loaders: u32,
    seed: u64,
    progress: &dyn Progress,
) -> Result<()> {
    let next = AtomicU32::new(1);
    let work = || -> Result<()> {
        let mut keeper = database.keeper()?;
        loop {
            let warehouse = next.fetch_add(1, Ordering::Relaxed);
            if warehouse > scale.warehouses {
                return Ok(());
            }
            load_warehouse(keeper.as_mut(), scale, warehouse, seed, progress)?;
        }
    };
    threads::each(0..loaders, |_| work()).into_iter().collect()
}

fn load_warehouse(
    keeper: &mut dyn Keeper,
    scale: Scale,
    warehouse: u32,
    seed: u64,
    progress: &dyn Progress,
) -> Result<()> {
    let mut random = Random::new(seed, warehouse.into());
    keeper.load(&rows::warehouse(&mut random, warehouse, scale))?;
    for items in stretches(scale.items) {
        let count = items.clone().count();
        keeper.load(&rows::stock(&mut random, warehouse, items))?;
        progress.advance(count as u64);
    }
    for district in 1..=DISTRICTS {
        keeper.load(&rows::district(&mut random, (warehouse, district), scale))?;
        for customers in stretches(scale.customers) {
            let count = customers.clone().count();
            for made in rows::customers(&mut random, (warehouse, district), customers) {
                keeper.load(&made)?;
                progress.advance(count as u64);
            }
        }
        let owners = crate::random::Shuffled::new(scale.customers.into(), random.any());
        for orders in stretches(scale.customers) {
            let count = orders.clone().count();
            for made in rows::orders(&mut random, (warehouse, district), orders, &owners, scale) {
                keeper.load(&made)?;
            }
            progress.advance(count as u64);
        }
    }
    Ok(())
}
