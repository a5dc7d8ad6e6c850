//! The lost copy of a mirrored log is rebuilt while the log is in use, when the operator asks for it.
//!
//! Input: where it is to be. Output: both copies count again, or why not. One at a time, by a thread of its own: whoever
//! asked may go. The daemon stays until it is done, unless it is asked to end: then the next start of the log finishes it.
//!
//! Not handled here: what makes a copy whole (`seawall_core::journal::rebuild`), or fit (`seawall_core::pool`).

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::Errno;
use seawall_core::journal::rebuild::Rebuild;
use serde::{Deserialize, Serialize};

pub use crate::parts::rebuilding::{RebuildState, RebuildStatus, Wanted};
use crate::state::Daemon;
use crate::{doors, journal};

/// Body of a Mirror request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Begin. Answered with a [`RebuildStatus`] at once.
    Rebuild(Wanted),
    /// How far it is: `null`, or a [`RebuildStatus`].
    Look,
}

/// Rebuilds what is asked for, until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    while let Some(wanted) = daemon.rebuilding.next() {
        let path = wanted.path.display().to_string();
        // It is forgotten with the beginning.
        journal::tell_lost(&daemon.pool, &daemon.rebuilding, &daemon.log);
        daemon.log.say(format!("the log's lost copy is being rebuilt on {path}"));
        let error = rebuild(daemon, &wanted).err();
        match &error {
            None => {
                daemon.log.say(format!("the log's copy {path} is complete: commits are on both copies again"))
            }
            Some(why) => daemon.log.say(format!(
                "THE LOG'S COPY {path} WAS NOT REBUILT ({why}): commits go on with the other copy alone"
            )),
        }
        daemon.rebuilding.close(error, &daemon.lifetime);
    }
}

fn rebuild(daemon: &Daemon, wanted: &Wanted) -> Result<(), String> {
    let image = daemon.engine.pool();
    doors::be_lost(&daemon.pool, &daemon.place);
    let prepared = daemon.pool.replace_copy(&wanted.path, wanted.force);
    doors::be_found(&daemon.pool, &daemon.place);
    let prepared = prepared.map_err(|error| error.to_string())?;
    let journal = image.journal().ok_or("the log does not lie on a block device")?;
    let failed = |error: std::io::Error| match error.raw_os_error() {
        _ if journal.desk(image).failed().load(SeqCst) != 0 => "the log's other copy failed as well".into(),
        Some(code) if code == Errno::CANCELED.raw_os_error() => {
            "the daemon is ending: the next start of the log finishes the rebuild".into()
        }
        Some(_) => format!("cannot write to {}: {error}", wanted.path.display()),
        None => error.to_string(),
    };
    let rebuild = Rebuild::begin(journal, image, prepared.devices, &prepared.source);
    let rebuild = rebuild.map_err(|error| failed(error.into()))?;
    rebuild.run(|progress| daemon.rebuilding.note(progress)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{closing, start};

    #[test]
    fn one_is_rebuilt_at_a_time_and_its_end_is_told() {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let daemon = Arc::new(start::without_threads(&dir));
        let wanted = |name: &str| Wanted { path: dir.path().join(name), force: false };
        daemon.rebuilding.begin(wanted("a"), &daemon.lifetime).expect("begun");
        assert_eq!(daemon.lifetime.holders(), 1, "it is waited for");
        assert!(daemon.rebuilding.note((30, 120)), "it goes on");
        assert_eq!(daemon.rebuilding.status().map(|status| status.percent()), Some(25));
        let said = daemon.rebuilding.begin(wanted("b"), &daemon.lifetime).expect_err("refused");
        assert!(said.contains("/a is being rebuilt (25 %)"), "{said}");
        std::thread::scope(|scope| {
            scope.spawn(|| run(&daemon));
            while daemon.rebuilding.status().is_some_and(|status| status.is_under_way()) {
                std::thread::yield_now();
            }
            daemon.rebuilding.end();
        });
        let said = daemon.rebuilding.status().expect("its end").error.expect("no second copy");
        assert!(said.contains("has no second copy") && said.contains("seawall stop"), "{said}");
        assert_eq!(daemon.lifetime.holders(), 0);
        assert!(
            daemon
                .rebuilding
                .begin(wanted("c"), &daemon.lifetime)
                .expect_err("refused")
                .contains("about to end")
        );
        closing::forget_boot(&daemon);
        start::release(&daemon);
    }
}
