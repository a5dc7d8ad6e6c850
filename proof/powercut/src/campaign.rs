//! Many rounds: which, in which order, on what, and when to stop.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use seawall_load::sqlite::JournalMode;
use seawall_load::store::Store;
use serde::{Deserialize, Serialize};

use crate::boot::{Boot, Said, Task};
use crate::cell;
use crate::file_system::FileSystem;
use crate::front::Front;
use crate::guest;
use crate::machine::Machine;
use crate::medium::Medium;
use crate::outside::{BASE, DATA};
use crate::place;
use crate::plan::{self, Database, Plan, Side, Trouble};
use crate::report::Report;
use crate::round;
use crate::store;
use fastrand::Rng;
use seawall_faulty_disk::{Disk, Image};

/// Large enough for every load, small enough for the memory of a small machine.
const DISK_BYTES: u64 = 768 << 20;
/// Our own programs, which have to be where the databases' users can run them.
const PROGRAMS: [&str; 3] = ["seawall", "libseawall_preload.so", "seawall-load"];

/// What to run.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub struct Options {
    /// Rounds of each database with Seawall
    #[arg(long, default_value_t = 10)]
    pub rounds: u64,
    /// Rounds of each control of each database: without Seawall, with syncs and without any; and with
    /// Seawall, but its log taken away
    #[arg(long, default_value_t = 2)]
    pub controls: u64,
    /// Only these databases
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Database::Postgres, Database::Sqlite])]
    pub only: Vec<Database>,
    /// Only these sides
    #[arg(long, value_enum, value_delimiter = ',')]
    pub sides: Vec<Side>,
    /// How databases with Seawall use it
    #[arg(long, value_enum, default_value_t)]
    pub front: Front,
    /// What the log of databases with Seawall lies on
    #[arg(long, value_enum, default_value_t)]
    pub medium: Medium,
    /// The file system on the disk
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub file_system: FileSystem,
    /// Serve every database as any program (`--preset any`), by what it does and not by its files' names
    #[arg(long)]
    #[serde(default)]
    pub as_any: bool,
    /// In every round that can have trouble, this one
    #[arg(long, value_enum)]
    pub trouble: Option<Trouble>,
    /// Where all that is random comes from; without it, from the clock
    #[arg(long)]
    pub seed: Option<u64>,
    /// Begin no round after so many minutes
    #[arg(long)]
    pub minutes: Option<u64>,
    /// Rounds that follow each other on the same disk
    #[arg(long, default_value_t = 5)]
    pub life: u64,
    /// Keep the evidence of good rounds too
    #[arg(long)]
    pub keep: bool,
    /// Where the result and the evidence of bad rounds go
    #[arg(long, default_value = "out")]
    pub out: PathBuf,
    /// Directory of seawall, its library and seawall-load; without it, where this program is
    #[arg(long)]
    pub programs: Option<PathBuf>,
}

/// Runs a campaign; the first process of its cell does this.
///
/// # Errors
/// If rounds could not be carried out. What they found is in the report.
pub fn run(options: &Options, seed: u64) -> Result<Report> {
    furnish(options)?;
    let disk = Disk::mount(&Path::new(BASE).join("disk"), DISK_BYTES)?;
    disk.slow_down(options.front.flush_time());
    let mut campaign = Campaign {
        options,
        disk,
        templates: BTreeMap::new(),
        lives: BTreeMap::new(),
        report: Report::new(seed, options.medium),
    };
    let deadline = options.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let mut rng = Rng::with_seed(seed);
    // Tearing a page takes luck, and many rounds: only when asked for.
    // A log on the disk is not taken away from outside.
    let rare = |side: &Side| match side {
        Side::Torn => true,
        Side::Logless => options.medium == Medium::Disk,
        _ => false,
    };
    let by_default = |side: &Side| options.sides.is_empty() && !rare(side);
    let wanted = |side: &Side| by_default(side) || options.sides.contains(side);
    for (number, side) in schedule(options).filter(|(_, side)| wanted(side)) {
        for &database in options.only.iter().filter(|&&database| side.is_for(database, options.front)) {
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Ok(campaign.report);
            }
            let mut plan = plan::draw(database, side, options.front, rng.u64(..), number);
            plan.medium = options.medium;
            (plan.file_system, plan.as_any) = (options.file_system, options.as_any);
            if let Some(trouble) = options.trouble.filter(|_| !side.is_control()) {
                plan.trouble = trouble;
            }
            campaign.round(&plan)?;
        }
    }
    Ok(campaign.report)
}

/// The controls come first: if the disk were wrong, everything after them would be worth nothing.
fn schedule(options: &Options) -> impl Iterator<Item = (u64, Side)> {
    let controls = [Side::Unsafe, Side::Logless, Side::Synced, Side::Torn];
    let controls = (0..options.controls).flat_map(move |i| controls.map(|side| (i, side)));
    let rounds = (0..options.rounds).flat_map(|i| [(i, Side::Seawall), (i, Side::Atomic)]);
    controls.chain(rounds)
}

struct Campaign<'a> {
    options: &'a Options,
    disk: Disk,
    templates: BTreeMap<Database, Image>,
    lives: BTreeMap<(Database, Side), Life>,
    report: Report,
}

/// What survives from one round of a database and side to the next, beside pool and ledger.
struct Life {
    disk: Image,
    age: u64,
}

impl Campaign<'_> {
    fn round(&mut self, plan: &Plan) -> Result<()> {
        self.set_up(plan)?;
        let (outcome, evidence) = match round::run(&self.disk, plan) {
            Ok(done) => done,
            Err(error) => {
                let log = fs::read_to_string(Path::new(BASE).join("log/machine")).unwrap_or_default();
                bail!("round {}: {error:#}\n{log}", plan.title());
            }
        };
        let bad = !plan.side.is_control() && !outcome.is_clean();
        if bad || self.options.keep {
            let directory = self.options.out.join(format!("powercut-{:016x}", plan.seed));
            evidence.keep(&directory, &outcome)?;
            eprintln!("evidence kept in {}", directory.display());
        }
        self.put_away(plan, bad || plan.side.is_control());
        self.report.add(outcome);
        Ok(())
    }

    /// Plugs in the disk of this database and side, or begins a new life.
    fn set_up(&mut self, plan: &Plan) -> Result<()> {
        let image = match self.lives.get(&(plan.database, plan.side)) {
            Some(life) => life.disk.clone(),
            None => {
                for gone in [plan.pool(), plan.ledger()] {
                    if gone.exists() {
                        fs::remove_file(gone)?;
                    }
                }
                fs::write(plan.ledger(), "")?;
                self.template(plan.database)?
            }
        };
        self.disk.replace(image)
    }

    fn put_away(&mut self, plan: &Plan, dead: bool) {
        let key = (plan.database, plan.side);
        let age = self.lives.remove(&key).map_or(0, |life| life.age) + 1;
        if !dead && age < self.options.life {
            self.lives.insert(key, Life { disk: self.disk.image(), age });
        }
    }

    /// A freshly installed system of this database.
    fn template(&mut self, database: Database) -> Result<Image> {
        if let Some(image) = self.templates.get(&database) {
            return Ok(image.clone());
        }
        self.disk.replace(Image::new(DISK_BYTES))?;
        self.options.file_system.make(self.disk.file())?;
        self.disk.wait_closed()?;
        let mut plan = plan::draw(database, Side::Synced, self.options.front, 0, 0);
        plan.journal = JournalMode::Wal;
        plan.file_system = self.options.file_system;
        let boot_id = "00000000-0000-4000-a000-000000000000".to_owned();
        let boot = Boot { disk: self.disk.file().to_owned(), boot_id, task: Task::Install, plan };
        let machine = Machine::start(&boot)?;
        match machine.listen(self.options.front.patience())? {
            Said::Installed => machine.shut_down(&self.disk)?,
            other => bail!("the installation said {other:?}"),
        }
        let image = self.disk.image();
        self.templates.insert(database, image.clone());
        Ok(image)
    }
}

/// What stands beside the machines.
fn furnish(options: &Options) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let from = match &options.programs {
        Some(directory) => directory.clone(),
        None => own.parent().context("this program has no directory")?.to_owned(),
    };
    // Read before anything is mounted over where they may be.
    let mut programs = Vec::new();
    for name in PROGRAMS {
        let path = from.join(name);
        let bytes =
            fs::read(&path).with_context(|| format!("cannot read {} (build it first)", path.display()))?;
        programs.push((name, bytes));
    }
    cell::memory(Path::new(BASE), 0o755)?;
    for name in ["bin", "log", "disk", "pmem"] {
        fs::create_dir_all(Path::new(BASE).join(name))?;
    }
    fs::create_dir_all(DATA)?;
    place::make_place()?;
    cell::memory(&Path::new(BASE).join("pmem"), 0o1777)?;
    for (name, bytes) in programs {
        let path = Path::new(BASE).join("bin").join(name);
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    if options.front == Front::Disk {
        guest::build(&from, &options.out)?;
    }
    options.only.iter().copied().filter_map(store::of).try_for_each(build)
}

/// Only those asked for: whoever runs no stores needs no libraries of theirs.
fn build(store: Store) -> Result<()> {
    let base = Path::new(BASE);
    let dir = base.join(store.name());
    fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let built = store.build(&dir)?;
    let name = built.file_name().context("the store's program has no name")?;
    fs::rename(&built, base.join("bin").join(name)).context("cannot put a store's program beside the others")
}
