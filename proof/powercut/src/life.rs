//! A machine from the inside: what its first process does from power-on to shutdown.
//!
//! Input: a [`Boot`]. Output: what it says, on standard output. What the machine has: memory of its own (`/tmp`,
//! `/dev/shm`), which a power cut takes; the disk's file system below [`DATA`]; and what stands
//! [outside](crate::outside): the log's medium, the ledger, the programs and what they print.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use serde::Deserialize;

use crate::boot::{Acts, Boot, Said, Task, say};
use crate::front::Front;
use crate::outside::DATA;
use crate::plan::{Database, Plan};
use crate::program::{self, command};
use crate::{balloon, cell, etcd, files, guest, mariadb, medium, postgres, redis, sqlite, store};

/// The life of a machine, from its first process's point of view.
pub fn live(boot: &Boot) -> Result<()> {
    let said = match start(boot).and_then(|()| work(boot)) {
        Ok(said) => said,
        Err(error) => Said::Failed(format!("{error:#}")),
    };
    say(&said)
}

/// Memory, identity, disk.
fn start(boot: &Boot) -> Result<()> {
    cell::memory(Path::new("/tmp"), 0o1777)?;
    cell::memory(Path::new("/dev/shm"), 0o1777)?;
    let boot_id = Path::new("/tmp/boot_id");
    fs::write(boot_id, format!("{}\n", boot.boot_id))?;
    mount(Some(boot_id), "/proc/sys/kernel/random/boot_id", None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .context("cannot give the machine its boot id")?;
    boot.plan.file_system.mount(&boot.disk, boot.plan.trouble.is_refusal())?;
    balloon::deflate()
}

fn acts(plan: &Plan) -> Acts {
    match plan.database {
        _ if plan.front == Front::Disk => guest::ACTS,
        Database::Postgres => postgres::ACTS,
        Database::Sqlite => sqlite::ACTS,
        Database::Mariadb => mariadb::ACTS,
        Database::Redis => redis::ACTS,
        Database::Files => files::ACTS,
        Database::Etcd => etcd::ACTS,
        Database::Rocksdb | Database::Lmdb => store::ACTS,
    }
}

fn work(boot: &Boot) -> Result<Said> {
    let acts = acts(&boot.plan);
    let said = match boot.task {
        Task::Install => {
            medium::make_place()?;
            (acts.install)(boot).map(|()| Said::Installed)?
        }
        Task::Load => {
            (acts.load)(boot)?;
            Said::Failed("the load ended before the power did".to_owned())
        }
        Task::Check => {
            let mut checked = (acts.check)(boot)?;
            if boot.plan.side.is_logged() {
                checked.problems.extend(pool_problems(boot)?);
            }
            Said::Checked(checked)
        }
    };
    if boot.task != Task::Load {
        program::run(command("umount", &[DATA]), "unmounting the disk", Duration::from_secs(60))?;
    }
    Ok(said)
}

/// After an orderly end nothing of Seawall's may be left to do.
fn pool_problems(boot: &Boot) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct State {
        live: u64,
    }
    if !boot.plan.pool().exists() {
        return Ok(Vec::new());
    }
    let mut verify = Command::new(boot.program("seawall"));
    verify.arg("verify").arg(boot.plan.pool()).arg("--json");
    let verified = program::finish(verify, "seawall verify", Duration::from_secs(60))?;
    let state = serde_json::from_str::<State>(&verified.stdout);
    let clean = verified.status.success() && state.is_ok_and(|state| state.live == 0);
    Ok(if clean { Vec::new() } else { vec![format!("the pool after an orderly end: {verified}")] })
}
