//! What is known about services: which database a service is, where its data is, how it gets an environment.
//!
//! In: a unit, and what --preset and --data say. Out: a [`Service`], or what is missing to make one.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_wire::shm::Preset;

use super::machine::Machine;
use super::unit::{Unit, short_name};
use crate::run::database;
use crate::user;

/// Debian's PostgreSQL configuration.
const POSTGRES_ETC: &str = "/etc/postgresql";

/// A service that can be attached.
#[derive(Debug)]
pub struct Service {
    /// Its preset.
    pub preset: Preset,
    /// Its data directory, as its real path.
    pub data: PathBuf,
    /// The data's owner, who the database runs as.
    pub uid: u32,
    /// A file the service takes its whole environment from; systemd's Environment= does not reach it.
    pub environment: Option<PathBuf>,
}

impl Service {
    /// The name of the user it runs as: of an image only the number is sure.
    pub fn user(&self, machine: &Machine) -> String {
        if machine.is_live() { user::name(self.uid) } else { self.uid.to_string() }
    }
}

/// What people say beside the service's name.
#[derive(Default)]
pub struct Given<'a> {
    /// --preset
    pub preset: Option<&'a str>,
    /// --data
    pub data: Option<&'a Path>,
}

/// Finds out what a service is.
///
/// # Errors
/// If it is not known, or not as it should be.
pub fn service(machine: &Machine, unit: &Unit, given: &Given<'_>) -> Result<Service> {
    let name = short_name(&unit.name);
    let cluster = cluster(machine, name)?;
    let Some(preset) = given.preset.map_or_else(|| preset_of(name), Preset::from_name) else {
        let all = database::presets().join(", ");
        bail!("cannot tell which database {name} is: name it with --preset ({all}) and --data");
    };
    let data = match (given.data, &cluster) {
        (Some(data), _) => data.to_owned(),
        (None, Some(cluster)) => cluster.data(machine)?,
        (None, None) => default_data(preset).map(PathBuf::from).with_context(|| {
            format!("cannot tell where the data of {name} is: name its directory with --data")
        })?,
    };
    let data =
        machine.real(&data).with_context(|| format!("cannot find the data directory {}", data.display()))?;
    let found = std::fs::metadata(machine.at(&data))?;
    if preset == Preset::Postgres && !machine.at(&data).join("PG_VERSION").exists() {
        bail!("{} is not a PGDATA (it has no PG_VERSION): give the right one with --data", data.display());
    }
    check_user(unit, &data, found.uid())?;
    let environment = cluster.map(|cluster| cluster.etc.join("environment"));
    Ok(Service { preset, data, uid: found.uid(), environment })
}

/// The preset of a service, by the name distributions give it.
fn preset_of(service: &str) -> Option<Preset> {
    let base = service.split('@').next().unwrap_or(service);
    match base {
        "mariadb" | "mysql" | "mysqld" => Some(Preset::Mariadb),
        "redis" | "redis-server" => Some(Preset::Redis),
        _ if base == "postgresql" || base.starts_with("postgresql-") => Some(Preset::Postgres),
        _ => None,
    }
}

fn default_data(preset: Preset) -> Option<&'static str> {
    match preset {
        Preset::Mariadb => Some("/var/lib/mysql"),
        Preset::Redis => Some("/var/lib/redis"),
        _ => None,
    }
}

/// One of Debian's PostgreSQL clusters. Its starter, pg_ctlcluster, clears the environment and takes a new one
/// from the file `environment` of the cluster.
struct Cluster {
    etc: PathBuf,
    version: String,
    name: String,
}

fn cluster(machine: &Machine, service: &str) -> Result<Option<Cluster>> {
    let debian = machine.at(POSTGRES_ETC).is_dir();
    if service == "postgresql" && debian {
        let list = clusters(machine);
        let list = if list.is_empty() { "none is configured".into() } else { list.join(", ") };
        bail!("postgresql stands for all clusters of this machine: attach each one by its own name ({list})");
    }
    let Some((version, name)) = service.strip_prefix("postgresql@").and_then(|rest| rest.split_once('-'))
    else {
        return Ok(None);
    };
    let etc = Path::new(POSTGRES_ETC).join(version).join(name);
    if !machine.at(&etc).join("postgresql.conf").exists() {
        if !debian {
            return Ok(None);
        }
        bail!("there is no cluster {version}/{name}; the clusters here: {}", clusters(machine).join(", "));
    }
    Ok(Some(Cluster { etc, version: version.into(), name: name.into() }))
}

impl Cluster {
    /// `data_directory` of its configuration, else Debian's place.
    fn data(&self, machine: &Machine) -> Result<PathBuf> {
        let text = machine.read(self.etc.join("postgresql.conf"))?.unwrap_or_default();
        let set = text.lines().filter_map(data_directory).next_back().map(PathBuf::from);
        Ok(set.unwrap_or_else(|| Path::new("/var/lib/postgresql").join(&self.version).join(&self.name)))
    }
}

/// The value in a line `data_directory = '…'`.
fn data_directory(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("data_directory")?.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    rest.strip_prefix('\'')?.split('\'').next()
}

/// Services of all clusters.
fn clusters(machine: &Machine) -> Vec<String> {
    let names = |dir: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    let etc = machine.at(POSTGRES_ETC);
    let mut all = Vec::new();
    for version in names(&etc) {
        let is_cluster = |name: &String| etc.join(&version).join(name).join("postgresql.conf").exists();
        let of_version = names(&etc.join(&version)).into_iter().filter(is_cluster);
        all.extend(of_version.map(|name| format!("postgresql@{version}-{name}")));
    }
    all.sort();
    all
}

/// The daemon serves the data's owner: a service of somebody else would be refused by it.
fn check_user(unit: &Unit, data: &Path, owner: u32) -> Result<()> {
    if unit.get("DynamicUser").is_some_and(is_yes) {
        bail!(
            "{} has DynamicUser=yes: a pool needs an owner that stays the same. Give the unit a User=",
            unit.name
        );
    }
    if let Some(root) = unit.get("RootDirectory").or(unit.get("RootImage")) {
        bail!(
            "{} runs in a root directory of its own ({root}), which does not have the preload library",
            unit.name
        );
    }
    let Some(user) = unit.get("User").filter(|user| !user.contains('%')) else { return Ok(()) };
    let owner = user::name(owner);
    if user != owner && user != "root" {
        bail!("{} runs as {user}, but its data {} belongs to {owner}", unit.name, data.display());
    }
    Ok(())
}

/// systemd's way of saying yes.
pub fn is_yes(value: &str) -> bool {
    ["1", "yes", "true", "on", "y", "t"].contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_known_by_their_names() {
        for (name, preset) in [
            ("postgresql@15-main", Some(Preset::Postgres)),
            ("postgresql-16", Some(Preset::Postgres)),
            ("mariadb", Some(Preset::Mariadb)),
            ("redis-server@a", Some(Preset::Redis)),
            ("nginx", None),
        ] {
            assert_eq!(preset_of(name), preset, "{name}");
        }
    }

    #[test]
    fn the_data_directory_is_found_in_postgresql_conf() {
        assert_eq!(data_directory("data_directory = '/srv/pg'\t# here"), Some("/srv/pg"));
        assert_eq!(data_directory(" data_directory '/srv/pg'"), Some("/srv/pg"));
        assert_eq!(data_directory("#data_directory = 'x'"), None);
        assert_eq!(data_directory("data_checksums = 'x'"), None);
    }
}
