//! Which log is to be taken over, and who keeps it.

use std::fs::File;
use std::path::PathBuf;

use seawall_keeper::descriptor::Descriptor;
use seawall_keeper::keeper::LogReport;
use seawall_keeper::survey;
use seawall_keeper::transport::Transport;

use super::error::TakeoverError;

/// What is known of it.
pub struct Wanted {
    /// The pool's file on this host, there or not.
    pub pool: PathBuf,
    /// Some of its keepers.
    pub keepers: Vec<String>,
    /// Its UUID.
    pub log: Option<String>,
    /// How keepers are reached, where no pool's file says so.
    pub transport: Transport,
}

/// What the pool's file says; or, where there is none, what keepers say that are named.
///
/// # Errors
/// [`TakeoverError`].
pub fn find(wanted: &Wanted) -> Result<Descriptor, TakeoverError> {
    let said = match wanted.pool.exists() {
        true => of_file(wanted)?,
        false => of_keepers(wanted)?,
    };
    match &wanted.log {
        Some(log) if *log != said.log => Err(TakeoverError::Log(format!(
            "{} belongs to the log {}, not to {log}",
            wanted.pool.display(),
            said.log
        ))),
        _ => Ok(said),
    }
}

fn of_file(wanted: &Wanted) -> Result<Descriptor, TakeoverError> {
    let path = &wanted.pool;
    if !Descriptor::is_at(path) {
        return Err(TakeoverError::Log(format!(
            "{} is not a log that keepers keep, and only such a log can be taken over. Name a path that is \
             free, and keepers with --keeper",
            path.display()
        )));
    }
    let failed = |error| TakeoverError::File { path: path.clone(), error };
    Descriptor::read(&File::open(path).map_err(failed)?).map_err(failed)
}

fn of_keepers(wanted: &Wanted) -> Result<Descriptor, TakeoverError> {
    if wanted.keepers.is_empty() {
        return Err(TakeoverError::Log(format!(
            "{} does not exist: name a keeper of the log with --keeper, and the file is made from that \
             keeper's answer",
            wanted.pool.display()
        )));
    }
    let (mut logs, mut trouble): (Vec<LogReport>, Vec<String>) = (Vec::new(), Vec::new());
    for answer in survey::ask(&wanted.keepers, &wanted.transport) {
        match answer {
            Ok(report) => logs.extend(report.logs),
            Err(error) => trouble.push(error.to_string()),
        }
    }
    logs.retain(|log| wanted.log.as_ref().is_none_or(|wanted| *wanted == log.log));
    // Nobody ever had one without keepers: it was being made.
    logs.retain(|log| !log.roster.members.is_empty());
    logs.sort_by(|a, b| a.log.cmp(&b.log).then(b.promised.cmp(&a.promised)));
    logs.dedup_by(|a, b| a.log == b.log);
    match logs.as_slice() {
        [one] => {
            Ok(Descriptor::new(one.log.clone(), one.image, one.roster.clone(), wanted.transport.clone()))
        }
        [] if trouble.len() == wanted.keepers.len() => Err(TakeoverError::TooFew(trouble.join("; "))),
        [] => Err(TakeoverError::Log(format!(
            "{} keeps no such log; `seawall keeper status` shows which logs a keeper keeps{}",
            wanted.keepers.join(", "),
            trouble.iter().map(|why| format!("; {why}")).collect::<String>()
        ))),
        several => {
            let lines: Vec<String> = several.iter().map(describe).collect();
            Err(TakeoverError::Log(format!(
                "several logs are kept there: choose with --log\n{}",
                lines.join("\n")
            )))
        }
    }
}

fn describe(log: &LogReport) -> String {
    let of = log.holder.as_ref().map_or_else(String::new, |holder| format!(" of {holder}"));
    format!("  {}{of}", log.log)
}
