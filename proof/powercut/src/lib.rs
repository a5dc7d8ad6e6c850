//! Power cuts for databases: under full load, again and again, with nothing acknowledged lost.
//!
//! # The disk
//!
//! What a power cut does to a database is decided by three layers: its own syncs, the file system's journal,
//! and the disk's volatile write cache. A file system of our own that pretends to lose data would have to
//! imitate the second, and would prove something about the imitation. So the layer that is imitated is the
//! smallest one, the disk: a FUSE file system with a single file ([`seawall_faulty_disk`]), a loop device on that file, and
//! a real ext4 on the device. The loop device turns writes into writes and flushes (REQ_PREFLUSH, FUA) into
//! fsyncs of the file; the disk remembers what no flush has covered. On a cut any subset of that survives,
//! down to single 512-byte sectors. What happens to names, sizes, unwritten extents and torn pages then is
//! what ext4 does, not what somebody believed it does. File handles and the file system's UUID, by which
//! Seawall knows its files, are ext4's own and outlive the reboot.
//!
//! Considered and not taken: a FUSE file system with a volatile and a durable view of each file (an imitated
//! ext4, without stable UUID); dm-flakey and dm-log-writes (not in every kernel, and they replay in whole
//! requests); NBD (not in every kernel); copying the image of a loop device (loses everything un-flushed or
//! nothing, and the page cache under the loop device may write back what was never flushed).
//!
//! # The machine
//!
//! A machine ([`life`], [`machine`]) is a process in namespaces of its own: processes, mounts, memory
//! (`/tmp`, `/dev/shm`), boot id, and a clock that starts at the boot. Cutting its power is one lock in the
//! disk, after which nothing becomes durable and nothing is answered, and one SIGKILL, after which none of
//! its processes exists. What is not inside is what survives: the disk's durable sectors, the ledger of
//! acknowledged commits, and the file that stands for the log's medium. That this file keeps every store is
//! an assumption, not a result: which stores persistent memory keeps is for the simulated media and for the
//! virtual machine to show.
//!
//! # The rounds
//!
//! A round ([`round`]) puts a database under load, cuts, boots again, recovers, compares the database with
//! the ledger, and lets the database's own checkers look at everything. The same rounds without Seawall
//! frame the result: with syncs nothing may be lost, or the disk is wrong; with `fsync=off` something must
//! be, or the cuts are toothless. With Seawall and its log taken away something must be, too, or the log had
//! nothing to do. In some rounds more goes wrong: the disk refuses writes or flushes, and the
//! kernel marks the pages clean all the same; the file system is full; the daemon or a process
//! of the database was killed; the power fails again while the log is
//! replayed. Or the machine is the host of another one, with QEMU, and the database is in there ([`guest`]). A campaign
//! ([`campaign`]) runs many of them and reports ([`report`]).
//!
//! Not covered: file systems other than ext4 and XFS (`--file-system xfs`); disks that lie about a flush.

pub mod balloon;
pub mod boot;
pub mod campaign;
pub mod cell;
pub mod console;
pub mod cut;
pub mod etcd;
pub mod file_system;
pub mod files;
pub mod fitness;
pub mod front;
pub mod guest;
pub mod judge;
pub mod life;
pub mod machine;
pub mod mariadb;
pub mod medium;
pub mod murder;
pub mod outside;
pub mod place;
pub mod plan;
pub mod postgres;
pub mod program;
pub mod redis;
pub mod report;
pub mod round;
pub mod server;
pub mod sqlite;
pub mod store;
pub mod user;
pub mod writeback;
