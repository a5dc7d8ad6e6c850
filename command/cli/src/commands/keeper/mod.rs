//! `seawall keeper`: keeps copies of logs of other hosts, or asks one that does.

mod cert;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nix::sys::signal::{SigSet, Signal};
use seawall_keeper::keeper::{Keeper, Options};
use seawall_keeper::log;
use seawall_keeper::peer::Peer;
use seawall_keeper::server::Server;
use seawall_keeper::tls::{self, files::Who};
use seawall_keeper::transport::Transport;

use crate::size;

/// How long a keeper is asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keep copies of other hosts' logs in memory, or ask a keeper what it keeps
#[derive(clap::Args)]
pub struct KeeperArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Serve(Serve),
    Status(Status),
    Cert(cert::Cert),
}

/// How connections to keepers are secured.
#[derive(clap::Args)]
pub struct Security {
    /// Encrypt connections (TLS 1.3) with this host's certificates: a directory that `seawall keeper cert` made
    #[arg(long, value_name = "DIR", conflicts_with = "clear_text")]
    tls: Option<PathBuf>,
    /// Use clear text between hosts: anyone on the network between them can read and change the logs
    #[arg(long)]
    clear_text: bool,
}

impl Security {
    /// How keepers are reached; by an absolute path, which later starts find from wherever they are called.
    pub fn transport(&self) -> Result<Transport> {
        let tls = self.tls.as_deref().map(std::path::absolute).transpose()?;
        Ok(Transport::chosen(tls.as_deref(), self.clear_text))
    }
}

/// Keep copies, until SIGTERM
#[derive(clap::Args)]
struct Serve {
    /// Where the keeper records its promises; with --harden also the copies. On a disk that survives a power cut
    directory: PathBuf,
    /// The address to listen on: HOST:PORT
    #[arg(long)]
    listen: String,
    /// When the keeper's own disk has the data that the keeper confirms
    #[arg(long, value_enum, default_value_t = Harden::Noaffirm)]
    harden: Harden,
    /// Memory for copies: each log takes twice its size
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "4G")]
    quota: u64,
    /// Keep numbers and no data: a vote where two copies are enough
    #[arg(long)]
    witness: bool,
    #[command(flatten)]
    security: Security,
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

/// Show what a keeper keeps
#[derive(clap::Args)]
struct Status {
    /// The keeper: HOST:PORT
    address: String,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    security: Security,
}

/// Does it.
pub fn keeper(how: &KeeperArgs) -> Result<()> {
    match &how.what {
        What::Serve(serve) => self::serve(serve),
        What::Status(status) => self::status(status),
        What::Cert(cert) => cert::make(cert),
    }
}

fn serve(how: &Serve) -> Result<()> {
    let transport = how.security.transport()?;
    let address = transport.place(&how.listen).with_context(|| format!("cannot listen at {}", how.listen))?;
    let said = match &transport {
        Transport::Tls(directory) => Some((directory.clone(), tls::files::look(directory)?)),
        Transport::Near | Transport::ClearText => None,
    };
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
    let mut server =
        Server::bind(Arc::clone(&keeper), address).with_context(|| format!("cannot listen at {address}"))?;
    let ends = said.as_ref().map(|(_, said)| tls::utc(said.valid_until));
    if let Some((directory, said)) = said {
        if let Who::Owner(name) = said.who {
            bail!(
                "{}: this certificate is for the owner {name}: a keeper needs one of its own (`seawall \
                 keeper cert keeper`)",
                directory.display()
            );
        }
        server = server.with_tls(directory);
    }
    let (bound, stop) = (server.address()?, server.stop()?);
    errln!("seawall: keeper {} at {bound}", keeper.id());
    if let Some(ends) = ends {
        errln!("seawall: TLS 1.3 only; the keeper's certificate ends on {ends}");
    }
    std::thread::spawn(move || {
        // It comes, or the process ends without it.
        let _ = mask.wait();
        stop.stop();
    });
    server.run()?;
    Ok(())
}

fn status(how: &Status) -> Result<()> {
    let report = Peer::connect(&how.address, &how.security.transport()?, PATIENCE)?.report()?;
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
            ", LOST what it had: it does not vote until its writer has brought it up to date"
        };
        let owner = if log.owner.is_empty() { String::new() } else { format!(" of owner {}", log.owner) };
        outln!(
            "log {}{owner}: {}, writer's turn {}{}, batch {}{kept}{}",
            log.log,
            size::human(log.image),
            log.promised.0,
            log.holder.as_ref().map_or_else(String::new, |holder| format!(" ({holder})")),
            log.position.2,
            if log.joining { ", being brought up to date" } else { "" }
        );
        if let Some(trouble) = &log.trouble {
            outln!("    ITS DISK FAILED: {trouble}");
        }
    }
    Ok(())
}
