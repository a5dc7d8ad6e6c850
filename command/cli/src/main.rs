//! `seawall`: one command, sub-commands.
//!
//! Exit codes: 0 done · 1 failed (`verify`: the pool is damaged) · 2 wrong usage. `run` ends with the
//! command's own code (128 + signal if a signal ended it); 125 if Seawall could not start it, 126 if it
//! cannot be executed, 127 if it was not found. `doctor` has the codes of monitoring plugins: 3 if it failed.

#![deny(unsafe_code)] // Allowed in one place: `sys`.
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

#[macro_use(out, outln, err, errln)]
extern crate seawall_media;

mod attach;
mod beside;
mod cache;
mod commands;
mod daemons;
mod interrupt;
mod pool;
mod postmaster;
mod recovery;
mod run;
mod show;
mod size;
mod sys;
mod time;
mod user;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use seawall_media::{output, signals};

/// Memory-speed durability for the database you already run.
#[derive(Parser)]
#[command(name = "seawall", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed (verify: damaged), 2 wrong usage. \
`run`: the command's own, 128+N if signal N ended it, 125 if Seawall failed, 126 not executable, 127 not found. \
`doctor`: 0 nothing, 1 speed, 2 durability, 3 failed.";

#[derive(Subcommand)]
enum Command {
    /// Make a pool
    Init(commands::init::Init),
    Keeper(commands::keeper::KeeperArgs),
    /// Run a command with Seawall: recover if needed, preload, drain and close at its end
    Run(run::Run),
    /// Put Seawall permanently under a systemd service, from its next start on
    Attach(attach::Attach),
    /// Undo `attach`: drain, check that nothing is left, remove what was written
    Detach(attach::Detach),
    /// Show the medium, the log, the files and the waits
    Status(commands::ask::Ask),
    /// Bring everything in the log to the files
    Drain(commands::ask::Ask),
    /// Bring the files up to date after a crash and remove the guards
    Recover(commands::recover::Recover),
    Takeover(commands::takeover::Takeover),
    /// Take a database out of the log while its files are copied or a snapshot of their file system is taken
    Freeze(commands::freeze::Freeze),
    /// End a freeze: its files go back into the log
    Thaw(commands::freeze::Thaw),
    /// List the guards in a directory, and lower those of a copy or of a lost pool
    Guard(commands::guard::Guard),
    /// Give a log on a block device a second copy, or replace a lost one
    Mirror(commands::mirror::Mirror),
    /// Look into a pool: superblock, roots, files, records. Changes nothing
    Inspect(commands::inspect::Look),
    Doctor(commands::doctor::Doctor),
    Provision(commands::provision::Provision),
    Layout(commands::layout::Layout),
    Tier(commands::tier::Tier),
    /// Show which settings of a database to change under Seawall, and why. Changes nothing
    Tune(commands::tune::Tune),
    Twin(commands::twin::Twin),
    /// Mount a directory with Seawall's promises, for programs that cannot be preloaded
    Mount(commands::mount::Mount),
    /// Unmount what `mount` mounted, and wait until the log is closed
    Umount(commands::mount::Umount),
    Disk(Box<commands::disk::Disk>),
    /// Check a pool. Exit code 1 if it is damaged
    Verify(commands::inspect::Look),
    /// Choose which files of a database are in the block cache: kept, never cached, read in before they are needed
    Cache(commands::cache::Cache),
    /// Drain, remove the guards, end the daemon
    Stop(commands::ask::Ask),
    /// Take a snapshot of the database, Seawall and the machine, or one every so often
    Snap(commands::awr::snap::Snap),
    /// List snapshots; baselines, export, import, prune
    Snaps(commands::awr::snaps::Snaps),
    /// Report what happened between two snapshots
    Report(commands::awr::report::Report),
    /// Compare two periods
    Compare(commands::awr::compare::Compare),
    /// Show what is happening now: waits, the log, commits
    Top(commands::awr::top::Top),
    /// Serve metrics to Prometheus
    Metrics(commands::awr::top::Metrics),
    /// Run experiments that compare configurations, and show what the figures really prove
    Lab(commands::lab::Lab),
    /// The daemon itself
    #[command(hide = true)]
    Daemon(commands::daemon::Daemon),
    /// The process that answers for a daemon that is stopped
    #[command(hide = true)]
    Watchdog,
    /// The commands that the units of attached services call
    #[command(hide = true, subcommand)]
    Service(attach::Hook),
    /// Manual pages and shell completions, for packages
    #[command(hide = true)]
    Generate(commands::generate::Generate),
}

impl Command {
    /// Nobody waits for more than what it prints.
    fn only_prints(&self) -> bool {
        use Command::*;
        matches!(
            self,
            Status(_)
                | Inspect(_)
                | Verify(_)
                | Doctor(_)
                | Tune(_)
                | Snaps(_)
                | Report(_)
                | Compare(_)
                | Generate(_)
        )
    }
}

fn main() -> ExitCode {
    sys::hear_of_long_files();
    // mount(8) and umount(8) call us by other names.
    let words = match commands::mount::helper::words(std::env::args_os()) {
        Ok(words) => words,
        Err(what) => {
            errln!("seawall: {what}");
            return ExitCode::from(2);
        }
    };
    // Monitoring takes 1 and 2 for findings of `doctor`.
    let failed = commands::doctor::is_called(&words).then_some(commands::doctor::FAILED);
    match Cli::try_parse_from(words) {
        Ok(cli) => printed(command(cli.command, failed.unwrap_or(1)), failed.unwrap_or(1)),
        Err(usage) => {
            let _ = usage.print();
            let code = usage.exit_code() as u8;
            ExitCode::from(if code == 0 { 0 } else { failed.unwrap_or(code) })
        }
    }
}

fn command(command: Command, failed: u8) -> ExitCode {
    let failure = |e: anyhow::Error| {
        errln!("seawall: {e:#}");
        ExitCode::from(failed)
    };
    if command.only_prints() {
        signals::end_at_a_closed_pipe();
    }
    let done = match command {
        Command::Run(run) => return run::run(&run),
        Command::Daemon(daemon) => return commands::daemon::daemon(&daemon),
        Command::Watchdog => {
            seawall_daemon::watchdog::run();
            return ExitCode::SUCCESS;
        }
        Command::Verify(look) => return commands::inspect::verify(&look).unwrap_or_else(failure),
        Command::Tier(how) => return commands::tier::tier(&how).unwrap_or_else(failure),
        Command::Layout(how) => return commands::layout::layout(&how).unwrap_or_else(failure),
        Command::Doctor(how) => return commands::doctor::doctor(&how).unwrap_or_else(failure),
        Command::Freeze(how) => return commands::freeze::freeze(&how).unwrap_or_else(failure),
        Command::Takeover(how) => return commands::takeover::takeover(&how),
        Command::Twin(how) => return commands::twin::twin(&how),
        Command::Thaw(how) => commands::freeze::thaw(&how),
        Command::Provision(how) => commands::provision::provision(&how),
        Command::Init(init) => commands::init::init(&init),
        Command::Keeper(how) => commands::keeper::keeper(&how),
        Command::Attach(how) => attach::attach(&how),
        Command::Detach(how) => attach::detach(&how),
        Command::Service(hook) => attach::hook(&hook),
        Command::Generate(what) => commands::generate::generate(&what, Cli::command()),
        Command::Status(ask) => commands::status::status(&ask),
        Command::Drain(ask) => commands::ask::drain(&ask),
        Command::Cache(how) => commands::cache::cache(&how),
        Command::Stop(ask) => commands::ask::stop(&ask),
        Command::Mount(how) => commands::mount::mount(&how),
        Command::Disk(how) => commands::disk::disk(&how),
        Command::Umount(how) => commands::mount::umount(&how),
        Command::Mirror(how) => commands::mirror::mirror(&how),
        Command::Recover(recover) => commands::recover::recover(&recover),
        Command::Guard(how) => commands::guard::guard(&how),
        Command::Tune(tune) => commands::tune::tune(&tune),
        Command::Snap(ask) => commands::awr::snap::snap(&ask),
        Command::Snaps(ask) => commands::awr::snaps::snaps(&ask),
        Command::Report(ask) => commands::awr::report::report(&ask),
        Command::Compare(ask) => commands::awr::compare::compare(&ask),
        Command::Top(ask) => commands::awr::top::top(&ask),
        Command::Metrics(ask) => commands::awr::top::metrics(&ask),
        Command::Lab(how) => commands::lab::lab(&how),
        Command::Inspect(look) => commands::inspect::inspect(&look),
    };
    done.map_or_else(failure, |()| ExitCode::SUCCESS)
}

/// Output that could not be printed is a failure, unless nobody wanted to read it.
fn printed(code: ExitCode, failed: u8) -> ExitCode {
    match output::finish() {
        Ok(()) => code,
        Err(e) => {
            errln!("seawall: cannot write to standard output: {e}");
            ExitCode::from(failed)
        }
    }
}
