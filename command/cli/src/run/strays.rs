//! Reports what went through the log, where nobody can tell beforehand, and syncs that went past it, with the reason
//! and what to do. Otherwise a command whose files are not those that were registered runs as slow as ever, and nobody
//! knows why.

use std::path::{Path, PathBuf};

use seawall_daemon::AddRoot;
use seawall_daemon::status::{LeftOut, Status};
use seawall_wire::shm::Preset;

/// What was known when the command began.
pub struct Strays {
    /// Our directories, and how many files had been registered below each.
    registered: Vec<(AddRoot, u32)>,
    told: bool,
    /// `first` has listed what is in the log, or nobody can want that list.
    listed: bool,
}

/// As many files are named, others counted.
const NAMED: usize = 3;

impl Strays {
    /// For these directories; `status` is from before the command.
    pub fn new(roots: &[AddRoot], status: Option<&Status>) -> Self {
        let with = |root: &AddRoot| (root.clone(), status.map_or(0, |status| registered(status, &root.path)));
        let is_known = roots.iter().all(|root| root.preset != Preset::Any.name());
        Self { registered: roots.iter().map(with).collect(), told: false, listed: is_known }
    }

    /// While the command runs: which files are in the log, where what it does decides that. Once.
    pub fn first(&mut self, status: &Status) -> Option<String> {
        let ours = status.files.iter().filter(|file| !self.listed && !self.is_outside(&file.path));
        let mut names: Vec<String> = ours.map(|file| file.path.display().to_string()).collect();
        self.listed |= !names.is_empty();
        let others = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let more = if others == 0 { String::new() } else { format!(" and {others} more") };
        (!names.is_empty()).then(|| format!("in the log: {}{more}", names.join(", ")))
    }

    /// While the command runs: what to tell of a database that is elsewhere. Once.
    pub fn elsewhere(&mut self, status: &Status) -> Option<String> {
        let path = status.elsewhere.as_ref().filter(|path| !self.told && self.is_outside(path))?;
        self.told = true;
        Some(format!(
            "WARNING: {} is synced WITHOUT Seawall: it lies outside the managed directories ({}). If it \
             belongs to this database, add its directory with --data; then name this run's other \
             directories, too",
            path.display(),
            self.directories()
        ))
    }

    /// After the first half minute, or when it has ended and nobody goes on: what to tell if nothing at all went through the
    /// log. Once.
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
        self.told = true;
        Some(format!(
            "WARNING: nothing of this run went through the log. {what}. Its fsyncs waited for the disk as usual"
        ))
    }

    fn why_unmanaged(&self, path: &Path) -> String {
        if self.is_outside(path) {
            let directories = self.directories();
            return format!(
                "it lies outside the managed directories ({directories}): give its directory with --data"
            );
        }
        if self.registered.iter().any(|(root, _)| root.preset == Preset::Any.name()) {
            return "no file was synced twice: the first fsync of a new file, and of its directory, is the disk's"
                .into();
        }
        let preset = self.registered.first().map_or("", |(root, _)| root.preset.as_str());
        let others = super::database::presets().join(", ");
        format!(
            "the preset {preset} does not log such a file: if it belongs to another database, say --preset \
             ({others})"
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
