//! What an attached service calls: before its start, after it, and when it has ended.
//!
//! | hook | if it fails |
//! |---|---|
//! | `service start` | the service does not start; the reason is in systemd's journal |
//! | `service check`, which also learns what the start took | nothing; it warns in systemd's journal |
//! | `service stop` | nothing; the log is kept, and the next start, or `seawall recover`, goes on with it |

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use seawall_daemon::control::{Added, Control, ControlError, Stop, Stopped};
use seawall_daemon::status::Status;
use seawall_daemon::{AddRoot, process};
use seawall_wire::message::{Kind, Status as Answer};
use seawall_wire::shm::{Policy, Preset};
use serde_json::{Value, json};

use super::drop_in::Attached;
use super::machine::{Machine, systemctl};
use super::near;
use super::unit::{escape_path, short_name};
use crate::postmaster::Running;
use crate::recovery::Recovery;
use crate::run::{database, lockfile, witness};
use crate::{pool, time};

/// How long after the start of a service its main process may be without the library: it may not have come
/// to its exec yet.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);

/// The commands that the units of attached services call
#[derive(clap::Subcommand)]
pub enum Hook {
    /// Before the start: serve the pool and register the data, or let the start fail
    Start {
        /// The pool
        #[arg(long)]
        pool: PathBuf,
        /// The kind of database
        #[arg(long)]
        preset: String,
        /// How much of it is logged
        #[arg(long, default_value = "tail", value_parser = ["tail", "atomic"])]
        policy: String,
        /// The data directory
        #[arg(long)]
        data: PathBuf,
        /// The longest time that its recovery may take
        #[arg(long, value_parser = time::goal)]
        recovery: Option<Duration>,
    },
    /// While it runs: ask PostgreSQL for checkpoints
    Pace {
        /// The data directory
        #[arg(long)]
        data: PathBuf,
        /// The longest time that its recovery may take
        #[arg(long, value_parser = time::goal)]
        recovery: Duration,
    },
    /// After the start: check that the preload is in the main process
    Check {
        /// The pool
        #[arg(long)]
        pool: PathBuf,
        /// The server is ready: learn how fast it recovers
        #[command(flatten)]
        started: Option<Started>,
    },
    /// After the end: drain, and lower the guards
    Stop {
        /// The pool
        #[arg(long)]
        pool: PathBuf,
        /// Leave the log open for the next start if the service was killed
        #[arg(long)]
        back_soon: bool,
    },
}

/// A server whose recovery has a goal.
// All of it or none: each is `required = false`, or clap would ask for it without the group.
#[derive(clap::Args)]
#[group(requires_all = ["preset", "data", "recovery", "settings"])]
pub struct Started {
    /// Kind of database
    #[arg(long, required = false)]
    preset: String,
    /// Its data directory
    #[arg(long, required = false)]
    data: PathBuf,
    /// The longest time that its recovery may take
    #[arg(long, required = false, value_parser = time::goal)]
    recovery: Duration,
    /// Where its settings are
    #[arg(long, required = false)]
    settings: PathBuf,
}

impl Started {
    fn learn(&self) {
        let preset = Preset::from_name(&self.preset).unwrap_or(Preset::Postgres);
        if let Err(e) = near::learn(&self.settings, preset, &self.data, self.recovery) {
            errln!("seawall: WARNING: what this start took is not learned from: {e:#}");
        }
    }
}

/// Runs a hook.
pub fn hook(hook: &Hook) -> Result<()> {
    match hook {
        Hook::Start { pool, preset, policy, data, recovery } => {
            let known =
                Preset::from_name(preset).with_context(|| format!("there is no preset {preset:?}"))?;
            let policy = Policy::from_name(policy).unwrap_or_default();
            let mut roots = database::roots(known, policy, std::slice::from_ref(data), &[])?;
            let near = recovery.map(|goal| Recovery::of(known, Some(data), goal)).transpose()?;
            near.iter().for_each(|near| near.note(&mut roots));
            start(pool, &roots)?;
            // Last: the server is started now.
            near.iter().for_each(Recovery::note_start);
            Ok(())
        }
        Hook::Check { pool, started } => {
            started.iter().for_each(Started::learn);
            check(pool)
        }
        Hook::Pace { data, recovery } => {
            let server = Path::new("/proc").join(postmaster(data)?).join("exe");
            let program = std::fs::read_link(server).unwrap_or_default();
            Recovery::of(Preset::Postgres, Some(data), *recovery)?.pace(&program)
        }
        // systemd says so to ExecStopPost= (systemd.exec(5)).
        Hook::Stop { back_soon: true, .. } if is_killed() => Ok(()),
        Hook::Stop { pool, .. } => stop(pool),
    }
}

/// The process of the server of this directory.
fn postmaster(data: &Path) -> Result<String> {
    let running = Running::of(data)?.with_context(|| format!("no server runs in {}", data.display()))?;
    Ok(running.process)
}

/// The service's main process was killed: it is started again at once, or somebody has a look.
fn is_killed() -> bool {
    std::env::var("EXIT_CODE").is_ok_and(|how| ["killed", "dumped"].contains(&how.as_str()))
}

fn unit_of(pool: &Path) -> String {
    format!("seawalld@{}.service", escape_path(pool))
}

fn start(pool: &Path, roots: &[AddRoot]) -> Result<()> {
    let unit = unit_of(pool);
    lockfile::step_over(roots);
    // After a crash the daemon may have got the process id in the database's lock file.
    let clash = connect(pool, &unit)?
        .request::<Status>(Kind::Status, &())
        .is_ok_and(|status| roots.iter().any(|root| lockfile::is_of(&root.data, status.daemon_pid)));
    if clash {
        systemctl(&["restart", &unit])?;
    }
    if let Err(e) = register(pool, &unit, roots) {
        if !matches!(e.downcast_ref(), Some(ControlError::Refused(Answer::BadVersion))) {
            return Err(e);
        }
        errln!("seawall: {unit} is of another version, from before an upgrade: starting the present one");
        systemctl(&["restart", &unit])?;
        register(pool, &unit, roots)?;
    }
    let (medium, _) = pool::medium(pool)?;
    errln!("seawall: {} is served by {unit}; medium: {}", pool.display(), medium.label());
    Ok(())
}

fn connect(pool: &Path, unit: &str) -> Result<Control> {
    let control = Control::connect(pool).with_context(|| {
        format!(
            "cannot use the pool {} (is its file system mounted?), so the database is not started",
            pool.display()
        )
    })?;
    control.with_context(|| {
        format!(
            "no daemon serves the pool {}, so the log may not have been recovered and the database is not started: \
             `journalctl -u {unit}` says why",
            pool.display()
        )
    })
}

fn register(pool: &Path, unit: &str, roots: &[AddRoot]) -> Result<()> {
    let control = connect(pool, unit)?;
    roots.iter().try_for_each(|root| control.request::<Added>(Kind::AddRoot, root).map(drop))?;
    Ok(())
}

fn check(pool: &Path) -> Result<()> {
    let main: Option<u32> = std::env::var("MAINPID").ok().and_then(|pid| pid.parse().ok());
    let pid = main.context("MAINPID is not set: did a unit of systemd call this?")?;
    let begin = Instant::now();
    while let Some(text) = witness::missing(pid) {
        if begin.elapsed() > PATIENCE {
            bail!("{text}");
        }
        std::thread::sleep(PAUSE);
    }
    let control =
        Control::connect(pool)?.context("the daemon has ended; the database goes on with real fsyncs")?;
    let status: Status = control.request(Kind::Status, &())?;
    if status.refused > 0 {
        errln!(
            "seawall: WARNING: {} requests came from processes with another version of the library; those run \
             WITHOUT Seawall",
            status.refused
        );
    }
    if let Some(why) = status.without_cache {
        errln!("seawall: WARNING: the database runs WITHOUT the block cache: {why}");
    }
    Ok(())
}

/// True if the service's main process runs, and without the preload.
pub fn is_bare(machine: &Machine, unit: &str) -> bool {
    machine.main_pid(unit).is_some_and(|pid| matches!(process::has_preload(pid), Ok(false)))
}

fn stop(pool: &Path) -> Result<()> {
    // Without a daemon, or even a pool, the start has failed, and said so.
    let Ok(Some(control)) = Control::connect(pool) else { return Ok(()) };
    let closed: Stopped = control.request(Kind::Stop, &Stop { if_idle: true, stay: true })?;
    if !closed.ended {
        errln!(
            "seawall: processes {:?} still use the log; the daemon closes it when they have ended",
            closed.users
        );
    }
    Ok(())
}

/// What `seawall status SERVICE` says about the service itself.
pub fn facts(machine: &Machine, attached: &Attached) -> Value {
    let pid = machine.main_pid(&attached.unit);
    json!({
        "unit": attached.unit,
        "daemon": attached.daemon(),
        "data": seawall_core::path_text::Shown(&attached.data),
        "running": machine.is_running(&attached.unit),
        "main_pid": pid,
        "with_seawall": pid.map(|pid| process::has_preload(pid).unwrap_or(false)),
    })
}

/// The same for people.
pub fn tell(facts: &Value) {
    let text = |key: &str| facts[key].as_str().unwrap_or_default().to_owned();
    let state = match (facts["running"].as_bool(), facts["with_seawall"].as_bool()) {
        (Some(true), Some(true)) => "running with Seawall".to_owned(),
        (Some(true), _) => format!(
            "running WITHOUT Seawall: `systemctl restart {0}`; if that does not help, `journalctl -u {0}`",
            short_name(&text("unit"))
        ),
        _ => "not running".to_owned(),
    };
    crate::show::facts(&[
        ("service", format!("{}, {state}", short_name(&text("unit")))),
        ("data", text("data")),
        ("unit", text("daemon")),
    ]);
}
