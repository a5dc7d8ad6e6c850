//! `seawall twin status`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::{show, size};

/// Options
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 the twin could take over now, 1 it could not, or nothing is known.")]
pub struct Status {
    /// Directory of the state
    #[arg(long, value_name = "DIRECTORY")]
    state: PathBuf,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Says it.
pub fn status(how: &Status) -> Result<ExitCode> {
    let found = seawall_twin::status(&how.state)?;
    let code = if found.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if how.json {
        show::json(&found)?;
        return Ok(code);
    }
    let process =
        |number: Option<i32>| number.map_or_else(|| "none".into(), |number| format!("process {number}"));
    let twin = match (found.twin, found.ready) {
        (Some(number), true) => format!("process {number}, ready, {} behind", size::human(found.behind)),
        (Some(number), false) => {
            format!("process {number}, still loading: if the server dies now, it is started again")
        }
        (None, _) => "none: if the server dies now, it is started again".into(),
    };
    let mut facts = vec![
        (
            "server",
            if found.runs { process(found.primary) } else { "no `seawall twin` runs with this state".into() },
        ),
        ("current directory", found.current.display().to_string()),
    ];
    if found.runs {
        facts.push(("twin", twin));
        facts.push(("its memory", size::human(found.memory)));
    }
    facts.extend(found.trouble.map(|trouble| ("trouble", trouble)));
    let last = found.last_takeover_ms.map_or_else(String::new, |ms| format!(", the last one in {ms:.1} ms"));
    facts.push(("takeovers", format!("{}{last}", found.takeovers)));
    show::facts(&facts);
    Ok(code)
}
