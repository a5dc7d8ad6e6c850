//! `seawall keeper`: keeps copies of logs of other hosts, or asks one that does.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use nix::sys::signal::{SigSet, Signal};
use seawall_keeper::keeper::{Keeper, Options};
use seawall_keeper::log;
use seawall_keeper::peer::Peer;
use seawall_keeper::server::Server;

use crate::size;

/// How long a keeper is asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keep copies of logs of other hosts in memory, or ask a keeper what it keeps
#[derive(clap::Args)]
pub struct KeeperArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Serve(Serve),
    Status(Status),
}

/// Keep copies, until SIGTERM
#[derive(clap::Args)]
struct Serve {
    /// Where it remembers what it promised; with --harden also the copies. On a disk that survives a power cut
    directory: PathBuf,
    /// Where it listens: HOST:PORT
    #[arg(long)]
    listen: String,
    /// When its own disk has what it confirms
    #[arg(long, value_enum, default_value_t = Harden::Noaffirm)]
    harden: Harden,
    /// Memory for copies: each log takes twice its size
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "4G")]
    quota: u64,
    /// Keep numbers and no data: a vote where two copies are enough
    #[arg(long)]
    witness: bool,
    /// Speak in clear text with other hosts: whoever reaches the port reads and writes the logs
    #[arg(long)]
    clear_text: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Harden {
    /// Never: a copy lives as long as the keeper runs
    Memory,
    /// Some time later
    Noaffirm,
    /// Before it confirms
    Affirm,
}

/// What a keeper keeps
#[derive(clap::Args)]
struct Status {
    /// The keeper: HOST:PORT
    address: String,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// Does it.
pub fn keeper(how: &KeeperArgs) -> Result<()> {
    match &how.what {
        What::Serve(serve) => self::serve(serve),
        What::Status(status) => self::status(status),
    }
}

/// Refuses what would send a log through a network in clear text, unless that was asked for.
pub fn check_clear_text(address: &str, allowed: bool) -> Result<SocketAddr> {
    let found = address.to_socket_addrs().with_context(|| format!("looking for {address}"))?.next();
    let found = found.ok_or_else(|| anyhow!("{address} has no address"))?;
    let is_near = match found {
        SocketAddr::V4(v4) => v4.ip().is_loopback() || v4.ip().is_link_local(),
        SocketAddr::V6(v6) => v6.ip().is_loopback() || v6.ip().is_unicast_link_local(),
    };
    if !is_near && !allowed {
        bail!(
            "{address} is neither loopback nor link-local, and what is sent there can be read and changed on the way: \
             if that network is yours alone, say so with --clear-text"
        );
    }
    Ok(found)
}

fn serve(how: &Serve) -> Result<()> {
    let address = check_clear_text(&how.listen, how.clear_text)?;
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGTERM);
    mask.add(Signal::SIGINT);
    mask.thread_block()?;
    let harden = match how.harden {
        Harden::Memory => log::Harden::Memory,
        Harden::Noaffirm => log::Harden::NoAffirm,
        Harden::Affirm => log::Harden::Affirm,
    };
    let keeper =
        Arc::new(Keeper::open(&how.directory, Options { harden, witness: how.witness, quota: how.quota })?);
    let server =
        Server::bind(Arc::clone(&keeper), address).with_context(|| format!("listening at {address}"))?;
    let (bound, stop) = (server.address()?, server.stop()?);
    errln!("seawall: keeper {} at {bound}", keeper.id());
    std::thread::spawn(move || {
        // It comes, or the process ends without it.
        let _ = mask.wait();
        stop.stop();
    });
    server.run()?;
    Ok(())
}

fn status(how: &Status) -> Result<()> {
    let report = Peer::connect(&how.address, PATIENCE)?.report()?;
    if how.json {
        outln!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    let kind = if report.witness { "witness" } else { "keeper" };
    outln!("{kind} {} on {}, hardens: {}", report.id, report.host, report.harden);
    outln!("memory: {} of {} in use", size::human(report.used), size::human(report.quota));
    for log in &report.logs {
        let kept = if log.kept {
            ""
        } else {
            ", LOST what it had: it does not vote until its writer brought it up to date"
        };
        outln!(
            "log {}: {}, writer's turn {}, batch {}{kept}{}",
            log.log,
            size::human(log.image),
            log.promised.0,
            log.position.2,
            if log.joining { ", being brought up to date" } else { "" }
        );
        if let Some(trouble) = &log.trouble {
            outln!("    ITS DISK FAILED: {trouble}");
        }
    }
    Ok(())
}
