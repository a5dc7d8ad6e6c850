//! `seawall-powercut`: rounds of power cuts, and their disk by itself.
//!
//! ```text
//! seawall-powercut run …      → cell → campaign: boots machines
//!                                        machine → cell → boot: runs a database
//! ```

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use seawall_powercut::boot::Boot;
use seawall_powercut::campaign::{self, Options};
use seawall_powercut::cell::{self, Walls};
use seawall_powercut::front::Front;
use seawall_powercut::{console, fitness, guest, life};

/// Cut the power of databases under load, and check that nothing acknowledged is lost
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run rounds of power cuts; the result goes to OUT/powercuts.json, powercuts-mount.json or powercuts-guest.json
    Run(Options),
    /// Mount the disk alone and take commands: cut, off, on, fail, heal, counts
    Disk {
        /// Where to mount it; the disk is the file `disk` in there
        at: PathBuf,
        /// Its size
        #[arg(long, default_value_t = 512)]
        mib: u64,
        /// Which sectors survive
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// The first process of the campaign's cell
    #[command(hide = true)]
    Campaign { options: String },
    /// A machine: builds its cell
    #[command(hide = true)]
    Machine { boot: String },
    /// The first process of a machine
    #[command(hide = true)]
    Boot { boot: String },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("seawall-powercut: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(options) => {
            fitness::check(&options.only, options.file_system)
                .and_then(
                    |()| if options.front == Front::Disk { guest::installed(&options.only) } else { Ok(()) },
                )
                .context("POWER CUTS WERE NOT TESTED")?;
            let options = serde_json::to_string(&options)?;
            let ended = cell::run(Walls::Campaign, &["campaign".as_ref(), OsStr::new(&options)])?;
            Ok(cell::exit_code(ended))
        }
        Command::Disk { at, mib, seed } => {
            console::run(&at, mib, seed, std::io::stdin().lock()).map(|()| ExitCode::SUCCESS)
        }
        Command::Campaign { options } => {
            cell::enter()?;
            judge(&serde_json::from_str(&options)?)
        }
        Command::Machine { boot } => {
            let ended = cell::run(Walls::Machine, &["boot".as_ref(), OsStr::new(&boot)])?;
            Ok(cell::exit_code(ended))
        }
        Command::Boot { boot } => {
            cell::enter()?;
            let boot: Boot = serde_json::from_str(&boot)?;
            life::live(&boot).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn judge(options: &Options) -> Result<ExitCode> {
    let seed = options.seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_millis() as u64)
    });
    println!("seed {seed}");
    let report = campaign::run(options, seed)?;
    report.save(&options.out, options.front, options.medium)?;
    print!("\n{}", report.table());
    let faults = report.faults();
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
