//! `seawall-lab`: the demo, the benchmarks, the cases of the lab, the long runs.

#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

#[macro_use(errln)]
extern crate seawall_media;

use std::process::ExitCode;

use clap::Parser;
use seawall_lab::cli::{Cli, Command};
use seawall_lab::{bench, case, demo, endure, net, notebook, process, trial};
use seawall_media::{output, signals};

fn main() -> ExitCode {
    let cli = Cli::parse();
    if matches!(cli.command, Command::List | Command::Where { .. } | Command::Report(_)) {
        signals::end_at_a_closed_pipe();
    }
    process::adopt_orphans();
    process::catch_interrupts();
    let result = match &cli.command {
        Command::Demo(options) => demo::run(options),
        Command::Bench(options) => bench::run(options),
        Command::Endure(options) => endure::run(options),
        Command::Render(options) => demo::render(&options.json, &options.html),
        Command::List => case::builtin::list(),
        Command::Run(options) => trial::run(options),
        Command::Report(options) => notebook::report(options),
        Command::Where { paths } => trial::show_places(paths),
        Command::Pong { at } => net::pong(*at),
        Command::Docs { pages } => pages.iter().try_for_each(|page| case::page::write(page)),
    };
    process::kill_leftovers();
    match result.and_then(|()| Ok(output::finish()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if process::interrupted() => {
            errln!("seawall-lab: {error:#}; everything it started has been ended");
            ExitCode::from(130)
        }
        Err(error) => {
            errln!("seawall-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
