//! A configuration's database, as its file says: confined, mounted, under Seawall or bare.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use seawall_awr::database::Address;

use super::confine::{Confine, Limits};
use super::memory;
use super::mount::MountPoint;
use super::prepare::{Prepared, limits};
use super::standby::Standby;
use crate::case::{Case, Configuration, Front, Product};
use crate::lab::Lab;
use crate::pg::{Cluster, Launch, SETTINGS};
use crate::pool::Pool;
use crate::tools::eatmydata_library;
use crate::{etcd, launch, mariadb, redis};

/// One server runs at a time.
pub const PORT: &str = "5440";

/// What the lab itself needs to see, equal on all sides.
const WATCHED: &[(&str, &str)] =
    &[("track_io_timing", "on"), ("track_wal_io_timing", "on"), ("log_checkpoints", "on")];

/// What runs. Fields drop in this order.
pub struct Server<'a> {
    pub database: Database<'a>,
    standby: Option<Standby>,
    mount: Option<MountPoint>,
    confine: Confine,
}

/// A database that accepts what its load asks.
pub enum Database<'a> {
    Postgres(Cluster<'a>),
    Mariadb(mariadb::Server<'a>),
    Redis(redis::Server),
    Etcd(etcd::Server),
    /// In the load's own process.
    Embedded,
}

impl<'a> Server<'a> {
    /// Starts it, and waits until it accepts connections. From here until its end what this thread starts is
    /// confined as the configuration says.
    pub fn start(lab: &'a Lab, bin: &'a Path, case: &Case, prepared: &Prepared) -> Result<Self> {
        if case.memory.is_some() {
            if let Some(pool) = &prepared.pool {
                // Its memory stands for other media: it is not the database's.
                pool.start_daemon(&prepared.data, prepared.product.preset())?;
                bring(pool, prepared)?;
            }
            memory::forget(&prepared.data)?;
        }
        Self::restart(lab, bin, case, prepared)
    }

    /// The same after a crash, as its user would: nothing is made ready for it.
    pub fn restart(lab: &'a Lab, bin: &'a Path, case: &Case, prepared: &Prepared) -> Result<Self> {
        let configuration = &prepared.configuration;
        let confine = confine(case, configuration)?;
        let mount =
            (configuration.front == Front::Mount).then(|| MountPoint::mount(lab, prepared)).transpose()?;
        let data = mount.as_ref().map_or(prepared.data.as_path(), MountPoint::path);
        let database = match prepared.product {
            Product::Postgres => Database::Postgres(postgres(lab, bin, case, prepared, data)?),
            Product::Mariadb => Database::Mariadb(mariadb(lab, bin, case, prepared, data)?),
            Product::Redis => Database::Redis(redis(lab, bin, case, prepared, data)?),
            Product::Etcd => Database::Etcd(etcd(lab, case, prepared, data)?),
            Product::Rocksdb | Product::Sqlite | Product::Lmdb | Product::Files => Database::Embedded,
        };
        let standby = match &database {
            Database::Postgres(cluster) if configuration.standby => {
                Some(Standby::start(lab, bin, cluster, configuration.delay_us.unwrap_or(0))?)
            }
            _ => None,
        };
        Ok(Server { database, standby, mount, confine })
    }

    /// PostgreSQL, where that is what runs.
    pub fn postgres(&self) -> Result<&Cluster<'a>> {
        match &self.database {
            Database::Postgres(cluster) => Ok(cluster),
            _ => bail!("the load does not run on PostgreSQL"),
        }
    }

    /// Where its counters are asked for, if it is a server.
    pub fn address(&self) -> Option<Address> {
        match &self.database {
            Database::Postgres(cluster) => Some(Address::Postgres(cluster.connection())),
            Database::Mariadb(server) => Some(Address::Mariadb(server.socket())),
            Database::Redis(server) => Some(Address::Redis(server.socket().display().to_string())),
            Database::Etcd(_) | Database::Embedded => None,
        }
    }

    /// Where the database finds its files.
    pub fn data<'b>(&'b self, prepared: &'b Prepared) -> &'b Path {
        self.mount.as_ref().map_or(prepared.data.as_path(), MountPoint::path)
    }

    /// Shuts down in order.
    pub fn stop(self) -> Result<()> {
        let Server { database, standby, mount, confine } = self;
        let stopped = match database {
            Database::Postgres(cluster) => cluster.stop(),
            Database::Mariadb(server) => server.stop(),
            Database::Redis(server) => server.stop(),
            Database::Etcd(server) => server.stop(),
            Database::Embedded => Ok(()),
        };
        drop(standby);
        drop(mount);
        drop(confine);
        stopped
    }

    /// Kills every process of the database, and these in the same instant.
    pub fn kill(self, others: &[u32]) -> Result<()> {
        let Server { database, mount, confine, .. } = self;
        let killed = match database {
            Database::Postgres(cluster) => cluster.kill_with(others).map(drop),
            Database::Mariadb(server) if others.is_empty() => server.kill(),
            Database::Mariadb(server) => server.kill_with(others),
            _ => bail!("only PostgreSQL and MariaDB are killed"),
        };
        drop(mount);
        drop(confine);
        killed
    }
}

/// Makes the block cache keep or prewarm the data, as configured, before anybody reads.
fn bring(pool: &Pool, prepared: &Prepared) -> Result<()> {
    let Prepared { configuration, product, data, .. } = prepared;
    // PostgreSQL's tables and indexes; the rest is small, or read once.
    let data = if *product == Product::Postgres { data.join("base") } else { data.clone() };
    for (word, _) in [("keep", configuration.keep), ("prewarm", configuration.prewarm)].iter().filter(|w| w.1)
    {
        pool.tell_cache(word, &data)?;
    }
    Ok(())
}

/// Where one side has a quota, all are in a group, the others with all CPUs' time: a group of its own has a share
/// of its own on a busy machine, and that must not be the difference.
fn confine(case: &Case, configuration: &Configuration) -> Result<Confine> {
    let used = case.configurations.iter().any(|c| c.get_ref().cpu_max.is_some());
    let wanted = Limits { memory: case.memory_bytes(), ..limits(configuration) };
    if !used || configuration.cpu_max.is_some() {
        return Confine::to(wanted);
    }
    let all = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    // Without quotas on this machine there is no such group on any side.
    Confine::to(Limits { cpu_max: Some(all), ..wanted }).or_else(|_| Confine::to(wanted))
}

/// A program on this data, under Seawall's library or bare; its arguments follow.
pub fn command(lab: &Lab, prepared: &Prepared, program: &Path, data: &Path) -> Result<Command> {
    if prepared.configuration.front != Front::Preload {
        let mut command = lab.command(program);
        if prepared.configuration.eatmydata {
            command.env("LD_PRELOAD", eatmydata_library()?);
        }
        return Ok(command);
    }
    let pool = prepared.pool.as_ref().context("the preload has no pool")?;
    let configuration = &prepared.configuration;
    let how = (prepared.product.preset(), configuration.policy.name());
    let recovery = configuration.recovery.as_deref();
    let options: Vec<&str> = recovery.map(|time| ["--recovery", time]).into_iter().flatten().collect();
    Ok(launch::under_with(lab, pool, how, &options, data, program))
}

fn postgres<'a>(
    lab: &'a Lab,
    bin: &'a Path,
    case: &Case,
    prepared: &Prepared,
    data: &Path,
) -> Result<Cluster<'a>> {
    let mut command = command(lab, prepared, &bin.join("postgres"), data)?;
    command.arg("-D").arg(data);
    let mut set = |name: &str, value: &str| {
        command.args(["-c", &format!("{name}={value}")]);
    };
    SETTINGS.iter().chain(WATCHED).for_each(|(name, value)| set(name, value));
    prepared.settings(case).for_each(|(name, value)| set(name, &value));
    if prepared.configuration.standby {
        // The way to a standby takes its time: over the network.
        set("listen_addresses", "127.0.0.1");
    }
    set("port", PORT);
    set("unix_socket_directories", &lab.work.sockets().to_string_lossy());
    // The lab itself may not be allowed into a mount of the database's user: it looks at the files below it.
    let launch = Launch {
        name: prepared.configuration.name.clone(),
        port: PORT.to_owned(),
        data: prepared.data.clone(),
        direct: prepared.configuration.front == Front::Mount,
        command,
    };
    Cluster::launch(lab, bin, launch)
}

fn mariadb<'a>(
    lab: &'a Lab,
    program: &Path,
    case: &Case,
    prepared: &Prepared,
    data: &Path,
) -> Result<mariadb::Server<'a>> {
    let name = &prepared.configuration.name;
    let mut command = command(lab, prepared, program, data)?;
    command.args(mariadb::SETTINGS);
    prepared.settings(case).for_each(|(name, value)| {
        command.arg(format!("--{name}={value}"));
    });
    mariadb::place(&mut command, lab, name, data);
    mariadb::Server::launch(lab, name, data, command)
}

fn redis(lab: &Lab, program: &Path, case: &Case, prepared: &Prepared, data: &Path) -> Result<redis::Server> {
    let name = &prepared.configuration.name;
    let mut command = command(lab, prepared, program, data)?;
    command.args(redis::SETTINGS);
    redis::place(&mut command, lab, name, data);
    prepared.settings(case).for_each(|(name, value)| {
        command.arg(format!("--{name}")).arg(value);
    });
    redis::Server::launch(lab, name, command)
}

fn etcd(lab: &Lab, case: &Case, prepared: &Prepared, data: &Path) -> Result<etcd::Server> {
    let mut command = command(lab, prepared, &etcd::program()?, data)?;
    command.args(prepared.settings(case).map(|(name, value)| format!("--{name}={value}")));
    etcd::Server::launch(command, data)
}
