//! Results on standard output.

use std::fmt::Display;
use std::io::Write;

use anyhow::Result;
use serde::Serialize;

/// Prints a result, for people or for scripts.
pub fn show(result: &(impl Display + Serialize), json: bool) -> Result<()> {
    if json {
        return print(result);
    }
    let text = result.to_string();
    Ok(writeln!(std::io::stdout(), "{}", text.trim_end())?)
}

/// As JSON.
pub fn print(result: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(result)?);
    Ok(())
}
