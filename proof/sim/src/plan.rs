//! What to run: the seed, how much, on which media, and which verb is broken.

/// Processes of a crowd, and files.
pub const CROWD: u64 = 6;

/// A line of source, as `file:line`.
pub type Site = String;

/// A verb that does not do its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mutant {
    /// Everything works.
    #[default]
    None,
    /// The fence at this line waits for nothing.
    Fence(Site),
    /// The store or flush at this line starts no write-back.
    Flush(Site),
    /// What surrounds the log of names has this bug.
    Planted(Planted),
}

/// A bug in a front, the daemon or the recovery of directories whose names are in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// The daemon retires a directory's records before it has synced the directory.
    RetiredUnsynced,
    /// It syncs the directory alone, and not the files that its log has as a whole.
    RetiredWithoutFiles,
    /// Records identify files by their names.
    ByName,
    /// Records identify files by their inode numbers, which are used again.
    ByNumber,
    /// A rename is logged once more after it was made.
    RenamedTwice,
    /// The record of an unlink is made late, when the name may be a newer file's.
    UnlinkedLate,
    /// A file that the disk never had is made again without its content.
    MadeEmpty,
    /// A file that is made again does not say which one it stands for.
    MadeUnmarked,
    /// A real sync of a file that is in the log as a whole is not reported to the log.
    Unsettled,
    /// A name that is made is not logged, and its directory stays in the log.
    MadeUnlogged,
    /// A new directory enters the log without the names that are in it.
    NewWithoutNames,
}

impl Planted {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 11] = [
        ("retired-unsynced", Self::RetiredUnsynced),
        ("retired-without-files", Self::RetiredWithoutFiles),
        ("by-name", Self::ByName),
        ("by-number", Self::ByNumber),
        ("renamed-twice", Self::RenamedTwice),
        ("unlinked-late", Self::UnlinkedLate),
        ("made-empty", Self::MadeEmpty),
        ("made-unmarked", Self::MadeUnmarked),
        ("unsettled", Self::Unsettled),
        ("made-unlogged", Self::MadeUnlogged),
        ("new-without-names", Self::NewWithoutNames),
    ];
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Everything follows from it.
    pub seed: u64,
    /// Power cuts that are gone through.
    pub lives: u32,
    /// Operations of each logical thread in a life.
    pub operations: u64,
    /// A verb that is broken.
    pub mutant: Mutant,
    /// Note the sites of all verbs.
    pub survey: bool,
    /// The log is a journal on a block device.
    pub block: bool,
    /// It is mirrored on a second one.
    pub mirror: bool,
    /// A spill area is behind it, on another disk.
    pub spill: bool,
    /// Guests have disks in the log.
    pub disk: bool,
    /// Programs keep small files in directories whose names are in the log.
    pub names: bool,
    /// Remember what happened last.
    pub trace: bool,
}

impl Plan {
    /// The same on a block device.
    pub fn on_block(seed: u64) -> Self {
        Self { block: true, ..Self::of(seed) }
    }

    /// The same on two block devices.
    pub fn mirrored(seed: u64) -> Self {
        Self { mirror: true, ..Self::on_block(seed) }
    }

    /// With a spill area behind a pool in memory.
    pub fn spilling(seed: u64) -> Self {
        Self { spill: true, ..Self::of(seed) }
    }

    /// With guests whose disks are in a log in memory.
    pub fn with_guests(seed: u64) -> Self {
        Self { disk: true, ..Self::of(seed) }
    }

    /// With guests whose disks are in a log on a block device.
    pub fn with_guests_on_block(seed: u64) -> Self {
        Self { disk: true, ..Self::on_block(seed) }
    }

    /// With directories whose names are in a log in memory.
    pub fn with_names(seed: u64) -> Self {
        Self { names: true, ..Self::of(seed) }
    }

    /// With directories whose names are in a log on a block device.
    pub fn with_names_on_block(seed: u64) -> Self {
        Self { names: true, ..Self::on_block(seed) }
    }

    /// True if many commit at once, each to a file of its own: they share device writes, and fill the log.
    pub fn is_crowded(&self) -> bool {
        self.seed % 4 == 2
    }

    /// The usual size.
    pub fn of(seed: u64) -> Self {
        Self {
            seed,
            lives: 3,
            operations: 40,
            mutant: Mutant::None,
            survey: false,
            block: false,
            mirror: false,
            spill: false,
            disk: false,
            names: false,
            trace: false,
        }
    }
}
