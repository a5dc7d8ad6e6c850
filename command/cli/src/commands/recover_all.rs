//! `seawall recover --all`: every pool of this machine that is registered for it, before anything reads the files.
//!
//! Each pool is recovered by a process of its own, which becomes the pool's owner before it opens anything, so that
//! one pool that cannot be recovered, or whose disk does not answer, keeps no other one from it. All at once; one
//! line each, in the order of the registry. A pool that was recovered leaves the registry.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use seawall_core::path_text::Shown;
use seawall_daemon::boot::{self, Entry};
use serde_json::{Value, json};

use crate::{show, size, user};

/// Recovers them all.
pub fn recover_all(as_json: bool) -> Result<()> {
    let registry = boot::registry();
    let all = boot::entries().with_context(|| format!("cannot read the registry {}", registry.display()))?;
    let me = nix::unistd::geteuid();
    let mine = all.into_iter().filter(|entry| me.is_root() || entry.by == me.as_raw());
    let started: Vec<(Entry, Result<Child>)> = mine.map(|entry| (entry.clone(), start(&entry))).collect();
    let mut lines = Vec::new();
    let mut failed = 0;
    for (entry, child) in started {
        let outcome =
            child.and_then(|child| Ok(child.wait_with_output()?)).and_then(|output| read(&entry, &output));
        failed += usize::from(outcome.is_err());
        if as_json {
            lines.push(to_json(&entry, &outcome));
        } else {
            tell(&entry, &outcome);
        }
    }
    if as_json {
        show::json(&lines)?;
    } else if !registry.is_dir() {
        outln!("this machine has no registry of pools ({}): the package makes it", registry.display());
    }
    if failed > 0 {
        bail!(
            "{failed} pools were not recovered. Their guards stay up, so no database loses anything by starting"
        );
    }
    Ok(())
}

/// Takes a pool out of the registry.
pub fn forget(pool: &Path) -> Result<()> {
    if !boot::leave(pool) {
        bail!("{} is not registered, or not by you: `ls -l {}`", pool.display(), boot::registry().display());
    }
    outln!("{} is no longer recovered when the machine starts", pool.display());
    Ok(())
}

fn start(entry: &Entry) -> Result<Child> {
    if let Err(e) = std::fs::metadata(&entry.pool) {
        bail!(
            "it is not there ({e}). If its file system is mounted later, its service recovers it then. If it was removed \
             for good, so were the commits that only it held: `seawall recover --forget {}`",
            entry.pool.display()
        );
    }
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(["recover", "--json", "--registered-by", &entry.by.to_string(), "--pool"]).arg(&entry.pool);
    // The session, if there is one, is not that of the pool's owner.
    command.env_remove("XDG_RUNTIME_DIR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start its recovery")
}

fn read(entry: &Entry, output: &Output) -> Result<Value> {
    if output.status.success() {
        return serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the recovery of {} printed no valid report", entry.pool.display()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches("seawall: ");
    Err(if said.is_empty() {
        anyhow!("its recovery ended with {}", output.status)
    } else {
        anyhow!("{said}")
    })
}

fn to_json(entry: &Entry, outcome: &Result<Value>) -> Value {
    let mut all =
        json!({ "pool": Shown(&entry.pool), "user": user::name(entry.by), "recovered": outcome.is_ok() });
    match outcome {
        Ok(done) => all["recovery"] = done.clone(),
        Err(e) => all["error"] = json!(format!("{e:#}")),
    }
    all
}

fn tell(entry: &Entry, outcome: &Result<Value>) {
    let what = match outcome {
        Err(e) => format!("NOT RECOVERED: {}", format!("{e:#}").replace('\n', "; ")),
        Ok(done) if done["served"] == true => "a daemon serves it: left alone".into(),
        Ok(done) if done["kept"] == true => format!(
            "other hosts keep it: its service recovers it once there is a network, or `seawall recover --pool {}`; guards \
             stay up",
            entry.pool.display()
        ),
        Ok(done) => {
            let number = |key: &str| done[key].as_u64().unwrap_or(0);
            let files = done["files"].as_array().map_or(0, Vec::len);
            match (number("live"), done["replayed"] == true) {
                (0, _) => "nothing was live; guards down".into(),
                (n, true) => {
                    format!(
                        "replayed {n} records, {}, into {files} files; guards down",
                        size::human(number("bytes"))
                    )
                }
                (n, false) => format!("{n} records were in their {files} files already, synced; guards down"),
            }
        }
    };
    outln!("{} ({}): {what}", entry.pool.display(), user::name(entry.by));
}
