//! `seawall lab …`: hands over to `seawall-lab`, beside this program or in PATH.
//!
//! A program of its own, because it carries load generators and starts databases: what runs beside a database in
//! production has none of that in it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

const PROGRAM: &str = "seawall-lab";

/// Run experiments that compare configurations, and show what the figures really prove
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Lab {
    /// Arguments of seawall-lab: list, run CASE, report, --help …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// Becomes `seawall-lab`; returns only if that failed.
pub fn lab(how: &Lab) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let Some(program) = find(&own) else {
        bail!(
            "{PROGRAM} is not installed: it is neither beside {} nor in PATH. `make install` and the package put it \
             there; `make build` in Seawall's source tree builds it, into target/release; it needs `seawall` and \
             `seawall-load` beside it",
            own.display()
        );
    };
    let error = Command::new(&program).args(&how.words).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

fn find(own: &Path) -> Option<PathBuf> {
    let beside = own.with_file_name(PROGRAM);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|dir| dir.join(PROGRAM));
    std::iter::once(beside).chain(in_path).find(|p| p.is_file())
}
