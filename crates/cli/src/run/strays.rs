//! Syncs that went past the log: said, with the reason and what to do. Otherwise a command whose files are not those that
//! were registered runs as slow as ever, and nobody knows why.

use std::path::{Path, PathBuf};

use seawall_daemon::AddRoot;
use seawall_daemon::status::{LeftOut, Status};
use seawall_wire::shm::Preset;

/// What was known when the command began.
pub struct Strays {
    /// Our directories, and how many files had been registered below each.
    registered: Vec<(AddRoot, u32)>,
    told: bool,
}

impl Strays {
    /// For these directories; `status` is from before the command.
    pub fn new(roots: &[AddRoot], status: Option<&Status>) -> Self {
        let with = |root: &AddRoot| (root.clone(), status.map_or(0, |status| registered(status, &root.path)));
        Self { registered: roots.iter().map(with).collect(), told: false }
    }

    /// While the command runs: what to tell of a database that is elsewhere. Once.
    pub fn elsewhere(&mut self, status: &Status) -> Option<String> {
        let path = status.elsewhere.as_ref().filter(|path| !self.told && self.is_outside(path))?;
        self.told = true;
        Some(format!(
            "WARNING: {} is synced WITHOUT Seawall: it lies outside of what is managed ({}). If it is this database's, \
             add its directory with --data; this run's other directories must be named then, too",
            path.display(),
            self.directories()
        ))
    }

    /// When it has ended and nobody goes on: what to tell if nothing at all went through the log.
    pub fn nothing(&mut self, status: &Status) -> Option<String> {
        let joined = |(root, before): &(AddRoot, u32)| {
            let files = status.files.iter().any(|file| file.path.starts_with(&root.path));
            files || registered(status, &root.path) > *before
        };
        if self.told || self.registered.iter().any(joined) {
            return None;
        }
        let left_out = status.left_out.as_ref().filter(|left_out| !self.is_outside(&left_out.path));
        let what = match left_out {
            Some(LeftOut { path, why }) => format!("{} could not be managed: {why}", path.display()),
            None => {
                let path = status.elsewhere.as_ref().or(status.unknown.as_ref())?;
                format!("{} was synced, and {}", path.display(), self.why_unmanaged(path))
            }
        };
        Some(format!(
            "WARNING: nothing of this run went through the log. {what}. Its fsyncs waited for the disk as usual"
        ))
    }

    fn why_unmanaged(&self, path: &Path) -> String {
        if self.is_outside(path) {
            let directories = self.directories();
            return format!(
                "it lies outside of what is managed ({directories}): give its directory with --data"
            );
        }
        let preset = self.registered.first().map_or("", |(root, _)| root.preset.as_str());
        let others = Preset::ALL.map(Preset::name).join(", ");
        format!(
            "it is no file that the preset {preset} logs: if it is another database's, say --preset ({others})"
        )
    }

    fn is_outside(&self, path: &Path) -> bool {
        self.registered.iter().all(|(root, _)| !path.starts_with(&root.path) && !path.starts_with(&root.data))
    }

    fn directories(&self) -> String {
        let all: Vec<_> = self.registered.iter().map(|(root, _)| root.path.display().to_string()).collect();
        all.join(", ")
    }
}

fn registered(status: &Status, path: &PathBuf) -> u32 {
    status.roots.iter().filter(|root| root.path == *path).map(|root| root.registered).sum()
}
