//! Which database, and where its data is: from --preset and --data, else from the command itself.

mod lmdb;
mod mariadb;
mod options;
mod redis;
mod sqlite;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_daemon::AddRoot;
use seawall_wire::shm::{Policy, Preset};

use super::program::Program;

/// The directories to manage.
///
/// # Errors
/// If neither the options nor the command say, or a directory is not there.
pub fn find(
    preset: Option<&str>,
    policy: Policy,
    data: &[PathBuf],
    program: &Program,
    arguments: &[OsString],
) -> Result<Vec<AddRoot>> {
    let Some(preset) = preset.map_or_else(|| by_name(&program.name), Preset::from_name) else {
        bail!(
            "what does {} write? Say so with --preset ({}) and --data DIRECTORY",
            program.name,
            Preset::ALL.map(Preset::name).join(", ")
        )
    };
    let found = if data.is_empty() { vec![from_command(preset, arguments)?] } else { data.to_vec() };
    roots(preset, policy, &found, arguments)
}

/// What is managed of these directories, and of what they and a command's arguments lead to.
///
/// # Errors
/// If one is not there, or not what the preset says, or the preset does not know the policy.
pub fn roots(
    preset: Preset,
    policy: Policy,
    data: &[PathBuf],
    arguments: &[OsString],
) -> Result<Vec<AddRoot>> {
    check_preload(preset)?;
    check_policy(preset, policy)?;
    let mut roots = Vec::new();
    for dir in data {
        let root = root(preset, policy, dir)?;
        roots.extend(elsewhere(preset, &root, arguments));
        roots.push(root);
    }
    Ok(roots)
}

/// Not every preset goes with every policy.
///
/// # Errors
/// If this one does not.
pub fn check_policy(preset: Preset, policy: Policy) -> Result<()> {
    if policy == Policy::Atomic && !matches!(preset, Preset::Postgres | Preset::Mariadb) {
        bail!("--policy atomic is for PostgreSQL and MariaDB; {} goes with --policy tail", preset.name());
    }
    Ok(())
}

/// Not every preset's programs call the library that a preload stands before.
///
/// # Errors
/// If this one's do not.
pub fn check_preload(preset: Preset) -> Result<()> {
    if preset == Preset::Etcd {
        bail!(
            "etcd makes its system calls by itself, a preload sees none: give it a directory of `seawall mount`"
        );
    }
    Ok(())
}

fn by_name(program: &str) -> Option<Preset> {
    Some(match program {
        "postgres" | "postmaster" | "pg_ctl" => Preset::Postgres,
        "sqlite3" => Preset::Sqlite,
        "mariadbd" | "mysqld" | "mariadbd-safe" | "mysqld_safe" => Preset::Mariadb,
        "redis-server" => Preset::Redis,
        "db_bench" | "ldb" => Preset::Rocksdb,
        "etcd" => Preset::Etcd,
        "mdb_load" | "mdb_stat" | "mdb_dump" | "mdb_copy" => Preset::Lmdb,
        _ => return None,
    })
}

fn from_command(preset: Preset, arguments: &[OsString]) -> Result<PathBuf> {
    match preset {
        Preset::Postgres => options::value(arguments, "--pgdata", "-D")
            .or_else(|| std::env::var_os("PGDATA").map(PathBuf::from))
            .context("where is the data? Give -D, PGDATA or --data"),
        Preset::Sqlite => sqlite::file(arguments)
            .map(|file| directory_of(&file))
            .context("which database? Give a file to sqlite3, or its directory with --data"),
        Preset::Mariadb => Ok(mariadb::directory(arguments)),
        Preset::Redis => Ok(redis::directory(arguments)),
        Preset::Rocksdb => {
            options::value(arguments, "--db", "").context("where is the data? Give --db=DIRECTORY, or --data")
        }
        Preset::Etcd => options::value(arguments, "--data-dir", "")
            .context("where is the data? Give --data-dir, or --data"),
        Preset::Lmdb => lmdb::directory(arguments)
            .context("where is the data? Give the environment's directory with --data"),
    }
}

fn directory_of(file: &Path) -> PathBuf {
    file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// What of an atomic database lies outside of its directory: of PostgreSQL its WAL and its tablespaces, reached
/// through links; of MariaDB what the options and its own notes name.
fn elsewhere(preset: Preset, root: &AddRoot, arguments: &[OsString]) -> Vec<AddRoot> {
    if root.policy != Policy::Atomic.name() {
        return Vec::new();
    }
    let outside: BTreeSet<PathBuf> = match preset {
        Preset::Postgres => seawall_daemon::tablespaces::outside(&root.data).into_iter().collect(),
        _ => {
            let named = mariadb::elsewhere(&root.data, arguments).into_iter();
            let real = named.filter_map(|path| std::fs::canonicalize(path).ok());
            real.filter(|path| !path.starts_with(&root.data)).collect()
        }
    };
    outside.into_iter().map(|path| AddRoot { path, ..root.clone() }).collect()
}

/// What is managed: of PostgreSQL the log's directory, or with `atomic` its own; of the others the database's.
///
/// # Errors
/// If the directory is not there, or not what the preset says.
pub fn root(preset: Preset, policy: Policy, data: &Path) -> Result<AddRoot> {
    let real = |path: &Path| {
        std::fs::canonicalize(path).with_context(|| {
            format!("{}: has the directory moved? Give the present one with --data", path.display())
        })
    };
    let data = real(data)?;
    let path = match preset {
        Preset::Postgres if !data.join("PG_VERSION").exists() => {
            bail!("{} is no PGDATA (it has no PG_VERSION): run initdb first, without Seawall", data.display())
        }
        Preset::Postgres if policy == Policy::Tail => real(&data.join("pg_wal"))?,
        _ => data.clone(),
    };
    if !path.is_dir() {
        bail!("{} is not a directory", path.display());
    }
    Ok(AddRoot { preset: preset.name().into(), policy: policy.name().into(), path, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn args(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_directory_that_is_gone_is_named() {
        let error =
            root(Preset::Sqlite, Policy::Tail, Path::new("/no/such/place")).expect_err("no directory");
        assert!(format!("{error:#}").contains("/no/such/place"));
        let dir = tempfile::tempdir().expect("a directory");
        let error = root(Preset::Postgres, Policy::Tail, dir.path()).expect_err("no PGDATA");
        assert!(error.to_string().contains("initdb"), "{error}");
        let error = roots(Preset::Etcd, Policy::Tail, &[dir.path().into()], &[]).expect_err("no preload");
        assert!(error.to_string().contains("seawall mount"), "{error}");
    }
}
