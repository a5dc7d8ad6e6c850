//! What a directory lies on, as a reading.

use std::path::Path;

use crate::model::Reading;
use crate::placement::Placement;

/// The placement of `path` as a reading of facts; `what` is its role. Where we may not look (a database's
/// directory is its own), the nearest directory above it that we can reach stands for it.
pub fn storage(what: &str, path: &str) -> Option<Reading> {
    let found = Path::new(path).ancestors().find_map(|path| Placement::of(path).ok())?;
    let dax = if found.dax { "yes" } else { "no" };
    let source = if found.decoy().is_some() {
        format!("RAM (its mount names {}, which {} ignores)", found.source, found.file_system)
    } else {
        found.source
    };
    Some(
        Reading::new("storage", what, "")
            .fact("path", found.path.display().to_string())
            .fact("file system", found.file_system)
            .fact("device", source)
            .fact("dax", dax),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_no_disk() {
        let found = storage("log", "/dev/shm").expect("a file system");
        assert_eq!(found.facts["file system"], "tmpfs");
    }
}
