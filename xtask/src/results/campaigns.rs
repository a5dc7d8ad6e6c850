//! The campaigns: where each one's result lies, and what the page says about it.

use serde_json::Value;

use super::figures::{machine, mutants, simulated};
use super::power_cuts;

/// One campaign.
pub struct Campaign {
    /// The file of its result, in the directory of all results.
    pub file: &'static str,
    /// The heading of its section.
    pub title: &'static str,
    /// What it does, and what it shows.
    pub about: &'static str,
    /// The rows of its table, the head first; none if the result makes no sense.
    pub rows: fn(&Value) -> Option<Vec<Vec<String>>>,
}

/// All of them, in the order of the page.
pub const CAMPAIGNS: [Campaign; 12] = [
    Campaign {
        file: "campaign.json",
        title: "Simulated crash points",
        about: "The stages unmodified between a simulated medium and simulated disks, under schedules that a seed \
                decides; a power cut at every persistence point, recovery, and a second cut inside the recovery \
                ([`proof/sim`](../../proof/sim/src/lib.rs)).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-block.json",
        title: "Simulated crash points, the log on a block device",
        about: "The same stages and schedules with a journal on a simulated device that keeps any subset of what was \
                not flushed; a device write takes the place of some hundred flushes (`campaign --block`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-mirror.json",
        title: "Simulated crash points, the log on two devices",
        about: "The same with a mirrored journal: one device dies at any of its writes, and is stale or gone when the \
                power is back, or one had confirmed what it then has not (`campaign --mirror`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-spill.json",
        title: "Simulated crash points, a spill area behind the log",
        about: "A small pool in memory whose full segments are copied to a simulated disk that keeps any subset of the \
                sectors under way, and fails at times (`campaign --spill`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-disk.json",
        title: "Simulated crash points, guests whose disks are in the log",
        about: "What `seawall disk` carries out for guests whose requests overlap no other under way, its process killed at any \
                step and the requests carried out again by the next one, against a model of a disk (`campaign --disk`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-disk-block.json",
        title: "Simulated crash points, guests whose disks are in a log on a block device",
        about: "The same with a journal on a simulated device (`campaign --disk --block`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-names.json",
        title: "Simulated crash points, names in the log",
        about: "Processes make, write, sync, rename, exchange, link and remove small files in one or two directories \
                whose names are in the log, on a simulated file system that keeps changes of names in order; a cut \
                leaves any first part of what was not synced (`campaign --names`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-names-block.json",
        title: "Simulated crash points, names in a log on a block device",
        about: "The same with a journal on a simulated device (`campaign --names --block`).",
        rows: simulated,
    },
    Campaign {
        file: "mutants.json",
        title: "Mutation",
        about: "Each flush, fence, checksum check, watermark, real sync and row of the decision table is broken \
                once; something must notice ([`MUTANTS`](../../xtask/src/mutate/list.rs)). Control: the run with \
                nothing broken notices nothing.",
        rows: mutants,
    },
    Campaign {
        file: "powercuts.json",
        title: "Power cuts of real databases",
        about: "A real file system on a disk that loses any part of what was not flushed, cut under full load \
                ([`proof/powercut`](../../proof/powercut/src/main.rs)). The log's medium is memory outside the machine, which \
                survives by construction; *log on the disk* has the log in a file there too, cut like everything else. A round \
                whose database could not be checked in time shows nothing, and is counted apart.\n\n\
                * **Controls.** `unsafe` has durability switched off, `logless` recovers without the log, `synced` is the bare \
                database with its fsyncs.\n\
                * **`atomic`** is without full pages or doublewrite buffer under that policy; its control is `torn`, the same \
                without Seawall, where a database ends with torn pages and its check with a problem.\n\
                * **On the mount** the database runs bare on a directory of `seawall mount`; in some rounds the mount's process is \
                killed first.\n\
                * **In a guest** it runs bare in a virtual machine (QEMU), whose image `seawall disk` serves; in the controls \
                `synced` and `unsafe` QEMU serves it, with its flushes and without. The host is cut, with all three, and in some \
                rounds `seawall disk` or the daemon is killed first.",
        rows: power_cuts::rows,
    },
    Campaign {
        file: "vm.json",
        title: "Power cuts of a virtual machine",
        about: "PostgreSQL and SQLite in a machine with persistent memory (ext4 and XFS in DAX mode, MAP_SYNC) and a \
                disk with a volatile write cache; in some chains the log is small and has a spill area on that disk, in \
                others it lies on that disk alone; the emulator is killed under load, the ledger stands outside \
                ([`proof/vmtest`](../../proof/vmtest/src/main.rs)). Emulated devices: it shows that a crash is \
                survived, not what a real module's flushes do.",
        rows: machine,
    },
    Campaign {
        file: "vm-keepers.json",
        title: "Power cuts of a host whose log others keep",
        about: "Three virtual machines, each with a keeper, two of which confirm a commit: PostgreSQL's is killed under load, \
                at times some seconds after its network, with what its keeper had in memory and the disks had not flushed. \
                The volume goes to the next one, which takes the log over, and is the next to be cut \
                ([how](../../proof/vmtest/src/hosts.rs)).",
        rows: machine,
    },
];
