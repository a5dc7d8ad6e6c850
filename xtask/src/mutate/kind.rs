//! Kinds of mutants, told by their names: who faces what, and where it runs.

/// Who kills what the simulator does not.
pub const TESTS: &str = "core's tests";

/// Mutants of one kind, which face the tests of one crate, and nothing else.
pub struct Alone {
    /// What they are called.
    pub kind: &'static str,
    /// The crate.
    pub package: &'static str,
    /// Who kills them.
    pub tests: &'static str,
}

/// All that face the tests of one crate alone.
pub const ALONE: [Alone; 5] = [
    // Its tests simulate what they need.
    Alone { kind: "cache: ", package: "seawall-cache", tests: "the cache's tests" },
    // The simulator has no names.
    Alone { kind: "guard: ", package: "seawall-daemon", tests: "the daemon's tests" },
    // The simulator has no keepers.
    Alone { kind: "direct: ", package: "seawall-core", tests: TESTS },
    // The simulator writes no file that nobody has synced.
    Alone { kind: "unsynced: ", package: "seawall-core", tests: TESTS },
    // Its tests simulate writers, keepers and what is between them.
    Alone { kind: "keeper: ", package: "seawall-keeper", tests: "the keepers' tests" },
];

/// What mutants of a journal on a block device are called: they run there.
const JOURNAL: &str = "journal: ";
/// The same for one on two devices.
const MIRROR: &str = "mirror: ";
/// What mutants of names in the log are called: they run on directories.
const NAMES: &str = "names: ";
/// What mutants of the disk are called: they run on guests, whose log is on a block device.
const DISK: &str = "disk: ";
/// Crash points at most for a mutant on a block device: each device write takes the simulator as long as some hundred flushes.
const JOURNAL_POINTS: &str = "15000";

/// True for a flush or a fence that only a directory's records pass.
pub fn is_of_names(name: &str) -> bool {
    name.contains("engine/names.rs")
}

/// True for a mutant of the spill area, by its name or its file's: it runs with one.
pub fn is_of_spill(name: &str) -> bool {
    name.contains("spill")
}

/// Whose tests alone it faces.
pub fn alone(name: &str) -> Option<&'static Alone> {
    ALONE.iter().find(|alone| name.starts_with(alone.kind))
}

/// On which media the simulator runs it.
pub fn media(name: &str) -> &'static [&'static str] {
    match () {
        () if name.starts_with(JOURNAL) => &["--block"],
        () if name.starts_with(MIRROR) => &["--mirror"],
        () if name.starts_with(NAMES) || is_of_names(name) => &["--names"],
        () if name.starts_with(DISK) => &["--disk", "--block"],
        () if is_of_spill(name) => &["--spill"],
        () => &[],
    }
}

/// True for a flush or a fence, which the simulator breaks by its line.
pub fn is_site(name: &str) -> bool {
    name.starts_with("flush:") || name.starts_with("fence:")
}

/// How many of so many crash points it faces.
pub fn points<'a>(name: &str, all: &'a str) -> &'a str {
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    let is_on_block = [JOURNAL, MIRROR, DISK].iter().any(|kind| name.starts_with(kind));
    if is_on_block && number(all) >= number(JOURNAL_POINTS) { JOURNAL_POINTS } else { all }
}

#[cfg(test)]
mod tests {
    use super::media;

    #[test]
    fn a_mutant_of_a_medium_runs_there() {
        assert_eq!(media("journal: tables"), ["--block"]);
        assert_eq!(media("mirror: every copy has it"), ["--mirror"]);
        assert_eq!(media("flush:core/src/spill/spiller.rs:82"), ["--spill"]);
        assert_eq!(media("names: row N7"), ["--names"]);
        assert_eq!(media("fence:storage/core/src/engine/names.rs:82"), ["--names"]);
        assert!(media("check: cell").is_empty());
    }
}
