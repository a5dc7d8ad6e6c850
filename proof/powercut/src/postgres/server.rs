//! One PostgreSQL server in a machine, and the user it runs as.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use super::{DIRECTORY, PORT, SOCKETS, cluster};
use crate::boot::Boot;
use crate::judge::guard_problem;
use crate::place::{Place, Preset};
use crate::plan::{Side, Trouble};
use crate::program;
use crate::server::Server;
use crate::user;

/// PostgreSQL refuses root.
pub const USER: &str = "postgres";
/// To PostgreSQL it means: end all sessions, write everything, go.
pub const END: Signal = Signal::SIGINT;
/// Equal in every round. A small cache and short pauses, so that data files are written all the time.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("unix_socket_directories", SOCKETS),
    ("port", PORT),
    ("shared_buffers", "16MB"),
    ("min_wal_size", "2MB"),
    ("checkpoint_timeout", "30s"),
    ("autovacuum_naptime", "1s"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("max_connections", "30"),
    ("logging_collector", "off"),
];

/// Starts it and waits until it takes connections.
pub fn start(boot: &Boot, side: Side) -> Result<Server> {
    let place = Place::of(boot, side, DIRECTORY, "postgres")?;
    // What Debian's own start script does: the process id in it is of another boot.
    let _ = fs::remove_file(place.path().join("postmaster.pid"));
    make_sockets_directory()?;
    let mut command = match place.seawall_run(boot, side, Preset::Found) {
        Some(mut run) => {
            run.args(["--policy", side.policy(), "--user", USER]);
            // Checkpoints then come all the time, and a recovery syncs its directory as Seawall does it.
            if side.is_without_copies() && boot.plan.seed.is_multiple_of(2) {
                run.args(["--recovery", "1s"]);
            }
            run.arg("--").arg(binary("postgres")?);
            run
        }
        None => user::command(USER, binary("postgres")?)?,
    };
    command.arg("-D").arg(place.path());
    for setting in settings(boot, side) {
        command.arg("-c").arg(setting);
    }
    let cluster = place.path().to_owned();
    Server::start(place, command, "PostgreSQL", || status(&cluster).as_deref() == Some("ready"))
}

fn settings(boot: &Boot, side: Side) -> Vec<String> {
    // After a failed sync PostgreSQL stops hard and recovers, and would do so from a page cache that hides
    // what the disk refused. Only a server that stays down keeps its promises then.
    let refuses = matches!(boot.plan.trouble, Trouble::WriteErrors | Trouble::FlushErrors);
    let restart = ("restart_after_crash", if refuses { "off" } else { "on" });
    let fsync = ("fsync", if side == Side::Unsafe { "off" } else { "on" });
    // A cache smaller than the data: pages are written all the time, not at checkpoints only.
    let pages: &[_] = match side.is_without_copies() {
        true => &[("full_page_writes", "off"), ("shared_buffers", "4MB")],
        false => &[],
    };
    // Each commit's flush would take the pages along that a cut is to tear.
    let flushes: &[_] = match side {
        Side::Torn => &[("synchronous_commit", "off"), ("wal_writer_delay", "10s")],
        _ => &[],
    };
    let drawn = boot.plan.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fixed = SETTINGS.iter().copied();
    let all = fixed
        .chain(drawn)
        .chain(pages.iter().copied())
        .chain(flushes.iter().copied())
        .chain([fsync, restart]);
    all.map(|(name, value)| format!("{name}={value}")).collect()
}

/// What the postmaster says about itself.
fn status(cluster: &Path) -> Option<String> {
    let text = fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
    Some(text.lines().nth(7)?.trim().to_owned())
}

/// What the bare server says of the guard.
const REFUSED: &str = "invalid data in file \"backup_label\"";

/// Whether Seawall's guard is up.
pub fn is_guarded(cluster: &Path) -> bool {
    cluster.join("backup_label").exists()
}

/// The machine that was cut had another one.
fn make_sockets_directory() -> Result<()> {
    user::directory(USER, Path::new(SOCKETS))
}

/// Tries to start the bare server although the guard is up; it must refuse and say why.
pub fn bare_start_problem() -> Result<Option<String>> {
    make_sockets_directory()?;
    let mut bare = user::command(USER, binary("postgres")?)?;
    // It opens its sockets before it looks for a label of a backup, and PostgreSQL's own port may be another server's.
    let sockets = format!("unix_socket_directories={SOCKETS}");
    bare.arg("-D").arg(cluster()).args(["-c", "listen_addresses=", "-c", &sockets]);
    let ended = program::finish(bare, "a bare start behind the guard", Duration::from_secs(10));
    Ok(guard_problem(ended, REFUSED))
}

/// The newest PostgreSQL of the distribution.
pub fn binary(name: &str) -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let numbered = versions.filter_map(|entry| {
        Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin").join(name)))
    });
    let newest = numbered.filter(|(_, path)| path.is_file()).max();
    newest.map(|(_, path)| path).with_context(|| format!("{name} of PostgreSQL is not installed: make deps"))
}
