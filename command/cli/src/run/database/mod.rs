//! Which database, and where its data is: from --preset and --data, else from the command itself.

mod lmdb;
mod mariadb;
mod options;
mod redis;
mod sqlite;
mod twin;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_daemon::AddRoot;
use seawall_wire::shm::{Policy, Preset};

use super::behind::{self, Inner};
use super::program::Program;

/// What a command is about.
pub struct Found {
    /// The database's program, perhaps behind others.
    pub inner: Inner,
    /// What it is.
    pub preset: Preset,
    /// The directories to manage.
    pub roots: Vec<AddRoot>,
}

/// The database of a command, and the directories to manage.
///
/// # Errors
/// If neither the options nor the command say, or a directory is not there.
pub fn find(
    preset: Option<&str>,
    policy: Policy,
    data: &[PathBuf],
    program: &Program,
    arguments: &[OsString],
) -> Result<Found> {
    let inner = behind::find(&program.name, arguments, |name| by_name(name).is_some());
    let by_data = || (!data.is_empty()).then_some(Preset::Any);
    let found = || by_name(&inner.name).or_else(by_data);
    let Some(preset) = preset.map_or_else(found, Preset::from_name) else {
        bail!(
            "cannot tell where {} writes: give the directory with --data, and if it is a database that \
             Seawall knows, --preset ({})",
            program.name,
            presets().join(", ")
        )
    };
    let mut found =
        if data.is_empty() { vec![from_command(preset, &inner.arguments)?] } else { data.to_vec() };
    found.extend(twin::state(&program.name, arguments)?);
    let roots = roots(preset, policy, &found, &inner.arguments)?;
    Ok(Found { inner, preset, roots })
}

impl Found {
    /// As root: the user whom the database becomes by itself, who owns its data. `None`: it stays whoever starts it.
    pub fn becomes(&self) -> Option<u32> {
        use std::os::unix::fs::MetadataExt;
        let changes = self.inner.changes_user
            || match self.preset {
                // As root it refuses to run.
                Preset::Postgres => true,
                // The same, unless it is wanted so.
                Preset::Mariadb => !mariadb::stays_root(&self.inner.arguments),
                _ => false,
            };
        let data = self.roots.first().filter(|_| changes && rustix::process::geteuid().is_root())?;
        let owner = std::fs::metadata(&data.data).ok()?.uid();
        (owner != 0).then_some(owner)
    }
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
        for preset in kinds(preset) {
            let root = root(preset, policy, dir)?;
            roots.extend(elsewhere(preset, &root, arguments));
            roots.push(root);
        }
    }
    Ok(roots)
}

/// The presets that people name: a disk's is `seawall disk`'s alone.
pub fn presets() -> Vec<&'static str> {
    Preset::of_programs().map(Preset::name).collect()
}

/// What a preset looks for. SQLite's databases, which so many programs have, are recognised by their content and have a
/// guard that is met.
pub fn kinds(preset: Preset) -> Vec<Preset> {
    if preset == Preset::Any { vec![Preset::Sqlite, Preset::Any] } else { vec![preset] }
}

/// Not every preset goes with every policy.
///
/// # Errors
/// If this one does not.
pub fn check_policy(preset: Preset, policy: Policy) -> Result<()> {
    if policy == Policy::Atomic && !matches!(preset, Preset::Postgres | Preset::Mariadb | Preset::Disk) {
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
            "etcd makes its system calls by itself, so a preload sees none of them: give it a directory of \
             `seawall mount`"
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
            .context("cannot tell where the data is: give -D, PGDATA or --data"),
        Preset::Sqlite => sqlite::file(arguments).map(|file| directory_of(&file)).context(
            "cannot tell which database is meant: give a file to sqlite3, or its directory with --data",
        ),
        Preset::Mariadb => Ok(mariadb::directory(arguments)),
        Preset::Redis => Ok(redis::directory(arguments)),
        Preset::Rocksdb => options::value(arguments, "--db", "")
            .context("cannot tell where the data is: give --db=DIRECTORY, or --data"),
        Preset::Etcd => options::value(arguments, "--data-dir", "")
            .context("cannot tell where the data is: give --data-dir, or --data"),
        Preset::Lmdb => lmdb::directory(arguments)
            .context("cannot tell where the data is: give the environment's directory with --data"),
        Preset::Disk => bail!("a virtual disk is served by `seawall disk IMAGE`"),
        Preset::Any => bail!("cannot tell where the data is: give its directory with --data"),
    }
}

/// The directory that a file lies in, or will: a link leads elsewhere, and so do the database's other files, which are
/// named after what it leads to.
fn directory_of(file: &Path) -> PathBuf {
    const LINKS: usize = 40;
    let within = |file: &Path| {
        file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
    };
    let mut file = file.to_owned();
    for _ in 0..LINKS {
        // What it leads to need not be there yet.
        let Ok(target) = std::fs::read_link(&file) else { break };
        file = within(&file).join(target);
    }
    within(&file)
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
            format!(
                "cannot find {} (if the directory has moved, give the present one with --data)",
                path.display()
            )
        })
    };
    let data = real(data)?;
    let path = match preset {
        Preset::Postgres if !data.join("PG_VERSION").exists() => {
            bail!(
                "{} is not a PGDATA (it has no PG_VERSION): run initdb first, without Seawall",
                data.display()
            )
        }
        Preset::Postgres if policy == Policy::Tail => real(&data.join("pg_wal"))?,
        _ => data.clone(),
    };
    if !path.is_dir() {
        bail!("{} is not a directory", path.display());
    }
    Ok(AddRoot { preset: preset.name().into(), policy: policy.name().into(), path, data, recovery: None })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn args(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_link_leads_to_the_directory_of_its_target() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("real")).expect("made");
        for (target, link) in [("real/there.db", "link.db"), ("link.db", "second.db")] {
            std::os::unix::fs::symlink(target, at(link)).expect("a link");
        }
        assert_eq!(directory_of(&at("second.db")), at("real"), "its target is not there yet");
        std::fs::write(at("real/there.db"), "").expect("written");
        assert_eq!(directory_of(&at("second.db")), at("real"));
        assert_eq!(directory_of(Path::new("plain.db")), Path::new("."));
        std::os::unix::fs::symlink("loop", at("loop")).expect("a link");
        assert_eq!(directory_of(&at("loop")), dir.path());
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
