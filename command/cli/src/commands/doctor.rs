//! `seawall doctor`: what is below a database, and what of it undoes durability or costs speed. Changes nothing.
//!
//! Its exit codes are those of monitoring plugins, so that a check can call it as it is. There 2 is a finding, so wrong usage
//! ends with 3 here, and not with 2 as elsewhere.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use seawall_doctor::{Report, Root, Running, Verdict, examine};
use seawall_page::{html, text};

use crate::show;

const EXIT_CODES: &str = "Exit codes, as for monitoring plugins: 0 nothing was found, 1 a finding on speed, 2 a finding on \
durability, 3 the check could not be made (wrong usage too). Findings that are only good to know do not count.";

/// Show what on this machine undoes a database's durability or costs speed. Changes nothing
///
/// It reads what the kernel shows of persistent memory, disks, file systems, memory and processors, and the settings of
/// a database. Each finding says what was found, why it matters, how sure that is, and which commands fix it. It runs
/// none of them. As root it sees more: other users cannot read a database's directory.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Doctor {
    /// A database's directory (PostgreSQL, MariaDB, Redis), an SQLite file, or any path: checks only what lies under
    /// it, and the database's settings. Without it the whole machine
    path: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long, conflicts_with = "html")]
    json: bool,
    /// Write one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What a failure ends with: 1 and 2 are findings here.
pub const FAILED: u8 = Verdict::CouldNotLook as u8;

/// True if these words call this command.
pub fn is_called(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "doctor")
}

/// Looks, and prints what is.
///
/// # Errors
/// The path cannot be looked at, or the page not be written.
pub fn doctor(how: &Doctor) -> Result<ExitCode> {
    let path = how.path.as_deref().map(std::path::absolute).transpose()?;
    let shown = || path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let report = examine(&Root::at("/".as_ref()), &Running, path.as_deref()).with_context(shown)?;
    show(how, &report)?;
    Ok(ExitCode::from(report.verdict as u8))
}

fn show(how: &Doctor, report: &Report) -> Result<()> {
    if how.json {
        return show::json(report);
    }
    match &how.html {
        Some(file) => {
            std::fs::write(file, html(&report.document()))
                .with_context(|| format!("cannot write {}", file.display()))?;
            outln!("{}", file.display());
        }
        None => out!("{}", text(&report.document())),
    }
    Ok(())
}
