//! What is asked for, and a plan while it is drawn.

use std::path::PathBuf;

use seawall_doctor::machine::Machine;

use crate::host::Host;
use crate::mkfs::FileSystem;
use crate::owner::Owner;
use crate::plan::{Check, Plan, Step};

/// What a region or namespace is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A block device whose file systems are accessed directly.
    Fsdax,
    /// A device that programs map whole.
    Devdax,
    /// A block device whose sectors are written whole or not at all (BTT), without DAX.
    Sector,
    /// Memory of the kernel's.
    Memory,
}

impl Mode {
    /// As ndctl calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsdax => "fsdax",
            Self::Devdax | Self::Memory => "devdax",
            Self::Sector => "sector",
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// By which it is undone; without it the source's name.
    pub name: Option<String>,
    /// What a region or namespace becomes; without it fsdax.
    pub mode: Option<Mode>,
    /// Bytes; without it all that is free.
    pub size: Option<u64>,
    /// Where to mount it.
    pub mount: Option<PathBuf>,
    /// With which file system.
    pub file_system: FileSystem,
    /// A line of /etc/fstab even where systemd runs.
    pub fstab: bool,
    /// Its owner.
    pub owner: Option<Owner>,
    /// A pool, and its bytes; `None` inside: all that a device has.
    pub pool: Option<Option<u64>>,
}

/// A plan while it is drawn.
pub struct Draft<'a> {
    pub host: &'a dyn Host,
    pub machine: &'a Machine,
    pub wish: &'a Wish,
    pub plan: Plan,
}

impl Draft<'_> {
    pub fn need(&mut self, check: Check) {
        if !self.plan.needs.contains(&check) {
            self.plan.needs.push(check);
        }
    }

    pub fn step(&mut self, step: Step) {
        self.plan.steps.push(step);
    }

    pub fn name(&self) -> &str {
        &self.plan.name
    }

    /// udev runs: devices get names that stay, and owners.
    pub fn has_udev(&self) -> bool {
        self.host.root().has("/run/udev/control")
    }
}

/// A namespace that is to be.
pub struct Coming {
    /// `namespace0.0`
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// `pmem0`, `pmem0s`, `dax0.0`
    pub device: String,
    /// Its bytes, or some more.
    pub bytes: u64,
}
