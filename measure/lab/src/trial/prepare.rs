//! Makes a configuration ready on this machine, or says why it cannot be had: data, pool, places.
//!
//! Output: a [`Prepared`] with its own copy of the cluster, or a reason. Where things lie is proved here, and a mount
//! that pretends is refused ([`refuse_decoy`]).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use seawall_awr::placement::Placement;

use super::confine::{Confine, Limits};
use super::decoy::refuse_decoy;
use super::load;
use super::mount::MountPoint;
use super::pools::pool;
use super::throttle::Throttle;
use crate::case::{Case, Configuration, Devices, FileSystem, Front, Medium, Product, Wal};
use crate::etcd;
use crate::keepers::{Keepers, Shape};
use crate::lab::Lab;
use crate::loop_disk::LoopDisk;
use crate::pg::Template;
use crate::pool::Pool;
use crate::slow_disk::SlowDisk;
use crate::tools::eatmydata_library;

/// Of a file system of its own for the log.
const LOOP_BYTES: u64 = 2 << 30;

/// Of a stand-in for a disk: small clusters fit.
pub const DEVICE_BYTES: u64 = 1 << 30;

/// A configuration that can be measured.
pub struct Prepared {
    pub configuration: Configuration,
    pub product: Product,
    /// Where the files are (under a mount: what it shows).
    pub data: PathBuf,
    /// Before its keepers: it is stopped first.
    pub pool: Option<Pool>,
    _keepers: Option<Keepers>,
    pub placement: BTreeMap<String, Placement>,
    /// Dropped after use.
    wal: Option<LoopDisk>,
    /// Stand-ins for disks; dropped after use.
    devices: Vec<LoopDisk>,
}

/// What may be used here besides the work directory.
pub struct Means<'a> {
    /// A directory on another disk.
    pub apart: Option<&'a Path>,
    /// Stand-ins for disks.
    pub devices: Option<&'a Devices>,
    /// A disk for all data, that takes its time over each flush.
    pub slow: Option<&'a SlowDisk>,
    /// A file system of its own for each configuration's data.
    pub files: Option<FileSystem>,
    /// Bytes of memory that database and load have.
    pub memory: Option<u64>,
}

/// What a configuration has of the machine's CPUs.
pub fn limits(configuration: &Configuration) -> Limits {
    Limits { cpus: configuration.cpus, cpu_max: configuration.cpu_max, memory: None }
}

impl Prepared {
    /// Makes it ready.
    ///
    /// # Errors
    /// Why it cannot be had on this machine.
    pub fn make(
        lab: &Lab,
        configuration: Configuration,
        product: Product,
        template: &Template<'_>,
        means: &Means<'_>,
    ) -> Result<Self> {
        find_programs(product, &configuration)?;
        // Tried now, so that a case does not end half-way.
        drop(Confine::to(Limits { memory: means.memory, ..limits(&configuration) })?);
        let keepers = configuration
            .keepers
            .map(|keepers| Keepers::start(lab, Shape::of(keepers, configuration.delay_us.unwrap_or(0))));
        let keepers = keepers.transpose()?;
        let pool = pool(lab, &configuration, keepers.as_ref())?;
        let device = match (means.devices, means.files) {
            (Some(_), _) => Some(device(lab, &configuration.name, "data")?),
            (None, Some(files)) => Some(LoopDisk::of(lab, &configuration.name, DEVICE_BYTES, files)?),
            (None, None) => None,
        };
        let data = copy(lab, template, &configuration.name, (device.as_ref(), means.slow))?;
        load::copy_ledger(lab, &configuration.name)?;
        let (placement, devices) = (BTreeMap::new(), device.into_iter().collect());
        let mut prepared =
            Prepared { configuration, product, data, pool, _keepers: keepers, placement, wal: None, devices };
        prepared.place_wal(lab, means)?;
        if prepared.configuration.front == Front::Mount {
            drop(MountPoint::mount(lab, &prepared)?);
        }
        prepared.prove()?;
        Ok(prepared)
    }

    /// Holds the stand-ins to their rate.
    pub fn hold(&self, case: &Case) -> Result<Vec<Throttle>> {
        let Some(Devices { writes_per_second }) = &case.devices else { return Ok(Vec::new()) };
        let rate = *writes_per_second.get_ref();
        self.devices.iter().map(|device| Throttle::hold(&device.number()?, rate)).collect()
    }

    /// Writes to its log's device so far, if the log lies on a disk and nobody has it open.
    pub fn device_writes(&self) -> Result<Option<u64>> {
        let pool = self.pool.as_ref().filter(|pool| pool.daemon().is_none());
        let pool = pool.filter(|_| self.configuration.medium == Some(Medium::Block));
        pool.map(Pool::last_batch).transpose()
    }

    /// Whether a commit's log lies on a medium that survives power loss.
    pub fn emulated(&self) -> bool {
        self.pool.as_ref().is_some_and(Pool::is_emulated)
    }

    /// The effective value of a setting of the database, if the case sets it.
    pub fn setting(&self, case: &Case, name: &str) -> Option<String> {
        self.configuration.setting(&case.settings, name)
    }

    /// Everything the case sets, for all sides and then for this one: of two that set the same the last one counts.
    pub fn settings<'b>(&'b self, case: &'b Case) -> impl Iterator<Item = (&'b str, String)> {
        let all = case.settings.iter().chain(&self.configuration.settings);
        all.map(|(name, value)| (name.as_str(), value.to_string()))
    }

    /// What a commit that was acknowledged survives.
    pub fn durability(&self, case: &Case) -> String {
        let in_memory = |what: &str| self.placement.get(what).is_some_and(Placement::in_memory);
        let word = if self.configuration.eatmydata {
            "none"
        } else if let Some(less) = self.product.undurable(|name| self.setting(case, name)) {
            less
        } else if self.emulated() {
            "durable while the OS lives: emulated"
        } else if self.configuration.medium == Some(Medium::Replicated) {
            "durable in other hosts' memory: not after a power cut of all"
        } else if in_memory("data") || in_memory("log") {
            "durable while the OS lives: RAM"
        } else {
            "durable"
        };
        word.to_owned()
    }

    fn place_wal(&mut self, lab: &Lab, means: &Means<'_>) -> Result<()> {
        let name = &self.configuration.name;
        let to = match self.configuration.wal {
            Wal::WithData => return Ok(()),
            Wal::OwnFileSystem => {
                let disk = LoopDisk::make(lab, name, LOOP_BYTES)?;
                let dir = disk.path().join("pg_wal");
                self.wal = Some(disk);
                dir
            }
            Wal::OwnDevice if means.devices.is_some() => {
                let device = device(lab, name, "redo")?;
                let dir = device.path().join("pg_wal");
                self.devices.push(device);
                dir
            }
            Wal::OwnDevice => {
                apart(&self.data, means)?.join(format!("seawall-lab-{}-{name}", std::process::id()))
            }
        };
        let from = self.data.join("pg_wal");
        lab.fresh_dir(&to)?;
        let mut copy = lab.command("/bin/cp");
        copy.args(["-a", "-T"]).arg(&from).arg(&to);
        crate::process::run(copy, "copying the log")?;
        fs::remove_dir_all(&from)?;
        std::os::unix::fs::symlink(&to, &from).with_context(|| format!("cannot link {}", from.display()))
    }

    /// What data, log and pool lie on.
    fn prove(&mut self) -> Result<()> {
        let pool = self.pool.as_ref().map(|p| p.path().to_owned());
        let log =
            if self.product == Product::Postgres { self.data.join("pg_wal") } else { self.data.clone() };
        let places = [("data", Some(self.data.clone())), ("log", Some(log)), ("pool", pool)];
        for (what, path) in places.into_iter().filter_map(|(what, path)| Some((what, path?))) {
            let found = Placement::of(&path)
                .with_context(|| format!("cannot tell what {} lies on", path.display()))?;
            refuse_decoy(&found)?;
            self.placement.insert(what.to_owned(), found);
        }
        Ok(())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if self.configuration.wal == Wal::OwnDevice
            && let Ok(to) = fs::read_link(self.data.join("pg_wal"))
        {
            let _ = fs::remove_dir_all(to);
        }
    }
}

/// What the configuration needs of the machine beside its database.
fn find_programs(product: Product, configuration: &Configuration) -> Result<()> {
    let asks_for_no_sync = configuration.settings.contains_key("unsafe-no-fsync");
    ensure!(
        product != Product::Etcd || !asks_for_no_sync || etcd::can_be_unsafe(),
        "this etcd always syncs: --unsafe-no-fsync needs version 3.5"
    );
    if configuration.eatmydata {
        eatmydata_library()?;
    }
    Ok(())
}

/// The configuration's own copy of the template, on a disk of its own, on the slow one, or in the work directory.
fn copy(
    lab: &Lab,
    template: &Template<'_>,
    name: &str,
    (device, slow): (Option<&LoopDisk>, Option<&SlowDisk>),
) -> Result<PathBuf> {
    match (device, slow) {
        (Some(device), _) => template.copy_into(device.path()),
        (None, Some(slow)) => {
            let dir = slow.path().join(name);
            lab.fresh_dir(&dir)?;
            template.copy_into(&dir)
        }
        (None, None) => template.copy_as(name),
    }
}

/// A stand-in for a disk.
fn device(lab: &Lab, configuration: &str, what: &str) -> Result<LoopDisk> {
    LoopDisk::device(lab, &format!("{configuration}-{what}"), DEVICE_BYTES)
}

/// The directory on another disk, if it is one.
fn apart<'a>(data: &Path, means: &Means<'a>) -> Result<&'a Path> {
    let here = Placement::of(data)?;
    let disk = here.mapping.last().map_or("?", String::as_str).to_owned();
    let dir = means.apart.with_context(|| {
        format!("the data lies on {disk}: name a directory on another disk with --apart DIR (a loop device would lie on the same disk)")
    })?;
    let there = Placement::of(dir).with_context(|| format!("cannot tell what {} lies on", dir.display()))?;
    refuse_decoy(&there)?;
    ensure!(!there.in_memory(), "{} is on {}: RAM is not a disk", dir.display(), there.file_system);
    ensure!(!there.shares_device(&here), "{} lies on the same disk ({disk}) as the data", dir.display());
    Ok(dir)
}
