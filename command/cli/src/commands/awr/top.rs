//! `seawall top` and `seawall metrics`: what happens now.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use seawall_awr::database::{self, Address, Database};
use seawall_awr::metrics::{Exporter, serve};
use seawall_awr::model::Snapshot;
use seawall_awr::period::mariadb_transactions;
use seawall_awr::recovery::{Exposure, goal, redo};
use seawall_awr::seawall::ask;
use seawall_awr::top::{History, Look, Screen, frame};
use seawall_media::output;

use super::terminal::Terminal;
use crate::commands::disk::served;
use crate::daemons::{self, Named};

/// Home, and clear what is below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Show what is happening now, once a second; q quits
#[derive(clap::Args)]
pub struct Top {
    #[command(flatten)]
    named: Named,
    /// The database, for its transactions per second, and for the cost of a crash
    #[arg(long, value_parser = str::parse::<Address>)]
    db: Option<Address>,
    /// Seconds between two frames
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Stop after this many frames, and clear nothing in between
    #[arg(short = 'n', long)]
    frames: Option<u64>,
}

/// Serve metrics to Prometheus, at http://ADDRESS/metrics
#[derive(clap::Args)]
pub struct Metrics {
    /// Where to listen. Anyone who can connect can read
    #[arg(long, default_value = "127.0.0.1:9876")]
    listen: String,
    #[command(flatten)]
    named: Named,
    /// The database, for its own counters
    #[arg(long, value_parser = str::parse::<Address>)]
    db: Option<Address>,
}

/// Shows frames.
pub fn top(options: &Top) -> Result<()> {
    let pool = daemons::find_one(&options.named)?;
    // A fault at the beginning is an error; a later one may come right again.
    let mut source = Source { pool, address: options.db.clone(), database: None };
    let mut before = Some((source.look()?, Instant::now()));
    let terminal = if options.frames.is_none() { Terminal::take()? } else { None };
    let (mut history, mut shown, interval) = (History::default(), 0, Duration::from_secs(options.interval));
    loop {
        match &terminal {
            Some(terminal) if terminal.quits_within(interval)? => return Ok(()),
            Some(_) => {}
            None => std::thread::sleep(interval),
        }
        let screen = terminal.as_ref().map_or(Screen::FILE, Terminal::screen);
        let (now, look) = (Instant::now(), source.look());
        let text = match (&before, &look) {
            (Some((earlier, since)), Ok(look)) => {
                frame(earlier, look, now.duration_since(*since).as_secs_f64(), &mut history, screen)
            }
            (None, Ok(_)) => "Seawall answers again\n".into(),
            (_, Err(e)) if options.frames.is_some() => bail!("{e:#}"),
            (_, Err(e)) => {
                format!("Seawall · {e:#}\n\nTrying again every {} s; q quits.\n", options.interval)
            }
        };
        match &terminal {
            Some(_) => out!("{CLEAR}{text}"),
            None => outln!("{text}"),
        }
        shown += 1;
        if output::is_closed() || options.frames.is_some_and(|frames| shown >= frames) {
            return Ok(());
        }
        before = look.ok().map(|look| (look, now));
    }
}

/// The daemon and the database that are asked.
struct Source {
    pool: PathBuf,
    address: Option<Address>,
    database: Option<Box<dyn Database>>,
}

impl Source {
    fn look(&mut self) -> Result<Look> {
        let status = ask(&self.pool)?;
        let said = self.database();
        if said.is_err() {
            self.database = None;
        }
        let disks = served::disks(&status.clients);
        let said = said?;
        let exposed = said.as_ref().and_then(redo).map(|redo| Exposure::by(redo, goal(&status)));
        Ok(Look { transactions: said.as_ref().and_then(transactions), exposed, disks, status })
    }

    /// What the database says, if one is asked.
    fn database(&mut self) -> Result<Option<Snapshot>> {
        if let (Some(address), None) = (&self.address, &self.database) {
            self.database = Some(database::connect(address)?);
        }
        let Some(database) = &mut self.database else { return Ok(None) };
        let mut snapshot = Snapshot::default();
        database.capture(&mut snapshot)?;
        Ok(Some(snapshot))
    }
}

fn transactions(snapshot: &Snapshot) -> Option<f64> {
    let of = |kind: &str, name: &str| {
        let values: Vec<f64> = snapshot.of(kind).filter_map(|r| r.counters.get(name).copied()).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    of("pg_stat_database", "xact_commit")
        .or_else(|| mariadb_transactions(|name| of("mariadb status", name)))
        .or_else(|| of("redis info", "total_commands_processed"))
}

/// Serves for ever.
pub fn metrics(options: &Metrics) -> Result<()> {
    let is_named = options.named.what.is_some() || options.named.pool.is_some();
    let pool = match daemons::find_one(&options.named) {
        // The database alone can be served.
        Err(_) if !is_named && options.db.is_some() => None,
        found => Some(found?),
    };
    let listener = TcpListener::bind(&options.listen)
        .with_context(|| format!("cannot listen at {} (--listen chooses another address)", options.listen))?;
    errln!("seawall: metrics at http://{}/metrics", listener.local_addr()?);
    serve(&listener, &mut Exporter::new(pool, options.db.clone()).with_disks(served::disks));
    Ok(())
}
