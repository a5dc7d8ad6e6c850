//! A program, as a [side](crate::side) runs it. What differs between sides is decided here and nowhere else.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::lab::Lab;
use crate::pool::Pool;
use crate::side::{Preset, Side};
use crate::tools::eatmydata_library;

/// The program to run, as this side runs it.
pub fn command<S: AsRef<OsStr>>(
    lab: &Lab,
    side: Side,
    preset: Preset,
    data: &Path,
    program: &Path,
    args: impl IntoIterator<Item = S>,
) -> Result<Command> {
    let args: Vec<OsString> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
    let mut command = match side {
        Side::Fs | Side::Mount | Side::Unsafe | Side::Control => lab.command(program),
        Side::Eatmydata => {
            let mut command = lab.command(program);
            command.env("LD_PRELOAD", eatmydata_library()?);
            command
        }
        Side::Seawall => under(lab, &lab.pool, (preset.name(), preset.policy()), data, program),
    };
    command.args(args);
    Ok(command)
}

/// The program to run under `seawall run` on a pool, by preset and policy; its arguments follow.
pub fn under(lab: &Lab, pool: &Pool, how: (&str, &str), data: &Path, program: &Path) -> Command {
    under_with(lab, pool, how, &[], data, program)
}

/// The same with more options of `seawall run`.
pub fn under_with(
    lab: &Lab,
    pool: &Pool,
    (preset, policy): (&str, &str),
    options: &[&str],
    data: &Path,
    program: &Path,
) -> Command {
    let mut command = pool.seawall();
    command.current_dir(lab.work.path());
    command.args(["run", "--quiet", "--preset", preset, "--policy", policy]).args(pool.by_name());
    command.args(pool.run_options()).args(options);
    if preset == "any" {
        // Nothing is started here after a crash.
        command.arg("--unguarded");
    }
    command.arg("--pool").arg(pool.path()).arg("--data").arg(data).arg("--").arg(program);
    command
}
