//! The command line of the larger loads.

mod progress;
pub mod slob;
pub mod tprocc;

use std::fmt::Display;
use std::io::Write;

use anyhow::Result;
use serde::Serialize;

/// Prints a result, for people or for scripts.
fn show(result: &(impl Display + Serialize), json: bool) -> Result<()> {
    if json {
        return crate::print(result);
    }
    let text = result.to_string();
    Ok(writeln!(std::io::stdout(), "{}", text.trim_end())?)
}
