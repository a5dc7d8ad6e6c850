//! `seawall provision`: a region, a CXL device or an empty disk becomes a pool, a file system, or memory.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use seawall_doctor::machine::Machine;
use seawall_setup::provision::{self, FileSystem, Mode, Source, Wish};
use seawall_setup::{Host, Owner, This, plan};

use super::planned::{self, Go};
use crate::{show, size};

/// Make persistent memory, CXL memory or an empty disk ready for a database: prints the plan, and carries it out with
/// --yes
///
/// Without a source it lists what is free here, with a command for each. A plan shows each step as you would type it;
/// with --yes it is carried out, and recorded so that `seawall provision undo NAME` can undo it. A source that holds
/// data is refused.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Provision {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    make: Make,
}

#[derive(Subcommand)]
enum What {
    /// List what was set up on this machine
    List(planned::List),
    /// Undo what was set up
    Undo(planned::Undo),
}

#[derive(Args)]
struct Make {
    /// A region's free part (region0), a namespace (namespace0.0), a CXL device (mem0), a dax device (dax0.0), or an empty disk
    /// (/dev/disk/by-id/…)
    source: Option<String>,
    /// What persistent memory or CXL memory becomes [default: fsdax]
    #[arg(long, value_enum, requires = "source")]
    mode: Option<As>,
    /// How much of it to use; without it everything that is free
    #[arg(long, value_parser = size::parse, requires = "source")]
    size: Option<u64>,
    /// Make a file system and mount it here, now and after each start
    #[arg(long, value_name = "DIR", requires = "source")]
    mount: Option<PathBuf>,
    /// The kind of file system
    #[arg(long, value_enum, default_value = "ext4")]
    fs: Kind,
    /// Mount it by a line in /etc/fstab, not by a systemd unit
    #[arg(long, requires = "mount")]
    fstab: bool,
    /// The owner of it: the user that the database runs as, or USER:GROUP
    #[arg(long, requires = "source")]
    owner: Option<String>,
    /// Make a pool in it, of this size; without a size 256M in a file, and all of a disk
    #[arg(long, value_name = "SIZE", value_parser = size::parse, num_args = 0..=1, requires = "source")]
    pool: Option<Option<u64>>,
    /// The name by which to undo it: up to 12 small letters, digits and -
    #[arg(long, requires = "source")]
    name: Option<String>,
    #[command(flatten)]
    go: Go,
}

#[derive(Clone, Copy, ValueEnum)]
enum As {
    /// A block device whose file systems are accessed directly (DAX)
    Fsdax,
    /// A device that programs map whole
    Devdax,
    /// A block device whose sectors are written whole (BTT), without DAX
    Sector,
    /// Memory that the kernel uses, as a node of its own
    Memory,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Ext4,
    Xfs,
}

/// Lists what is free, shows a plan, or carries it out.
///
/// # Errors
/// What is asked for is not possible, or a step failed.
pub fn provision(how: &Provision) -> Result<()> {
    let host = This::default();
    match &how.what {
        Some(What::List(list)) => planned::list(&host, list, plan::Of::Provision),
        Some(What::Undo(undo)) => planned::undo(&host, undo, plan::Of::Provision),
        None => make(&host, &how.make),
    }
}

fn make(host: &dyn Host, make: &Make) -> Result<()> {
    let machine = Machine::read(host.root());
    let Some(source) = &make.source else { return free(host, &machine, make.go.json) };
    if make.mount.as_ref().is_some_and(|point| !point.is_absolute()) {
        bail!("--mount takes a path that begins with /");
    }
    let wish = Wish {
        name: make.name.clone(),
        mode: make.mode.map(|mode| match mode {
            As::Fsdax => Mode::Fsdax,
            As::Devdax => Mode::Devdax,
            As::Sector => Mode::Sector,
            As::Memory => Mode::Memory,
        }),
        size: make.size,
        mount: make.mount.clone(),
        file_system: match make.fs {
            Kind::Ext4 => FileSystem::Ext4,
            Kind::Xfs => FileSystem::Xfs,
        },
        fstab: make.fstab,
        owner: make.owner.as_ref().map(|owner| Owner::parse(owner, host)).transpose()?,
        pool: make.pool,
    };
    planned::go(host, provision::plan(host, &machine, &Source::parse(source)?, &wish)?, &make.go)
}

fn free(host: &dyn Host, machine: &Machine, json: bool) -> Result<()> {
    let found = provision::free(host, machine);
    if json {
        return show::json(&found);
    }
    if found.is_empty() {
        outln!(
            "Nothing is free here: no region with room, no CXL device, no empty disk{}.",
            planned::as_root()
        );
        outln!("seawall doctor shows what there is; a log needs no device of its own (seawall run).");
    }
    for free in found {
        outln!("{}  {}, {}", free.source, size::human(free.bytes), free.what);
        outln!("      {}", free.example);
    }
    Ok(())
}
