//! Reads a case file. An error names file, line and key of the mistake, and what would be right.

use std::ops::Range;

use super::{Case, check};

/// A mistake in a case file.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {what}{}", place(*.line), quoted(*.line, .text))]
pub struct CaseError {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// What is wrong, and what is allowed.
    pub what: String,
    /// The line's text.
    pub text: String,
}

fn place(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

fn quoted(line: Option<usize>, text: &str) -> String {
    line.map(|line| format!("\n    {line} | {}", text.trim_end())).unwrap_or_default()
}

/// The case in `text`, which came from `file`.
///
/// # Errors
/// The first mistake in it.
pub fn parse(file: &str, text: &str) -> Result<Case, CaseError> {
    let error = |at: Option<Range<usize>>, what: String| {
        let line = at.map(|at| text[..at.start.min(text.len())].matches('\n').count());
        CaseError {
            file: file.to_owned(),
            line: line.map(|n| n + 1),
            what,
            text: line.and_then(|n| text.lines().nth(n)).unwrap_or_default().to_owned(),
        }
    };
    let case: Case = toml::from_str(text).map_err(|e| error(e.span(), e.message().trim().to_owned()))?;
    match check::check(&case) {
        Ok(()) => Ok(case),
        // Where a key is missing, its default has no place in the text.
        Err(wrong) if wrong.at == (0..0) => Err(error(None, wrong.what)),
        Err(wrong) => Err(error(Some(wrong.at), wrong.what)),
    }
}
