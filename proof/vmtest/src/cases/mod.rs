//! What block devices and file systems are usually tried with, in a guest whose disk `seawall disk` serves: cases that
//! have the ideas of blktests and xfstests, and are made of the distribution's own tools. Each is called like the one whose
//! idea it has ([`guest/cases`](../../guest/cases)).
//!
//! ```text
//! boot: cases of the device ─ cases of file systems ─ files are written and synced ─ the guest is reset, in the middle
//! boot: what was synced is there, the file systems are sound
//! boot: the same disk, served for reading alone
//! ```
//!
//! In: a guest's parts, `seawall` (or none: then the disk is QEMU's own, and what fails there too is not Seawall's). Out:
//! which cases passed. Meanwhile the guest asks for what its host shall do ([`served`]).

pub(crate) mod seen;
mod served;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::boot::{Boot, Data, PMEM_BYTES, image, ledgers};
use crate::machine::Machine;
use crate::parts::{More, Parts};
use crate::{report, tool};
use seen::Seen;
use served::Served;

/// What the guest has for it besides.
pub const PROGRAMS: More = More {
    ours: &["contract"],
    installed: &[
        ("fio", "fio"),
        ("stress-ng", "stress-ng"),
        ("cmp", "diffutils"),
        ("blkdiscard", "util-linux"),
        ("fallocate", "util-linux"),
        ("fstrim", "util-linux"),
    ],
};

const DISK_BYTES: u64 = 512 << 20;
/// The load's, as a port.
const LEDGER: &str = "files";
/// What the kernel is not to say.
const COMPLAINTS: [&str; 9] = [
    // A request without an answer. What kills or fills may let one wait, but not for two minutes.
    "blocked for more than",
    "Oops",
    "BUG:",
    "WARNING:",
    "I/O error",
    "EXT4-fs error",
    "XFS: Assertion",
    "Metadata corruption",
    "Kernel panic",
];

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Extent {
    /// About a minute.
    Quick,
    /// Longer, and with more kinds of file systems: twenty minutes.
    All,
}

impl Extent {
    /// As the guest calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::All => "all",
        }
    }

    /// No boot takes this long, emulated on a busy machine.
    fn patience(self) -> Duration {
        Duration::from_secs(if self == Self::Quick { 400 } else { 3600 })
    }
}

/// What is tried.
pub struct Cases<'a> {
    /// What the guest is made of.
    pub parts: &'a Parts,
    /// How much of it.
    pub extent: Extent,
    /// The program that serves the disk; without one QEMU does.
    pub seawall: Option<PathBuf>,
    /// Directory for the result, images and logs.
    pub out: &'a Path,
    /// Decides what the guest chooses at random.
    pub seed: u64,
}

/// Runs them. True if all passed.
///
/// # Errors
/// If they cannot be carried out.
pub fn run(cases: &Cases<'_>) -> Result<bool> {
    let begin = Instant::now();
    let dir = cases.out.canonicalize()?.join("vm").join("cases");
    tool::empty_directory(&dir)?;
    tool::directory(&dir.join("images"))?;
    image(&dir.join("images/disk.img"), DISK_BYTES)?;
    image(&dir.join("pmem.img"), PMEM_BYTES)?;
    let mut run = Run { cases, dir, ledger: String::new(), seen: Seen::default() };
    for kind in kinds(cases.extent) {
        for phase in ["cases", "after", "read-only"] {
            run.boot(kind, phase).with_context(|| format!("the boot {kind} {phase} failed"))?;
        }
    }
    run.seen.seconds = begin.elapsed().as_secs_f64();
    let json = if cases.seawall.is_some() { "cases.json" } else { "cases-control.json" };
    report::give(&run.seen, &cases.out.join(json))
}

/// File systems, with the size of their blocks: the last one of a boot is for the reset alone.
fn kinds(extent: Extent) -> &'static [&'static str] {
    match extent {
        Extent::Quick => &["ext4:4096,xfs:4096"],
        Extent::All => &["ext4:4096,xfs:4096,ext4:4096", "ext4:1024,xfs:1024,xfs:4096"],
    }
}

/// The boots, one after the other.
struct Run<'a> {
    cases: &'a Cases<'a>,
    dir: PathBuf,
    ledger: String,
    seen: Seen,
}

impl Run<'_> {
    /// One boot, to its end.
    fn boot(&mut self, kinds: &str, phase: &'static str) -> Result<()> {
        let mut served = self.serve(phase)?;
        let mut machine =
            self.switch_on(kinds, phase, &served)?.up("session", || self.switch_on(kinds, phase, &served))?;
        let end = Instant::now() + self.cases.extent.patience();
        while !machine.is_off()? {
            ensure!(Instant::now() < end, "the guest does not end: {:?}", machine.lines()?.last());
            if let Some(served) = &mut served {
                served.obey(&machine.lines()?)?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(served) = served {
            served.end()?;
        }
        if phase == "cases" {
            self.ledger = machine.ledger(LEDGER)?;
        }
        self.seen.add(&machine.lines()?, machine.complaints(&COMPLAINTS)?, phase);
        Ok(())
    }

    fn serve(&self, phase: &str) -> Result<Option<Served>> {
        let start = |seawall| Served::start(seawall, &self.dir, phase == "read-only");
        self.cases.seawall.as_deref().map(start).transpose()
    }

    fn switch_on(&self, kinds: &str, phase: &str, served: &Option<Served>) -> Result<Machine> {
        let seed = (self.cases.seed % 1_000_000).to_string();
        let settings = [
            ("log", "cases"),
            ("phase", phase),
            ("side", if served.is_some() { "seawall" } else { "bare" }),
            ("kinds", kinds),
            ("extent", self.cases.extent.name()),
            ("seed", &seed),
        ];
        let name = format!("{}-{phase}", kinds.replace([':', ','], "-"));
        Machine::start(&Boot {
            options: settings.to_vec(),
            ports: &[LEDGER],
            over: ledgers([(LEDGER, &self.ledger)]),
            // The reference for what a file system on the disk answers is one in there.
            pmem: Some(self.dir.join("pmem.img")),
            ..Boot::of(self.cases.parts, &self.dir, name, self.data(phase, served))
        })
    }

    fn data(&self, phase: &str, served: &Option<Served>) -> Data {
        match served {
            Some(served) => Data::Served { socket: served.socket().to_owned() },
            None => Data::File {
                image: self.dir.join("images/disk.img"),
                cache: if phase == "read-only" { "none,readonly=on" } else { "none,discard=unmap" },
            },
        }
    }
}
