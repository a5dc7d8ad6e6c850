//! `seawall takeover`: this host takes a log over that keepers keep, and brings the data up to date with it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use seawall_core::path_text::Shown;
use seawall_daemon::takeover::{self, Done, Found, KeeperSeen, TakeoverError, Wanted};
use seawall_keeper::descriptor::Descriptor;
use serde_json::json;

use crate::{show, size, user};

/// Take a log over from another host: fence that host, and bring the data here up to date
#[derive(clap::Args)]
#[command(after_help = CODES)]
pub struct Takeover {
    /// The pool's file on this host; if it does not exist, it is made from the keepers' answers
    pool: PathBuf,
    /// A keeper of the log: HOST:PORT, several times; not needed if the pool's file exists
    #[arg(long, value_name = "HOST:PORT")]
    keeper: Vec<String>,
    /// Which log, if these keepers keep several: its UUID (`seawall keeper status`)
    #[arg(long, value_name = "UUID")]
    log: Option<String>,
    /// The database's directory on this host, if its volume is mounted at another path here; several times
    #[arg(long, value_name = "DIRECTORY")]
    data: Vec<PathBuf>,
    /// Ask the keepers and look for the data, show what would be done, and change nothing anywhere
    #[arg(long)]
    dry_run: bool,
    /// Only fence the host that writes the log: for use before promoting a replica, which has data of its own. Replays
    /// nothing, and makes no pool file
    #[arg(long, conflicts_with_all = ["dry_run", "accept_loss", "data"])]
    fence_only: bool,
    /// Give up the records of files that are gone, instead of refusing
    #[arg(long)]
    accept_loss: bool,
    #[command(flatten)]
    security: super::keeper::Security,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

const CODES: &str = "Exit codes: 0 taken over and recovered, now or before; with --dry-run: it can be taken \
     over. 1 failed otherwise. 2 wrong usage. 3 too few keepers answer. 4 another host took it over at the \
     same time. 5 the data is not here. 6 a process of this host is in the way. 7 taken over, and the data \
     is not up to date yet: run it again.";

/// Takes it over.
pub fn takeover(how: &Takeover) -> ExitCode {
    match attempt(how) {
        Ok(code) => code,
        Err(error) => failed(how, error.downcast_ref().map_or(1, TakeoverError::code), &format!("{error:#}")),
    }
}

fn failed(how: &Takeover, code: u8, why: &str) -> ExitCode {
    if how.json {
        let _ = show::json(&json!({ "done": false, "code": code, "error": why }));
    }
    errln!("seawall: {why}");
    ExitCode::from(code)
}

fn attempt(how: &Takeover) -> Result<ExitCode> {
    let transport = how.security.transport()?;
    let wanted =
        Wanted { pool: how.pool.clone(), keepers: how.keeper.clone(), log: how.log.clone(), transport };
    let said = takeover::find(&wanted)?;
    if how.fence_only {
        return fence(how, &said);
    }
    let mut found = takeover::look(&how.pool, &said, &how.data, how.accept_loss)?;
    if !how.json {
        tell(&found);
    }
    if let Some(refusal) = found.refusal.take() {
        if how.json {
            show::json(
                &json!({ "done": false, "code": refusal.code(), "error": refusal.to_string(), "found": found }),
            )?;
        }
        errln!("seawall: {refusal}");
        return Ok(ExitCode::from(refusal.code()));
    }
    if how.dry_run || found.is_served {
        if how.json {
            show::json(&json!({ "done": found.is_served, "code": 0, "found": found }))?;
        } else if found.is_served {
            outln!("nothing to do: this host has the log, and a daemon serves it");
        } else {
            outln!("it can be taken over; nothing was changed");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let done = act(how, &said, found.owner)?;
    match how.json {
        true => show::json(&json!({
            "done": true, "code": 0, "pool": Shown(&how.pool), "log": said.log, "from": found.holder, "takeover": done,
            "found": found,
        }))?,
        false => tell_done(&how.pool, &done),
    }
    Ok(ExitCode::SUCCESS)
}

fn fence(how: &Takeover, said: &Descriptor) -> Result<ExitCode> {
    let turn = takeover::fence(said)?;
    match how.json {
        true => show::json(&json!({ "done": true, "code": 0, "log": said.log, "fenced_in_turn": turn }))?,
        false => outln!(
            "fenced, in turn {turn}: the former writer of the log {} gets nothing confirmed any more",
            said.log
        ),
    }
    Ok(ExitCode::SUCCESS)
}

fn act(how: &Takeover, said: &Descriptor, owner: u32) -> Result<Done> {
    if !how.pool.exists() {
        make(&how.pool, said, owner)?;
    }
    let pool = std::fs::canonicalize(&how.pool).with_context(|| how.pool.display().to_string())?;
    user::become_owner(&pool)?;
    let say = |step: &str| errln!("seawall: {step}");
    Ok(takeover::run(&pool, said, &how.data, how.accept_loss, &say)?)
}

/// Makes the pool's file for the user to whom the data belongs.
fn make(path: &Path, said: &Descriptor, owner: u32) -> Result<()> {
    said.create(path).with_context(|| format!("cannot create {}", path.display()))?;
    if nix::unistd::geteuid().is_root() && owner != 0 {
        std::os::unix::fs::lchown(path, Some(owner), None)
            .with_context(|| format!("cannot give {} to {}", path.display(), user::name(owner)))?;
    }
    Ok(())
}

fn tell(found: &Found) {
    let who = match (&found.holder, found.is_here) {
        (_, true) => "this host".into(),
        (Some(holder), _) => holder.to_string(),
        (None, _) => "an unknown host".into(),
    };
    let heard = match found.heard {
        Some(seconds) => format!("connected; a keeper heard it {seconds} s ago"),
        None => "connected to no keeper".into(),
    };
    let mut facts = vec![
        ("log", found.log.clone()),
        ("held by", format!("{who}, in turn {}", found.turn)),
        ("writer", heard),
        (
            "keepers",
            format!("{} of {} must answer with all they ever confirmed", found.needed, found.keepers.len()),
        ),
    ];
    facts.extend(found.keepers.iter().map(|keeper| ("", line(keeper))));
    if found.live > 0 {
        facts.push(("to replay", format!("{} records", found.live)));
    }
    for directory in &found.directories {
        let here = match directory.trouble {
            None if directory.here == directory.registered => "is here".to_owned(),
            None => format!("is here at {}", directory.here.display()),
            Some(_) => "IS NOT HERE".into(),
        };
        facts.push(("directory", format!("{} {here}", directory.registered.display())));
    }
    show::facts(&facts);
}

fn line(keeper: &KeeperSeen) -> String {
    let witness = if keeper.witness { ", a witness" } else { "" };
    let state = match (&keeper.trouble, keeper.newest, keeper.behind) {
        (Some(trouble), ..) => trouble.clone(),
        (_, true, _) => format!("has the newest copy: turn {}, batch {}", keeper.turn, keeper.number),
        (_, _, Some(0)) => format!("turn {}, batch {}", keeper.turn, keeper.number),
        (_, _, Some(behind)) => format!("turn {}, batch {}: {behind} behind", keeper.turn, keeper.number),
        _ => format!("turn {}, batch {}: an older turn", keeper.turn, keeper.number),
    };
    format!("{}{witness}: {state}", keeper.address)
}

fn tell_done(pool: &Path, done: &Done) {
    let report = &done.recovery.report;
    outln!("taken over, in turn {}", done.turn);
    match (report.live, report.replayed) {
        (0, _) => outln!("nothing was live: every file was up to date"),
        (n, true) => outln!("replayed {n} records, {}", size::human(report.bytes)),
        (n, false) => outln!("{n} records were in their files already, which this host never lost; synced"),
    }
    report.dropped.iter().for_each(|line| outln!("not needed: {line}"));
    report.given_up.iter().for_each(|line| outln!("given up: {line}"));
    outln!("start the database: seawall run --pool {} -- COMMAND...", pool.display());
}
