//! What cases measure.

use serde::{Deserialize, Serialize};

/// What can be measured.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Transactions (SLOB: operations) a second.
    Throughput,
    /// New orders a minute, as HammerDB counts them.
    Nopm,
    /// 99th percentile of a transaction, ms.
    LatencyP99,
    /// From the crash to the first accepted transaction, seconds.
    FirstTransaction,
    /// From the crash until nine tenths of the speed before the crash, seconds.
    FullSpeed,
    /// Redo replayed by the database after the crash, MB.
    Redo,
    /// Time the database itself gives for applying the redo, seconds.
    RedoTime,
    /// Waits for a full log of Seawall's, a second.
    LogFull,
    /// The longest single transaction, ms.
    Longest,
    /// CPU time of one snapshot by `seawall snap`, ms.
    SnapshotCpu,
    /// CPU time of `seawall snap` and of its session in the server, percent of one CPU.
    CaptureCpu,
    /// Writes to the device of a log on a disk, a commit; those of starting and ending included.
    DeviceWrites,
    /// What InnoDB says it has written, kB a transaction.
    DataWritten,
    /// What the kernel says the server's process wrote to a disk, kB a transaction.
    DiskWritten,
}

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 14] = [
        Measure::Throughput,
        Measure::Nopm,
        Measure::LatencyP99,
        Measure::Longest,
        Measure::FirstTransaction,
        Measure::FullSpeed,
        Measure::Redo,
        Measure::RedoTime,
        Measure::LogFull,
        Measure::SnapshotCpu,
        Measure::CaptureCpu,
        Measure::DeviceWrites,
        Measure::DataWritten,
        Measure::DiskWritten,
    ];

    /// Its key in results.
    pub fn key(self) -> &'static str {
        match self {
            Measure::Throughput => "throughput",
            Measure::Nopm => "nopm",
            Measure::LatencyP99 => "latency_p99",
            Measure::Longest => "longest",
            Measure::FirstTransaction => "first_transaction",
            Measure::FullSpeed => "full_speed",
            Measure::Redo => "redo",
            Measure::RedoTime => "redo_time",
            Measure::LogFull => "log_full",
            Measure::SnapshotCpu => "snapshot_cpu",
            Measure::CaptureCpu => "capture_cpu",
            Measure::DeviceWrites => "device_writes",
            Measure::DataWritten => "data_written",
            Measure::DiskWritten => "disk_written",
        }
    }

    /// Its name and unit for people.
    pub fn title(self) -> &'static str {
        match self {
            Measure::Throughput => "transactions/s",
            Measure::Nopm => "new orders/min (NOPM)",
            Measure::LatencyP99 => "p99, ms",
            Measure::Longest => "longest, ms",
            Measure::FirstTransaction => "crash to first transaction, s",
            Measure::FullSpeed => "crash to full speed, s",
            Measure::Redo => "redo replayed, MB",
            Measure::RedoTime => "of it applying redo, s",
            Measure::LogFull => "log full, waits/s",
            Measure::SnapshotCpu => "CPU of a snapshot, ms",
            Measure::CaptureCpu => "CPU of capturing, % of one CPU",
            Measure::DeviceWrites => "writes to the log's device a commit",
            Measure::DataWritten => "written by InnoDB, kB a transaction",
            Measure::DiskWritten => "written to a disk by the server, kB a transaction",
        }
    }

    /// What is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Measure::Throughput | Measure::Nopm)
    }
}
