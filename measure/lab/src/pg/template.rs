//! The cluster every side starts from: created once, copied for each side, so that all begin with the
//! same bytes.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Cluster, SUPERUSER};
use crate::lab::Lab;
use crate::process::run;
use crate::side::Side;

/// A stopped cluster with a load's tables.
pub struct Template<'a> {
    lab: &'a Lab,
    data: PathBuf,
}

impl<'a> Template<'a> {
    /// initdb, pgbench -i, shutdown; on the bare file system, not measured.
    pub fn create(lab: &'a Lab, bin: &Path, scale: u32) -> Result<Self> {
        Self::create_with(lab, bin, |cluster| {
            let mut init = cluster.client("pgbench");
            init.args(["-i", "-q", "-s", &scale.to_string()]);
            run(init, "pgbench -i").map(drop)
        })
    }

    /// The same with other tables.
    pub fn create_with(
        lab: &'a Lab,
        bin: &Path,
        tables: impl FnOnce(&Cluster<'_>) -> Result<()>,
    ) -> Result<Self> {
        let data = lab.work.data("pg-template");
        lab.fresh_dir(&data)?;
        let mut initdb = lab.command(bin.join("initdb"));
        // Checksums, so that a torn page cannot pass the checks after a kill.
        initdb.args([
            "--no-sync",
            "--data-checksums",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--username",
            SUPERUSER,
        ]);
        initdb.arg("-D").arg(&data);
        run(initdb, "initdb")?;
        let cluster = Cluster::start(lab, bin, Side::Unsafe, &data)?;
        tables(&cluster)?;
        cluster.stop()?;
        Ok(Template { lab, data })
    }

    /// A data directory that is there, of whatever database.
    pub fn of(lab: &'a Lab, data: PathBuf) -> Self {
        Template { lab, data }
    }

    /// A side's own copy.
    pub fn copy_for(&self, side: Side) -> Result<PathBuf> {
        self.copy_to(self.lab.data(side, &format!("pg-{}", side.name())))
    }

    /// A copy of this name.
    pub fn copy_as(&self, name: &str) -> Result<PathBuf> {
        self.copy_to(self.lab.work.data(&format!("pg-{name}")))
    }

    /// A copy in this directory.
    pub fn copy_into(&self, dir: &Path) -> Result<PathBuf> {
        self.copy_to(dir.join("pg"))
    }

    fn copy_to(&self, to: PathBuf) -> Result<PathBuf> {
        if to.exists() {
            std::fs::remove_dir_all(&to)?;
        }
        let mut copy = self.lab.command("/bin/cp");
        copy.args(["-a", "--reflink=never"]).arg(&self.data).arg(&to);
        run(copy, "copying the cluster")?;
        Ok(to)
    }

    /// Its data directory, for a caller that needs no copies.
    pub fn into_data(self) -> PathBuf {
        self.data
    }

    /// Removes it: the sides have their copies.
    pub fn remove(self) -> Result<()> {
        Ok(std::fs::remove_dir_all(self.data)?)
    }
}
