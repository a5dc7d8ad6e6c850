//! A configuration's server, as its file says: confined, mounted, under Seawall or bare.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::confine::Confine;
use super::mount::{MountPoint, emulated, policy};
use super::prepare::Prepared;
use crate::case::{Case, Configuration, Front};
use crate::lab::Lab;
use crate::pg::{Cluster, Launch, SETTINGS};

/// One server runs at a time.
const PORT: &str = "5440";

/// What the lab itself needs to see, equal on all sides.
const WATCHED: &[(&str, &str)] =
    &[("track_io_timing", "on"), ("track_wal_io_timing", "on"), ("log_checkpoints", "on")];

/// A running server. Fields drop in this order.
pub struct Server<'a> {
    pub cluster: Cluster<'a>,
    mount: Option<MountPoint>,
    confine: Confine,
}

impl<'a> Server<'a> {
    /// Starts it, and waits until it accepts connections. From here until its end what this thread starts is
    /// confined as the configuration says.
    pub fn start(lab: &'a Lab, bin: &'a Path, case: &Case, prepared: &Prepared) -> Result<Self> {
        let configuration = &prepared.configuration;
        let confine = confine(case, configuration)?;
        let mount =
            (configuration.front == Front::Mount).then(|| MountPoint::mount(lab, prepared)).transpose()?;
        let data = mount.as_ref().map_or(prepared.data.as_path(), MountPoint::path);
        let mut command = command(lab, bin, prepared, data)?;
        command.args(arguments(lab, case, prepared, data));
        // The lab itself may not be allowed into a mount of the database's user: it looks at the files below it.
        let launch = Launch {
            name: configuration.name.clone(),
            port: PORT.to_owned(),
            data: prepared.data.clone(),
            direct: configuration.front == Front::Mount,
            command,
        };
        Ok(Server { cluster: Cluster::launch(lab, bin, launch)?, mount, confine })
    }

    /// Shuts down in order.
    pub fn stop(self) -> Result<()> {
        let Server { cluster, mount, confine } = self;
        let stopped = cluster.stop();
        drop(mount);
        drop(confine);
        stopped
    }

    /// Kills every process of the database.
    pub fn kill(self) -> Result<()> {
        let Server { cluster, mount, confine } = self;
        let killed = cluster.kill();
        drop(mount);
        drop(confine);
        killed.map(drop)
    }
}

/// Where one side has a quota, all are in a group, the others with all CPUs' time: a group of its own has a share
/// of its own on a busy machine, and that must not be the difference.
fn confine(case: &Case, configuration: &Configuration) -> Result<Confine> {
    let used = case.configurations.iter().any(|c| c.get_ref().cpu_max.is_some());
    if !used || configuration.cpu_max.is_some() {
        return Confine::to(configuration.cpus, configuration.cpu_max);
    }
    let all = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    // Without quotas on this machine there is no such group on any side.
    Confine::to(configuration.cpus, Some(all)).or_else(|_| Confine::to(configuration.cpus, None))
}

fn command(lab: &Lab, bin: &Path, prepared: &Prepared, data: &Path) -> Result<Command> {
    let program = bin.join("postgres");
    if prepared.configuration.front != Front::Preload {
        return Ok(lab.command(program));
    }
    let pool = prepared.pool.as_ref().context("a preload without a pool")?;
    let mut command = pool.seawall();
    command.current_dir(lab.work.path());
    command
        .args(["run", "--quiet", "--preset", "postgres", "--policy", policy(prepared)])
        .args(emulated(pool));
    command.arg("--pool").arg(pool.path()).arg("--data").arg(data).arg("--").arg(program);
    Ok(command)
}

/// The server's arguments; of two that set the same the last one counts.
fn arguments(lab: &Lab, case: &Case, prepared: &Prepared, data: &Path) -> Vec<String> {
    let mut args = vec!["-D".to_owned(), data.display().to_string()];
    let mut set = |name: &str, value: &str| args.extend(["-c".to_owned(), format!("{name}={value}")]);
    SETTINGS.iter().chain(WATCHED).for_each(|(name, value)| set(name, value));
    let of_case = case.settings.iter().chain(&prepared.configuration.settings);
    of_case.for_each(|(name, value)| set(name, &value.to_string()));
    set("port", PORT);
    set("unix_socket_directories", &lab.work.sockets().to_string_lossy());
    args
}
