//! `seawall layout`: several disks as one, striped and mirrored over failure groups; and how it is.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use seawall_doctor::machine::Machine;
use seawall_setup::layout::{self, By, FileSystem, Power, Redundancy, Wish, status};
use seawall_setup::{Host, Owner, Plan, This, plan};

use super::planned::{self, Go};
use crate::{show, size};

const EXIT_CODES: &str = "Exit codes of `status`, as for monitoring plugins: 0 all copies are there and apart, 1 a copy is missing \
or being made, 2 copies are not apart, or something is gone.";

/// Stripe and mirror everything over several disks, so that no failure group holds two copies; add, drop and replace disks
///
/// A disk is a path, preceded by its failure group if controllers are not what fails together: shelf1=/dev/disk/by-id/…
#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct Layout {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Show the plan for a new layout. Changes nothing
    Plan(New),
    /// Show the same plan, and carry it out with --yes
    Apply(New),
    /// Prove that copies are apart, and show which are missing or being made
    Status(Ask),
    /// Add disks while the database runs
    Add(Add),
    /// Take a disk away while the database runs (btrfs)
    Drop(Drop),
    /// Put another disk in place of one that may be gone already
    Replace(Replace),
    /// Set how much of the disks' time a rebuild may take; with btrfs start one
    Rebalance(Rebalance),
    /// Have the kernel refuse other programs' writes to the disks of layouts, from now until the next start
    Guard(Guard),
    /// List what was set up on this machine
    List(planned::List),
    /// Undo a layout: its disks are empty afterwards
    Undo(planned::Undo),
}

#[derive(Args)]
struct New {
    /// Its name: used for /dev/md/NAME, for the label, and to undo it
    name: String,
    /// The disks: [GROUP=]PATH. Without a group a disk fails together with the others on its controller
    #[arg(required = true, value_name = "DISK")]
    disks: Vec<String>,
    /// Where to mount it
    #[arg(long, value_name = "DIR")]
    mount: PathBuf,
    /// Copies of everything: external: one (the disks are arrays), normal: two, high: three
    #[arg(long, value_enum, default_value = "normal")]
    redundancy: Copies,
    /// Bytes that go to one disk before the next one is used: 64K to 64M
    #[arg(long, value_parser = size::parse, default_value = "1M")]
    unit: u64,
    /// Disks for the redo log alone: [GROUP=]PATH, several times. Without them it lies on the data disks
    #[arg(long, value_name = "DISK")]
    redo: Vec<String>,
    /// Where to mount those [default: DIR-redo]
    #[arg(long, value_name = "DIR", requires = "redo")]
    redo_mount: Option<PathBuf>,
    /// What combines the disks into one
    #[arg(long, value_enum, default_value = "md")]
    by: Maker,
    /// The file system on md
    #[arg(long, value_enum, default_value = "xfs")]
    fs: Kind,
    /// The owner of the mount: the user that the database runs as, or USER:GROUP
    #[arg(long)]
    owner: Option<String>,
    /// Mount by lines in /etc/fstab, not by systemd units
    #[arg(long)]
    fstab: bool,
    /// Results of `seawall-lab run layout`, whose figure the plan shows
    #[arg(long, value_name = "FILE", default_value = "out/lab/layout.jsonl")]
    measured: PathBuf,
    #[command(flatten)]
    go: Go,
}

#[derive(Clone, Copy, ValueEnum)]
enum Copies {
    External,
    Normal,
    High,
}

#[derive(Clone, Copy, ValueEnum)]
enum Maker {
    /// Linux software RAID: in place, and fast
    Md,
    /// Copy on write; disks of any size come and go
    Btrfs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Xfs,
    Ext4,
}

#[derive(Args)]
struct Ask {
    /// The layout; without it all
    name: Option<String>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct How {
    /// How much of the disks' time it may take: 1 leaves the database undisturbed, 11 is as fast as the disks are
    #[arg(long, default_value_t = 1)]
    power: u32,
}

#[derive(Args)]
struct Add {
    /// The layout
    name: String,
    /// The new disks: [GROUP=]PATH. With md as many as there are copies, each in another group
    #[arg(required = true, value_name = "DISK")]
    disks: Vec<String>,
    /// Add them to the disks of the redo log
    #[arg(long)]
    redo: bool,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    go: Go,
}

#[derive(Args)]
struct Drop {
    /// The layout
    name: String,
    /// The disk
    disk: PathBuf,
    /// It is one of the redo log's disks
    #[arg(long)]
    redo: bool,
    #[command(flatten)]
    go: Go,
}

#[derive(Args)]
struct Replace {
    /// The layout
    name: String,
    /// The disk to replace, which may be gone already
    old: PathBuf,
    /// The new one: [GROUP=]PATH
    new: String,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    go: Go,
}

#[derive(Args)]
struct Rebalance {
    /// The layout
    name: String,
    #[command(flatten)]
    how: How,
}

#[derive(Args)]
struct Guard {
    /// The layout; without it all
    name: Option<String>,
    /// Allow such writes again
    #[arg(long)]
    off: bool,
}

/// Shows, carries out, looks.
///
/// # Errors
/// What is asked for is not possible, or a step failed.
pub fn layout(how: &Layout) -> Result<ExitCode> {
    let host = This::default();
    let machine = || Machine::read(host.root());
    match &how.what {
        What::Plan(new) => {
            if new.go.yes {
                bail!("plan changes nothing: seawall layout apply … --yes carries it out");
            }
            planned::go(&host, drawn(&host, &machine(), new)?, &new.go)?;
        }
        What::Apply(new) => planned::go(&host, drawn(&host, &machine(), new)?, &new.go)?,
        What::Status(ask) => return looked_at(&host, ask),
        What::Add(add) => {
            let power = Power::new(add.how.power)?;
            let disks = disks(&add.disks);
            let mut change =
                layout::add(&host, &machine(), &recorded(&host, &add.name)?, &disks, add.redo, power)?;
            carried(&host, &mut change, &add.go)?;
        }
        What::Drop(drop) => {
            let mut change = layout::drop(&host, &recorded(&host, &drop.name)?, &drop.disk, drop.redo)?;
            carried(&host, &mut change, &drop.go)?;
        }
        What::Replace(replace) => {
            let power = Power::new(replace.how.power)?;
            let recorded = recorded(&host, &replace.name)?;
            let new = disk(&replace.new);
            let mut change = layout::replace(&host, &machine(), &recorded, &replace.old, new, power)?;
            carried(&host, &mut change, &replace.go)?;
        }
        What::Rebalance(how) => {
            planned::must_be_root()?;
            let power = Power::new(how.how.power)?;
            layout::rebalance(&host, &recorded(&host, &how.name)?, power, |line| outln!("{line}"))?;
        }
        What::Guard(how) => guarded(&host, how)?,
        What::List(list) => planned::list(&host, list, plan::Of::Layout)?,
        What::Undo(undo) => planned::undo(&host, undo, plan::Of::Layout)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn drawn(host: &dyn Host, machine: &Machine, new: &New) -> Result<Plan> {
    let points = [Some(&new.mount), new.redo_mount.as_ref()];
    if points.into_iter().flatten().any(|point| !point.is_absolute()) {
        bail!("--mount takes a path that begins with /");
    }
    let wish = Wish {
        name: new.name.clone(),
        by: match new.by {
            Maker::Md => By::Md,
            Maker::Btrfs => By::Btrfs,
        },
        redundancy: match new.redundancy {
            Copies::External => Redundancy::External,
            Copies::Normal => Redundancy::Normal,
            Copies::High => Redundancy::High,
        },
        unit: new.unit,
        disks: disks(&new.disks),
        redo: disks(&new.redo),
        mount: new.mount.clone(),
        redo_mount: new.redo_mount.clone(),
        file_system: match new.fs {
            Kind::Xfs => FileSystem::Xfs,
            Kind::Ext4 => FileSystem::Ext4,
        },
        owner: new.owner.as_ref().map(|owner| Owner::parse(owner, host)).transpose()?,
        fstab: new.fstab,
        measured: new.measured.clone(),
    };
    Ok(layout::plan(host, machine, &wish)?)
}

fn disks(all: &[String]) -> Vec<(PathBuf, Option<String>)> {
    all.iter().map(|one| disk(one)).collect()
}

/// `shelf1=/dev/sdb`, `/dev/sdb`
fn disk(one: &str) -> (PathBuf, Option<String>) {
    match one.split_once('=').filter(|(group, _)| !group.contains('/')) {
        Some((group, path)) => (path.into(), Some(group.to_owned())),
        None => (one.into(), None),
    }
}

fn recorded(host: &dyn Host, name: &str) -> Result<Plan> {
    Ok(plan::record::load_of(host, name, plan::Of::Layout)?)
}

/// Shows a change, or carries it out.
fn carried(host: &dyn Host, change: &mut layout::Change, go: &Go) -> Result<()> {
    if !go.yes {
        return planned::shown(&change.plan, go.json);
    }
    planned::must_be_root()?;
    let count = change.plan.steps.len();
    change.carry_out(host, |number, step| planned::progress(number, count, step))?;
    change.plan.next.iter().for_each(|line| outln!("  {line}"));
    Ok(())
}

fn guarded(host: &dyn Host, how: &Guard) -> Result<()> {
    planned::must_be_root()?;
    for plan in wanted(host, how.name.as_deref())? {
        let disks = layout::guard(host, &plan, !how.off)?;
        let done = if how.off { "writes by others pass again" } else { "writes by others are refused" };
        outln!("{}: {done}: {}", plan.name, disks.join(", "));
    }
    Ok(())
}

fn wanted(host: &dyn Host, name: Option<&str>) -> Result<Vec<Plan>> {
    match name {
        Some(name) => Ok(vec![recorded(host, name)?]),
        None => Ok(layout::all(host)?),
    }
}

fn looked_at(host: &dyn Host, ask: &Ask) -> Result<ExitCode> {
    let plans = wanted(host, ask.name.as_deref())?;
    let all = plans.iter().map(|plan| status::of(host, plan)).collect::<Result<Vec<_>, _>>()?;
    if ask.json {
        show::json(&all)?;
    } else {
        all.iter().for_each(shown);
        if all.is_empty() {
            outln!("No layout was set up on this machine{}.", planned::as_root());
        }
    }
    let worst = all.iter().map(|one| one.verdict).max().unwrap_or(status::Verdict::Sound);
    Ok(ExitCode::from(worst as u8))
}

fn shown(status: &status::Status) {
    let verdict = match status.verdict {
        status::Verdict::Sound => "all copies are there, and apart",
        status::Verdict::Reduced => "A COPY IS MISSING, OR BEING MADE",
        status::Verdict::Broken => "NOT AS IT MUST BE",
    };
    outln!("{}: {verdict}", status.name);
    for set in &status.sets {
        outln!("  {}{}: {}", set.name, if set.redo { " (redo log)" } else { "" }, set.state);
        for member in &set.members {
            let place = member.place.map_or("-".into(), |place| place.to_string());
            let device = member.device.as_deref().unwrap_or("none");
            outln!(
                "    {place:>3}  {device:<12} {:<16} {}",
                member.group.as_deref().unwrap_or("no group"),
                member.state
            );
        }
        set.proof.iter().for_each(|line| outln!("    {line}"));
    }
    status.shared.iter().for_each(|line| outln!("  {line}"));
    outln!("  {}", status.strangers);
}
