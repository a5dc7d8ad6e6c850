//! The directory of a database, as the programs of a side find it: on the disk, or on a mount of Seawall's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::boot::Boot;
use crate::outside::{BASE, DATA, session};
use crate::plan::Side;
use crate::program::{self, Running, command};

const LIMIT: Duration = Duration::from_secs(60);

/// Any program's preset.
pub const ANY: &str = "any";

/// How `seawall run` learns of a program's preset.
#[derive(Clone, Copy)]
pub enum Preset {
    /// By name.
    Named(&'static str),
    /// By the program, and by where its data is.
    Found,
}

/// Where a database's directory is for the programs of a side.
pub struct Place {
    path: PathBuf,
    mount: Option<Running>,
}

impl Place {
    /// The directory `name` of the disk, mounted first if the side goes through a mount: that recovers.
    ///
    /// # Errors
    /// If it does not mount.
    pub fn of(boot: &Boot, side: Side, name: &str, preset: &str) -> Result<Self> {
        let behind = Path::new(DATA).join(name);
        if !boot.is_mounted(side) {
            return Ok(Self { path: behind, mount: None });
        }
        let at = Path::new(BASE).join("at");
        let mut mount = Command::new(boot.program("seawall"));
        mount.args(["mount", "--foreground", "--quiet", "--allow-other"]);
        boot.with_log(&mut mount);
        let preset = if boot.plan.as_any { ANY } else { preset };
        mount.args(["--preset", preset, "--policy", side.policy()]);
        mount.arg(behind).arg(&at).env("XDG_RUNTIME_DIR", session()?);
        let mut mount = program::start(mount, "seawall mount")?;
        mount.wait_ready(LIMIT, || is_mountpoint(&at))?;
        Ok(Self { path: at, mount: Some(mount) })
    }

    /// The directory, as programs have to name it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `seawall run` up to its `--`, if the programs of this side are under it: with this preset, or with any program's where
    /// the plan says so. `None`: they run bare, maybe on a mount.
    pub fn seawall_run(&self, boot: &Boot, side: Side, preset: Preset) -> Option<Command> {
        let is_under = side.is_under_seawall() && self.mount.is_none();
        is_under.then(|| {
            let mut run = boot.seawall_run();
            match if boot.plan.as_any { Preset::Named(ANY) } else { preset } {
                Preset::Named(ANY) => run.args(["--preset", ANY, "--unguarded", "--data"]).arg(&self.path),
                Preset::Named(name) => run.args(["--preset", name, "--data"]).arg(&self.path),
                Preset::Found => &mut run,
            };
            run
        })
    }

    /// One of our programs, as this side runs it.
    ///
    /// # Errors
    /// If there can be no session for it.
    pub fn command(&self, boot: &Boot, side: Side, preset: &'static str, program: &str) -> Result<Command> {
        let program = boot.program(program);
        let mut command = match self.seawall_run(boot, side, Preset::Named(preset)) {
            Some(mut run) => {
                run.arg("--").arg(program);
                run
            }
            None => Command::new(program),
        };
        command.env("XDG_RUNTIME_DIR", session()?);
        Ok(command)
    }

    /// Nobody uses it any more: unmounted, and the log closed.
    ///
    /// # Errors
    /// If it is not.
    pub fn leave(self, boot: &Boot) -> Result<()> {
        let Some(mount) = self.mount else { return Ok(()) };
        let umount = boot.program("seawall");
        let mut umount = command(&umount.to_string_lossy(), &["umount"]);
        umount.arg(&self.path).env("XDG_RUNTIME_DIR", session()?);
        program::run(umount, "seawall umount", LIMIT)?;
        let ended = mount.wait(LIMIT)?;
        ensure!(ended.status.success(), "seawall mount ended with {ended}");
        Ok(())
    }
}

fn is_mountpoint(at: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
    let (here, above) = (device(at), device(Path::new(BASE)));
    here.is_some() && here != above
}

/// Makes the mountpoint, in what stands beside the machines.
///
/// # Errors
/// If it cannot be made.
pub fn make_place() -> Result<()> {
    let at = Path::new(BASE).join("at");
    std::fs::create_dir_all(&at).with_context(|| format!("cannot create {}", at.display()))
}
