//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use seawall_load::write::parse_bytes;

use crate::endure::Load;

/// Real databases with and without Seawall, side by side
#[derive(Parser)]
#[command(name = "seawall-lab", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// PostgreSQL and SQLite on three sides, then kill -9 and the proof from the ledger
    Demo(DemoOptions),
    /// Latencies and rates as ratios against named baselines, as out/bench.json
    Bench(BenchOptions),
    /// Loads that write many times the pool's size, watched for growth and stalls, as out/endure.json
    Endure(EndureOptions),
    /// The cases of the lab: what each one asks, and of what
    List,
    /// Run cases: configurations taking turns, the database restarted for each, results kept turn by turn
    Run(RunOptions),
    /// The notebook and the HTML page, from whatever has been measured so far
    Report(ReportOptions),
    /// What a directory lies on, proved: file system, device and its mapping, DAX
    Where {
        /// Directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Render the page again from a saved demo.json
    #[command(hide = true)]
    Render(RenderOptions),
    /// Answer round trips, for the bench of a log in other hosts' memory
    #[command(hide = true)]
    Pong { at: std::net::SocketAddr },
    /// Rewrite the generated table of docs/measure/LAB.md
    #[command(hide = true)]
    Docs {
        /// The pages
        pages: Vec<PathBuf>,
    },
}

/// What demo and bench have in common.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The `seawall` binary [default: beside this program]
    #[arg(long)]
    pub seawall: Option<PathBuf>,
    /// Where data is created and removed again: on the disk to be measured
    /// [default: work below the output, or /var/tmp/seawall-demo if the database's user cannot reach it]
    #[arg(long)]
    pub work: Option<PathBuf>,
    /// Where results go
    #[arg(long, default_value = "out")]
    pub out: PathBuf,
    /// Size of the emulated pool [default: 256M; sections of `bench` have sizes of their own]
    #[arg(long, value_parser = parse_bytes)]
    pub pool_size: Option<u64>,
    /// Keep the databases and logs in the work directory
    #[arg(long)]
    pub keep: bool,
}

#[derive(Args, Clone, Debug)]
pub struct DemoOptions {
    #[command(flatten)]
    pub common: Common,
    /// Interleaved rounds; the spread is taken over them
    #[arg(long, default_value_t = 3, value_parser = at_least_one)]
    pub rounds: usize,
    /// Seconds of each single run
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// pgbench scale factor (16 MB each; the default fits memory)
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub scale: u32,
    /// Parts to run
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [DemoPart::Postgres, DemoPart::Sqlite, DemoPart::Kill])]
    pub only: Vec<DemoPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DemoPart {
    Postgres,
    Sqlite,
    Kill,
}

#[derive(Args, Clone, Debug)]
pub struct BenchOptions {
    #[command(flatten)]
    pub common: Common,
    /// A slice of a few minutes
    #[arg(long)]
    pub quick: bool,
    /// Sections to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Section>,
    /// Interleaved rounds [default: 3 or 5; with --quick 2]
    #[arg(long, value_parser = at_least_one)]
    pub rounds: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    Write,
    Sustained,
    FirstWrite,
    Disk,
    Mount,
    Block,
    BlockSustained,
    Replicated,
    Frozen,
    Spill,
    Start,
    Reopen,
    Cache,
    Twin,
    TwinRestart,
}

#[derive(Args, Clone, Debug)]
pub struct EndureOptions {
    /// Minutes, all loads together
    #[arg(long, default_value_t = 10.0, value_parser = positive)]
    pub minutes: f64,
    /// Where the figures go
    #[arg(long, default_value = "out/endure.json")]
    pub json: PathBuf,
    /// Loads to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Load>,
    /// Size of the emulated pool: small, so that the log wraps many times
    #[arg(long, default_value = "64M", value_parser = parse_bytes)]
    pub pool_size: u64,
    /// The `seawall` binary [default: beside this program]
    #[arg(long)]
    pub seawall: Option<PathBuf>,
    /// Where data is created and removed again: on the disk to be measured
    #[arg(long)]
    pub work: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    #[command(flatten)]
    pub common: Common,
    /// Cases by name, or files with cases of your own
    pub cases: Vec<String>,
    /// All cases that come with the program
    #[arg(long)]
    pub all: bool,
    /// Rounds [default: the case's own]; one round is no result, and is called that
    #[arg(long, value_parser = at_least_one)]
    pub rounds: Option<usize>,
    /// Seconds of load in each turn [default: the case's own]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: Option<u64>,
    /// Turns of two seconds: to see that everything runs, not for figures
    #[arg(long)]
    pub quick: bool,
    /// Go on where the last run of a case ended, if it was run in the same way
    #[arg(long)]
    pub resume: bool,
    /// A directory on another disk, for redo apart from data
    #[arg(long, value_name = "DIR")]
    pub apart: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub struct ReportOptions {
    /// Cases [default: all that were run]
    pub cases: Vec<String>,
    /// Where results are
    #[arg(long, default_value = "out")]
    pub out: PathBuf,
    /// Where the notebook goes
    #[arg(long, default_value = "out/lab/notebook.md")]
    pub notebook: PathBuf,
    /// Where the page goes
    #[arg(long, default_value = "out/lab/postgresql.html")]
    pub html: PathBuf,
    /// A page whose table of gains is written anew, from commits, mariadb, redis and rocksdb
    #[arg(long)]
    pub readme: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub struct RenderOptions {
    pub json: PathBuf,
    pub html: PathBuf,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("{text:?} is not a number of at least 1"))
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|n| *n > 0.0).ok_or_else(|| format!("{text:?} is not a number above 0"))
}
