//! What runs did, in numbers: for the campaign's table and for whoever wonders what was reached at all.

use serde::Serialize;

macro_rules! counts {
    ($($(#[doc = $doc:literal])+ $name:ident),+ $(,)?) => {
        /// Numbers of events.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Counts { $($(#[doc = $doc])+ pub $name: u64),+ }

        impl Counts {
            /// Adds another run's numbers.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }

            /// Every number with its meaning.
            pub fn rows(&self) -> Vec<(&'static str, u64)> {
                vec![$((concat!($($doc),+).trim_ascii(), self.$name)),+]
            }
        }
    };
}

counts! {
    /// crash points explored
    points,
    /// of them within a recovery
    points_in_recovery,
    /// records replayed in them
    replayed,
    /// records found torn in them
    torn,
    /// images with planted damage
    damaged,
    /// of them refused (the others recovered correctly)
    refused,
    /// images with an unreadable line
    poisoned,
    /// of them touched by recovery, which died before it wrote
    died_of_poison,
    /// examined for format, watermarks and log space
    examined,
    /// power cuts gone through, recovery and all
    cuts,
    /// recoveries that were cut in turn
    recoveries_cut,
    /// operations begun
    operations,
    /// requests that guests had answers to
    answered,
    /// of them flushes
    flushes,
    /// of them reads whose answers were compared
    compared,
    /// requests that were left by a process, and carried out by the next one
    again,
    /// syncs absorbed
    absorbed,
    /// syncs that were real
    real,
    /// syncs of a directory
    directories,
    /// changes of names that the kernel made
    named,
    /// syncs of files and directories that were acknowledged there
    acknowledged,
    /// files that became records as a whole
    captured,
    /// directories that entered the log before the disk had them
    unborn,
    /// files that recoveries made again
    made_again,
    /// of the crash points those whose recovery was cut while it replayed names
    cut_short,
    /// files taken out of a full log
    full,
    /// changes that went around the log under `atomic`
    around,
    /// changes that were refused under `atomic`, after a sync that failed
    barred,
    /// processes killed
    kills,
    /// daemons that took over
    takeovers,
    /// processes killed in the middle of a publish
    halved,
    /// writes of the dead finished by the daemon
    finished,
    /// write-backs that failed
    failed,
    /// of them with pages that were dropped and read as they were before
    dropped,
    /// files left by a disk that garbled what it was writing of them
    garbled,
    /// journals of file systems that failed a commit
    aborted,
    /// files whose slot was given up
    evicted,
    /// drains after which the log was empty
    drains,
    /// durable writes of a block device
    device_writes,
    /// of them batches that several waited for
    shared,
    /// of the durable writes failed
    device_failures,
    /// of the durable writes anchors: the journal's tail moved
    cleaned,
    /// leaders in whose place another one went on
    replaced,
    /// looks at the holder of a file's lock that found it stopped
    overtaken,
    /// lives that began with an image of which not all had memory
    young,
    /// segments that got theirs
    backed,
    /// durable writes of a spill area
    area_writes,
    /// of them failed
    area_failures,
    /// segments copied to it
    spilled,
    /// lost copies of mirrored logs that were rebuilt
    rebuilt,
    /// power cuts of a device that had lied, and was found out
    lies_found,
    /// the same, and what was missing looked like writes that were under way
    lies_believed,
    /// power cuts of a mirrored log one of whose devices had lied, and the other one was believed
    lies_outvoted,
}
