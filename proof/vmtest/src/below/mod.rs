//! The machine below a database, set up by `seawall provision`, `layout` and `tier` in a guest that has what few machines
//! have: persistent memory in every mode, CXL memory, several disks and memory nodes. In: a guest's parts. Out: which cases
//! passed ([`guest/below`](../../guest/below)).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::boot::{Boot, Data, image};
use crate::cases::seen::Seen;
use crate::hardware::{CXL_BYTES, CXL_LABEL_BYTES, Hardware};
use crate::machine::Machine;
use crate::parts::{More, Parts};
use crate::{report, tool};

/// What the guest has for it besides.
pub const PROGRAMS: More = More {
    ours: &[],
    installed: &[
        ("mount", "mount"),
        ("umount", "mount"),
        ("blkid", "util-linux"),
        ("wipefs", "util-linux"),
        ("blockdev", "util-linux"),
        ("setpriv", "util-linux"),
        ("blkdiscard", "util-linux"),
        ("sfdisk", "fdisk"),
        ("mdadm", "mdadm"),
        ("btrfs", "btrfs-progs"),
        ("mkfs.btrfs", "btrfs-progs"),
        ("numactl", "numactl"),
        ("redis-server", "redis-server"),
        ("redis-cli", "redis-tools"),
        ("redis-benchmark", "redis-tools"),
        ("xfs_growfs", "xfsprogs"),
        ("resize2fs", "e2fsprogs"),
    ],
};

/// What the kernel is not to say.
const COMPLAINTS: [&str; 6] =
    ["Oops", "BUG:", "WARNING:", "XFS: Assertion", "Metadata corruption", "Kernel panic"];
/// No boot takes this long, emulated on a busy machine.
const PATIENCE: Duration = Duration::from_secs(500);
const DATA_BYTES: u64 = 512 << 20;
const DISK_BYTES: u64 = 512 << 20;
/// Twice what an XFS takes at least, and the labels.
const PMEM_BYTES: u64 = (1 << 30) + (2 << 20);

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Everything.
    All,
    /// `seawall provision`: persistent memory in every mode, a disk.
    Provision,
    /// `seawall provision`: persistent CXL memory.
    Cxl,
    /// `seawall provision`: volatile CXL memory, with the kernel and the emulator of the distribution's backports. Not among
    /// all.
    CxlVolatile,
    /// `seawall tier`: memory nodes of several kinds, and where a database's memory is.
    Tier,
    /// The same with DAMON, with the kernel and the emulator of the distribution's backports. Not among all.
    TierDamon,
    /// `seawall layout`: several disks, under a database.
    Layout,
}

impl Part {
    /// It takes a later kernel than the distribution's.
    pub fn is_later(self) -> bool {
        matches!(self, Self::CxlVolatile | Self::TierDamon)
    }

    /// Those it consists of, each with its boots.
    fn boots(self) -> Vec<(Self, &'static [&'static str])> {
        match self {
            Self::CxlVolatile => return vec![(self, &["cxl_volatile"])],
            Self::TierDamon => return vec![(self, &["tier_damon"])],
            _ => {}
        }
        let all: [(Self, &[&str]); 4] = [
            (Self::Provision, &["provision", "provisioned"]),
            (Self::Cxl, &["cxl"]),
            (Self::Layout, &["layout"]),
            (Self::Tier, &["tier"]),
        ];
        all.into_iter().filter(|(part, _)| self == Self::All || self == *part).collect()
    }
}

/// Runs them. True if all passed.
///
/// # Errors
/// If they cannot be carried out.
pub fn run(parts: &Parts, part: Part, out: &Path) -> Result<bool> {
    let begin = Instant::now();
    let mut seen = Seen::default();
    for (part, phases) in part.boots() {
        let dir = out.canonicalize()?.join("vm").join(format!("below-{part:?}").to_lowercase());
        tool::empty_directory(&dir)?;
        let hardware = hardware(part, &dir)?;
        image(&dir.join("data.img"), DATA_BYTES)?;
        image(&dir.join("pmem.img"), PMEM_BYTES)?;
        for phase in phases {
            boot(parts, &dir, part, phase, &hardware, &mut seen)
                .with_context(|| format!("the boot {phase} failed"))?;
        }
    }
    seen.seconds = begin.elapsed().as_secs_f64();
    report::give(&seen, &out.join("below.json"))
}

fn hardware(part: Part, dir: &Path) -> Result<Hardware> {
    let mut hardware = Hardware::default();
    let file = |name: &str, bytes| -> Result<PathBuf> {
        let path = dir.join(name);
        image(&path, bytes)?;
        Ok(path)
    };
    match part {
        Part::Provision => hardware.disks = vec![file("more-0.img", DISK_BYTES)?],
        Part::Cxl => {
            hardware.cxl = Some([file("cxl.img", CXL_BYTES)?, file("cxl-labels.img", CXL_LABEL_BYTES)?]);
        }
        Part::Layout => {
            let disks = (0..6).map(|n| file(&format!("more-{n}.img"), DISK_BYTES));
            hardware.disks = disks.collect::<Result<_>>()?;
        }
        Part::CxlVolatile => hardware.cxl_volatile = true,
        Part::Tier | Part::TierDamon => hardware.nodes = true,
        Part::All => {}
    }
    Ok(hardware)
}

fn boot(
    parts: &Parts,
    dir: &Path,
    part: Part,
    phase: &'static str,
    hardware: &Hardware,
    seen: &mut Seen,
) -> Result<()> {
    let switch_on = || {
        let disk = Data::File { image: dir.join("data.img"), cache: "unsafe" };
        Machine::start(&Boot {
            options: vec![("log", "below"), ("phase", phase), ("side", "seawall")],
            pmem: (!matches!(part, Part::Cxl | Part::CxlVolatile)).then(|| dir.join("pmem.img")),
            hardware: hardware.clone(),
            ..Boot::of(parts, dir, phase.to_owned(), disk)
        })
    };
    let mut machine = switch_on()?.up("session", switch_on)?;
    machine.wait_off(PATIENCE)?;
    seen.add(&machine.lines()?, machine.complaints(&COMPLAINTS)?, phase);
    Ok(())
}
