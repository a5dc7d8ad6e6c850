//! `seawall-lab`: the demo and the benchmarks.
//!
//! Both run *unmodified* programs on several sides (the bare file system, Seawall, an unsafe upper
//! bound) in one run, interleaved, and print medians with their spread and the medium's honest name
//! beside every figure. [`side`] is what differs between sides, and the only thing that does.

mod bench;
mod cli;
mod compare;
mod demo;
mod html;
mod identity;
mod lab;
mod machine;
mod pg;
mod pool;
mod process;
mod progress;
mod side;
mod spread;
mod sqlite;
mod table;
mod tools;
mod workdir;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    process::adopt_orphans();
    process::catch_interrupts();
    let result = match &cli.command {
        cli::Command::Demo(options) => demo::run(options),
        cli::Command::Bench(options) => bench::run(options),
        cli::Command::Render(options) => demo::render(&options.json, &options.html),
    };
    process::kill_leftovers();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if process::interrupted() => {
            eprintln!("seawall-lab: {error:#}; everything it started has been ended");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("seawall-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
