//! `seawall generate`: manual pages and shell completions, made from the command line's own description, so
//! that they cannot say anything else. For packages; `make install` calls it too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap_complete::Shell;

/// Manual pages and shell completions, for packages
#[derive(clap::Args)]
pub struct Generate {
    /// Directory for seawall.1 and a page for each sub-command
    #[arg(long)]
    man: PathBuf,
    /// Directory for bash/, zsh/ and fish/
    #[arg(long)]
    completions: PathBuf,
}

/// Writes them.
pub fn generate(what: &Generate, command: clap::Command) -> Result<()> {
    let failed = |dir: &Path| format!("cannot write to {}", dir.display());
    fs::create_dir_all(&what.man).with_context(|| failed(&what.man))?;
    clap_mangen::generate_to(command.clone(), &what.man).with_context(|| failed(&what.man))?;
    let mut command = command;
    for (shell, name) in [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")] {
        let dir = what.completions.join(name);
        fs::create_dir_all(&dir).with_context(|| failed(&dir))?;
        clap_complete::generate_to(shell, &mut command, "seawall", &dir).with_context(|| failed(&dir))?;
    }
    Ok(())
}
