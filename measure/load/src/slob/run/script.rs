//! EXTERNAL_SCRIPT: a program of the user's that we call when a run begins and when it ends.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::slob::Conf;

/// Calls it with a word, if there is one, and waits for its end.
pub fn call(conf: &Conf, word: &str) -> Result<()> {
    if conf.external_script.is_empty() {
        return Ok(());
    }
    let name = || format!("EXTERNAL_SCRIPT {} {word}", conf.external_script);
    let mut command = Command::new(&conf.external_script);
    // Standard output is the result's.
    command.arg(word).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().with_context(|| format!("cannot run {}", name()))?;
    ensure!(status.success(), "{} ended with {status}", name());
    Ok(())
}
