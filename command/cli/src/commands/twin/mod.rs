//! `seawall twin`: a second, warm Redis server, and how it is.

mod status;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use seawall_twin::{Options, run};

/// Run a Redis server with a second, warm one that takes over when it dies
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = HELP)]
pub struct Twin {
    #[command(subcommand)]
    ask: Option<Ask>,
    /// Directory of the twins' data, and of the note that says which directory is the current one
    #[arg(long, value_name = "DIRECTORY", required = true)]
    state: Option<PathBuf>,
    /// The process number of a server that already runs with this command. It is not started or stopped, only followed
    #[arg(long, value_name = "PID")]
    follow: Option<i32>,
    /// A shell command to run after each takeover: for a proxy, a virtual address, a message
    #[arg(long, value_name = "COMMAND")]
    on_takeover: Option<String>,
    /// The server's command: redis-server, then its configuration file and arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const HELP: &str = "With a log of Seawall's below both servers: seawall run [--pool POOL] -- seawall twin --state DIRECTORY -- \
redis-server ...";

#[derive(clap::Subcommand)]
enum Ask {
    /// Show which server serves, and whether its twin could take over
    Status(status::Status),
}

/// Runs it to its end, or says how it is.
pub fn twin(how: &Twin) -> ExitCode {
    let done = match &how.ask {
        Some(Ask::Status(how)) => status::status(how),
        None => serve(how),
    };
    done.unwrap_or_else(|e| {
        errln!("seawall: {e:#}");
        ExitCode::FAILURE
    })
}

fn serve(how: &Twin) -> anyhow::Result<ExitCode> {
    let options = Options {
        state: how.state.clone().context("--state is missing: name the directory of the state")?,
        command: how.command.clone(),
        on_takeover: how.on_takeover.clone(),
        follow: how.follow,
    };
    run(options).map(ExitCode::from)
}
