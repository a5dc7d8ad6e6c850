//! Seawall's own mount of a configuration's data, unmounted again.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::prepare::Prepared;
use crate::lab::Lab;
use crate::process::run;

/// `seawall mount` of a configuration's data.
pub struct MountPoint {
    at: PathBuf,
    umount: Command,
}

impl MountPoint {
    /// Mounts it.
    pub fn mount(lab: &Lab, prepared: &Prepared) -> Result<Self> {
        ensure!(Path::new("/dev/fuse").exists(), "there is no /dev/fuse on this machine");
        let pool = prepared.pool.as_ref().context("the mount has no pool")?;
        let at = lab.work.data(&format!("mount-{}", prepared.configuration.name));
        lab.fresh_dir(&at)?;
        let mut mount = pool.seawall();
        mount.args([
            "mount",
            "--quiet",
            "--preset",
            prepared.product.preset(),
            "--policy",
            prepared.configuration.policy.name(),
        ]);
        mount.arg("--pool").arg(pool.path()).args(pool.by_name()).arg(&prepared.data).arg(&at);
        let mut umount = pool.seawall();
        umount.arg("umount").arg(&at);
        run(mount, "seawall mount")?;
        Ok(MountPoint { at, umount })
    }

    /// Where the database finds its files.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        match self.umount.output() {
            Ok(said) if said.status.success() => {
                let _ = std::fs::remove_dir(&self.at);
            }
            Ok(said) => errln!("seawall-lab: {}", String::from_utf8_lossy(&said.stderr).trim()),
            Err(e) => errln!("seawall-lab: cannot run seawall umount: {e}"),
        }
    }
}
