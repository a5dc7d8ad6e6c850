//! `seawall top` and `seawall metrics`: what happens now.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use seawall_awr::database::{self, Address, Database};
use seawall_awr::metrics::{Exporter, serve};
use seawall_awr::model::Snapshot;
use seawall_awr::seawall::ask;
use seawall_awr::top::{History, Look, frame};

use super::print;
use crate::pool;

/// Home, and clear what is below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Show what happens now, once a second
#[derive(clap::Args)]
pub struct Top {
    /// The pool; without it your default pool
    #[arg(long)]
    pool: Option<PathBuf>,
    /// The database, for its transactions a second
    #[arg(long, value_parser = str::parse::<Address>)]
    db: Option<Address>,
    /// Seconds between two frames
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// End after so many frames, and clear nothing in between
    #[arg(short = 'n', long)]
    frames: Option<u64>,
}

/// Serve metrics to Prometheus, at http://ADDRESS/metrics
#[derive(clap::Args)]
pub struct Metrics {
    /// Where to listen. Whoever can connect can read
    #[arg(long, default_value = "127.0.0.1:9876")]
    listen: String,
    /// The pool; without it your default pool, if there is one
    #[arg(long)]
    pool: Option<PathBuf>,
    /// The database, for its own counters
    #[arg(long, value_parser = str::parse::<Address>)]
    db: Option<Address>,
}

/// Shows frames.
pub fn top(options: &Top) -> Result<()> {
    let pool = pool::existing(options.pool.as_deref())?;
    let mut database = options.db.as_ref().map(database::connect).transpose()?;
    let (mut history, mut before, mut shown) = (History::default(), None, 0);
    loop {
        let now = Instant::now();
        let look = Look { status: ask(&pool)?, transactions: transactions(database.as_deref_mut())? };
        if let Some((earlier, since)) = &before {
            let text = frame(earlier, &look, now.duration_since(*since).as_secs_f64(), &mut history);
            print(&if options.frames.is_some() { format!("{text}\n") } else { format!("{CLEAR}{text}") })?;
            shown += 1;
        }
        if options.frames.is_some_and(|frames| shown >= frames) {
            return Ok(());
        }
        before = Some((look, now));
        std::thread::sleep(Duration::from_secs(options.interval).saturating_sub(now.elapsed()));
    }
}

fn transactions(database: Option<&mut (dyn Database + 'static)>) -> Result<Option<f64>> {
    let Some(database) = database else { return Ok(None) };
    let mut snapshot = Snapshot::default();
    database.capture(&mut snapshot)?;
    let counters = [
        ("pg_stat_database", "xact_commit"),
        ("mariadb status", "Handler_commit"),
        ("redis info", "total_commands_processed"),
    ];
    let of = |(kind, name): &(&str, &str)| {
        let values: Vec<f64> = snapshot.of(kind).filter_map(|r| r.counters.get(*name).copied()).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    };
    Ok(counters.iter().find_map(of))
}

/// Serves for ever.
pub fn metrics(options: &Metrics) -> Result<()> {
    let pool = match &options.pool {
        Some(path) => Some(pool::existing(Some(path))?),
        None => pool::existing(None).ok(),
    };
    if pool.is_none() && options.db.is_none() {
        bail!("there is nothing to serve: name a pool with --pool, or a database with --db");
    }
    let listener = TcpListener::bind(&options.listen)
        .with_context(|| format!("listening at {}: choose another address with --listen", options.listen))?;
    eprintln!("seawall: metrics at http://{}/metrics", listener.local_addr()?);
    serve(&listener, &mut Exporter::new(pool, options.db.clone()));
    Ok(())
}
