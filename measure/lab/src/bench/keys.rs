//! The keys of `bench.json`, and what they mean: the page's tables come from here.
//!
//! A test below compares them with what the sections really write, and another one with the page.

#[cfg(test)]
use super::measure::{SIDES, key};

/// One key, or one for each side where the name holds [`SIDE`].
pub struct Key {
    pub name: &'static str,
    /// Whether `name_min` and `name_max` stand beside it.
    pub spread: bool,
    pub meaning: &'static str,
}

/// Stands for each of the four sides' names.
pub const SIDE: &str = "{side}";

const fn one(name: &'static str, meaning: &'static str) -> Key {
    Key { name, spread: false, meaning }
}

const fn spread(name: &'static str, meaning: &'static str) -> Key {
    Key { name, spread: true, meaning }
}

const BS: Key = one("bs", "bytes of one write");
const PATTERN: Key = one("pattern", "`sequential` or `random` overwrites of an allocated file, or `append`");
const THREADS: Key = one("threads", "writing threads in each process");
const PROCESSES: Key = one("processes", "writing processes");
const P50: Key = spread("{side}_us", "latency of one operation in µs, the median of a run");
const MEAN: Key = spread("{side}_mean_us", "its mean");
const P99: Key = spread("{side}_p99_us", "its 99th percentile");
const P999: Key = spread("{side}_p999_us", "its 99.9th percentile");
const LONGEST: Key = spread("{side}_longest_us", "the longest single operation: the longest stall");
const LATE: &str = "how late a thread woke at worst that slept a millisecond at a time beside the load: what the machine takes from \
         any program. A longest operation below it says nothing about the side";
const OPS: Key = spread("{side}_ops_s", "operations a second, all threads and processes together");
const LOGGED: Key = spread(
    "seawall_logged",
    "records in Seawall's log for each operation, at most 1: what is missing to 1 went around a full log",
);
const SPEEDUP: Key = spread(
    "speedup",
    "Seawall against the bare file system: how many times faster, the median of the rounds' ratios",
);

/// The objects of `write_fdatasync`.
pub const WRITE: &[Key] = &[
    BS,
    PATTERN,
    THREADS,
    PROCESSES,
    P50,
    one("speedup", "`fs_sync_us` / `seawall_us`"),
    one("over_floor", "`seawall_us` / `fs_nosync_us`: what durability costs over no durability"),
    LOGGED,
    MEAN,
    P99,
    P999,
    LONGEST,
    OPS,
];

/// The objects of `sustained`.
pub const SUSTAINED: &[Key] = &[
    BS,
    PATTERN,
    THREADS,
    PROCESSES,
    one("pace", "`flat-out`, or `steady`: at half of what the disk takes in this pattern"),
    one("rate_ops_s", "the steady pace in operations a second; 0 for flat out"),
    one("pool_mb", "size of the pool"),
    one("total_mb", "what one run writes: several pools"),
    P50,
    one("speedup", "`fs_sync_mean_us` / `seawall_mean_us`: a median would hide what a full log costs"),
    one("over_floor", "`seawall_mean_us` / `fs_nosync_mean_us`"),
    LOGGED,
    MEAN,
    P99,
    P999,
    LONGEST,
    spread("{side}_late_us", LATE),
    OPS,
];

/// The objects of `block`.
pub const BLOCK: &[Key] = &[
    BS,
    PATTERN,
    THREADS,
    PROCESSES,
    one("files", "files: one for all processes, or each its own"),
    spread("fs_sync_us", "latency of one operation in µs on the bare file system, the median of a run"),
    spread("fs_sync_ops_s", "operations a second there, all processes together"),
    spread("seawall_us", "the same with the log on a block device, the same disk"),
    spread("seawall_ops_s", "the same with the log on a block device, the same disk"),
    spread("fs_nosync_us", "the same on the bare file system without any sync"),
    spread("fs_nosync_ops_s", "the same on the bare file system without any sync"),
    spread("speedup", "`seawall_ops_s` / `fs_sync_ops_s`: the median of the rounds' ratios"),
    spread(
        "device_writes",
        "writes to the log's device for each record of the log: below 1, they were shared",
    ),
];

/// The objects of `block_databases`.
pub const BLOCK_DATABASES: &[Key] = &[
    one("database", "`postgres`, `sqlite` or `rocksdb`"),
    one("shape", "the load, and how many commit at once"),
    spread("fs", "commits a second on the bare file system, all together"),
    spread("seawall", "the same with the log on a block device, the same disk"),
    spread(
        "unsafe",
        "the same on the bare file system without syncs (`fsync=off`, `synchronous=OFF`, `--sync=0`)",
    ),
    OF_UNSAFE,
    CONTROL,
    SPEEDUP,
    spread(
        "device_writes",
        "writes to the log's device for each commit, those of starting and ending included",
    ),
];

/// The objects of `replicated`.
pub const REPLICATED: &[Key] = &[
    one(
        "what",
        "`one writer`, `write`, `keepers' CPU`, `sqlite`, `redis`, `postgres`, `keeper lost` or `catching up`",
    ),
    one("load", "what commits"),
    one("keepers", "keepers of the log"),
    one("acks", "how many of them confirm a commit"),
    one("delay_us", "what the way there takes longer in each direction, as it was asked for; 0: nothing"),
    spread(
        "round_trip_us",
        "8 KiB out and 64 bytes back on that way, both ends blocking, in the same rounds, µs; null where it is not compared",
    ),
    spread("round_trip_spinning_us", "the same with both ends spinning"),
    spread(
        "round_trip_of_all_us",
        "the same to all keepers at once, all ends blocking, until as many have answered as confirm a commit",
    ),
    one("unit", "of `seawall` and `other`"),
    spread(
        "seawall",
        "the figure of a log in other hosts' memory; `one writer`: the median of a write and its fdatasync",
    ),
    one(
        "against",
        "what it is compared with: the `bare` file system, the `unsafe` bound (`fsync=off`), the `round trip`, the same load \
         `before`; of a longest commit how `late` a sleeping thread woke",
    ),
    spread("other", "its figure; null without any"),
    spread(
        "result",
        "what the target is about: `seawall` / `other`; `one writer`: `seawall` − `other`; of the keepers' CPU, each one's, and \
         of the longest commit: `seawall`. The median of the rounds'",
    ),
    one("target_is", "`at least` or `at most`"),
    one("target", "what it has to reach"),
    one("reached", "whether the median of `result` does"),
];

/// The objects of `block_sustained`.
pub const BLOCK_SUSTAINED: &[Key] = &[
    one("disks", "`one` for log and data, or which of them lies on a slow one: `slow data`, `slow log`"),
    BS,
    PROCESSES,
    one("pace", "`flat-out`, or `steady`: at half of what Seawall's side did flat out"),
    one("rate_ops_s", "the steady pace in operations a second; 0 for flat out"),
    one("log_mb", "size of the log, MiB"),
    one("total_mb", "what a run writes, MiB, unless ten seconds are over before"),
    one("flush_ms", "how long the slow disk takes over a flush"),
    spread("fs_sync_ops_s", "operations a second on the bare file system, all processes together"),
    spread("fs_sync_us", "latency of one operation in µs, the median of a run"),
    spread("fs_sync_p999_us", "its 99.9th percentile"),
    spread("fs_sync_longest_us", "the longest single operation: the longest stall"),
    spread("fs_sync_late_us", LATE),
    spread("seawall_ops_s", "operations a second with the log on a block device"),
    spread("seawall_us", "the median of a run"),
    spread("seawall_p999_us", "its 99.9th percentile"),
    spread("seawall_longest_us", "the longest stall"),
    spread("seawall_late_us", LATE),
    spread("fs_nosync_ops_s", "operations a second on the bare file system without any sync"),
    spread("fs_nosync_us", "the median of a run"),
    spread("fs_nosync_p999_us", "its 99.9th percentile"),
    spread("fs_nosync_longest_us", "the longest stall"),
    spread("fs_nosync_late_us", LATE),
    spread("speedup", "`seawall_ops_s` / `fs_sync_ops_s`: the median of the rounds' ratios"),
    LOGGED,
];

/// The objects of `first_write`.
pub const FIRST_WRITE: &[Key] = &[
    one("journal", "SQLite's journal mode"),
    spread(
        "fs_us",
        "from before a database is there to the return of its first commit, µs, the median of a run's databases",
    ),
    spread("seawall_us", "the same under `seawall run` by the databases' user"),
    spread("root_us", "the same under `seawall run` by root; null where the benchmark is not root's"),
    spread("mount_us", "the same on a mount"),
    spread("unsafe_us", "the same on the bare file system with `synchronous=OFF`"),
    spread("fs_p99_us", "the 99th percentile on the bare file system"),
    spread("seawall_p99_us", "the same under `seawall run`"),
    spread("root_p99_us", "the same by root"),
    spread("mount_p99_us", "the same on a mount"),
    spread("unsafe_p99_us", "the same without syncs"),
    spread("seawall_of_fs", "`seawall_us` / `fs_us`: the median of the rounds' ratios, less is better"),
    spread("root_of_fs", "`root_us` / `fs_us`"),
    spread("mount_of_fs", "`mount_us` / `fs_us`"),
    spread("unsafe_of_fs", "`unsafe_us` / `fs_us`"),
];

/// The objects of `names`.
pub const NAMES: &[Key] = &[
    one(
        "files",
        "the file system: `ext4` with a journal or `xfs`, on a loop device, or `data`, the data's own",
    ),
    spread(
        "fs_ops_s",
        "new files a second on the bare file system, all of them synced, renamed and their directory synced",
    ),
    spread("seawall_ops_s", "the same under `seawall run --preset any`"),
    spread("block_ops_s", "the same with the log on the data's disk"),
    spread("unsafe_ops_s", "the same without any sync"),
    spread("control_ops_s", "that once more"),
    spread("fs_p50_us", "what one of them takes, µs, the median of a run"),
    spread("seawall_p50_us", "the same under Seawall"),
    spread("block_p50_us", "the same with the log on the disk"),
    spread("unsafe_p50_us", "the same without syncs"),
    spread("control_p50_us", "that once more"),
    spread("fs_p99_us", "the 99th percentile"),
    spread("seawall_p99_us", "the same under Seawall"),
    spread("block_p99_us", "the same with the log on the disk"),
    spread("unsafe_p99_us", "the same without syncs"),
    spread("control_p99_us", "that once more"),
    spread("speedup", "`seawall_ops_s` / `fs_ops_s`: the median of the rounds' ratios, as those below"),
    spread("block_speedup", "`block_ops_s` / `fs_ops_s`"),
    spread("of_unsafe", "`seawall_ops_s` / `unsafe_ops_s`"),
    spread("control", "`control_ops_s` / `unsafe_ops_s`"),
];

/// The objects of `definitions`.
pub const DEFINITIONS: &[Key] = &[
    one("database", "`postgres`: CREATE DATABASE and DROP DATABASE; `mariadb`: CREATE TABLE and DROP TABLE"),
    one("flush_ms", "how long the disk takes over a flush"),
    spread("fs_ms", "what both statements take on the bare file system, ms"),
    spread("seawall_ms", "the same under `seawall run --policy atomic`, with whole pages off"),
    spread("unsafe_ms", "the same under eatmydata, without any sync"),
    spread("control_ms", "that once more"),
    spread("speedup", "`fs_ms` / `seawall_ms`: the median of the rounds' ratios, as those below"),
    spread("of_unsafe", "`unsafe_ms` / `seawall_ms`"),
    spread("control", "`unsafe_ms` / `control_ms`"),
];

/// The objects of `disk`.
pub const DISK: &[Key] = &[
    one(
        "test",
        "`write_flush`: 4 KiB and a flush, one after the other; `four_guests`: the same by four guests with an image each; `random_read`: 4 KiB, 16 at once; `sequential_read`: 64 KiB, 8 at once",
    ),
    one("flush_ms", "how long the disk takes over a flush; 0: the data's disk, as long as that does"),
    spread("direct_ops_s", "requests a second, the image served by qemu-storage-daemon with cache=none"),
    spread("peer_ops_s", "the same by qemu-storage-daemon with cache=writeback"),
    spread("seawall_ops_s", "the same by `seawall disk`"),
    spread("block_ops_s", "the same by `seawall disk` with its log on the images' disk"),
    spread("unsafe_ops_s", "the same by qemu-storage-daemon with cache=unsafe: no flush reaches the disk"),
    spread("control_ops_s", "the same that once more"),
    spread(
        "direct_p50_us",
        "what one takes, µs, the median of a run, the image served by qemu-storage-daemon with cache=none",
    ),
    spread("peer_p50_us", "the same by qemu-storage-daemon with cache=writeback"),
    spread("seawall_p50_us", "the same by `seawall disk`"),
    spread("block_p50_us", "the same by `seawall disk` with its log on the images' disk"),
    spread("unsafe_p50_us", "the same by qemu-storage-daemon with cache=unsafe: no flush reaches the disk"),
    spread("control_p50_us", "the same that once more"),
    spread("direct_p99_us", "the 99th percentile, the image served by qemu-storage-daemon with cache=none"),
    spread("peer_p99_us", "the same by qemu-storage-daemon with cache=writeback"),
    spread("seawall_p99_us", "the same by `seawall disk`"),
    spread("block_p99_us", "the same by `seawall disk` with its log on the images' disk"),
    spread("unsafe_p99_us", "the same by qemu-storage-daemon with cache=unsafe: no flush reaches the disk"),
    spread("control_p99_us", "the same that once more"),
    spread("speedup", "`seawall_ops_s` / `direct_ops_s`: the median of the rounds' ratios, as those below"),
    spread("block_speedup", "`block_ops_s` / `direct_ops_s`"),
    spread("of_peer", "`seawall_ops_s` / `peer_ops_s`"),
    spread("of_unsafe", "`seawall_ops_s` / `unsafe_ops_s`"),
    spread("control", "`control_ops_s` / `unsafe_ops_s`"),
    spread("idle_percent", "what `seawall disk` takes of a processor while its guest does nothing, percent"),
];

/// The objects of `spill`.
pub const SPILL: &[Key] = &[
    BS,
    one("pool_mb", "size of both pools, MiB"),
    one("burst_mb", "what is committed, MiB, unless ten seconds are over before"),
    one("flush_ms", "how long the data's disk takes over a flush"),
    spread("fs_sync_ops_s", "commits a second on the bare file system"),
    spread("fs_sync_p999_us", "the 99.9th percentile of one commit, µs"),
    spread("fs_sync_longest_us", "the longest single commit there, µs"),
    spread("seawall_ops_s", "commits a second on a pool without an area"),
    spread("seawall_p999_us", "its 99.9th percentile"),
    spread("seawall_longest_us", "its longest"),
    spread("spill_ops_s", "commits a second on a pool with an area"),
    spread("spill_p999_us", "its 99.9th percentile"),
    spread("spill_longest_us", "its longest"),
    spread("fs_nosync_ops_s", "the same on the bare file system without any sync"),
    spread("fs_nosync_p999_us", "its 99.9th percentile"),
    spread("fs_nosync_longest_us", "its longest"),
    spread("of_seawall", "`spill_ops_s` / `seawall_ops_s`: the median of the rounds' ratios"),
    spread("of_unsafe", "`spill_ops_s` / `fs_nosync_ops_s`: the median of the rounds' ratios"),
    spread("spilled_mb", "MB that were copied to the area"),
];

/// The objects of `postgres`.
pub const POSTGRES: &[Key] = &[
    one("clients", "pgbench's `-c`"),
    one("test", "`simple-update` or `tpcb`, pgbench's built-in scripts"),
    spread("fs_tps", "transactions a second on the bare file system"),
    spread("seawall_tps", "the same under `seawall run`"),
    spread("fsync_off_tps", "the same on the bare file system with `fsync=off`"),
    spread("of_unsafe", "`seawall_tps` / `fsync_off_tps`: the median of the rounds' ratios"),
    CONTROL,
    SPEEDUP,
];

/// The objects of `sqlite`.
pub const SQLITE: &[Key] = &[
    one("journal", "SQLite's journal mode"),
    one("test", "`insert-update`: one of each in a transaction"),
    spread("fs_tps", "transactions a second on the bare file system, `synchronous=FULL`"),
    spread("seawall_tps", "the same under `seawall run`"),
    spread("sync_off_tps", "the same on the bare file system with `synchronous=OFF`"),
    spread("of_unsafe", "`seawall_tps` / `sync_off_tps`: the median of the rounds' ratios"),
    CONTROL,
    SPEEDUP,
];

const OF_UNSAFE: Key = spread("of_unsafe", "`seawall` / `unsafe`: the median of the rounds' ratios");
const CONTROL: Key = spread(
    "control",
    "the unsafe side once more / the unsafe side: what two equal servers differ by in this run",
);
const SEAWALL: Key = spread("seawall", "the same under `seawall run`");

/// The objects of `mariadb`.
pub const MARIADB: &[Key] = &[
    one("test", "`oltp_update_index` of sysbench"),
    one("threads", "its `--threads`"),
    spread("fs", "transactions a second on the bare file system, both settings 1"),
    SEAWALL,
    spread("unsafe", "the same on the bare file system, both settings 0"),
    OF_UNSAFE,
    CONTROL,
    SPEEDUP,
];

/// The objects of `mariadb_atomic`.
pub const MARIADB_ATOMIC: &[Key] = &[
    one("test", "`oltp_update_index` of sysbench"),
    one("threads", "its `--threads`"),
    spread(
        "fs",
        "transactions a second on the bare file system, both settings 1, with the doublewrite buffer",
    ),
    spread("seawall", "the same under `seawall run --policy atomic` with `innodb_doublewrite=OFF`"),
    spread("unsafe", "the same on the bare file system, both settings 0, with the doublewrite buffer"),
    OF_UNSAFE,
    SPEEDUP,
    spread("seawall_written_mb", "`Innodb_data_written` of one run with Seawall, in MB"),
    spread("unsafe_written_mb", "and on the unsafe side"),
    spread(
        "written_share",
        "`Innodb_data_written` of a transaction with Seawall / on the unsafe side: the median of the rounds' ratios",
    ),
    spread("disk_share", "the same of what the server's process wrote to the disk (`/proc/PID/io`)"),
];

/// The objects of `postgres_atomic`.
pub const POSTGRES_ATOMIC: &[Key] = &[
    one("clients", "pgbench's `-c`"),
    one("test", "`simple-update`, pgbench's built-in script"),
    spread("fs", "transactions a second on the bare file system, `full_page_writes=on`"),
    spread("seawall", "the same under `seawall run --policy atomic` with `full_page_writes=off`"),
    spread("unsafe", "the same on the bare file system with `fsync=off` and `full_page_writes=on`"),
    OF_UNSAFE,
    SPEEDUP,
    spread("seawall_wal_mb", "PostgreSQL's WAL of one run with Seawall, in MB"),
    spread("unsafe_wal_mb", "and on the unsafe side"),
    spread(
        "wal_share",
        "WAL of a transaction with Seawall / on the unsafe side: the median of the rounds' ratios",
    ),
];

/// The objects of `redis`.
pub const REDIS: &[Key] = &[
    one("clients", "redis-benchmark's `-c`"),
    one("pipeline", "its `-P`: requests a client sends before it waits"),
    spread("fs", "SETs a second on the bare file system, `appendfsync always`"),
    SEAWALL,
    spread("unsafe", "the same on the bare file system with `appendfsync no`"),
    OF_UNSAFE,
    CONTROL,
    SPEEDUP,
];

/// The objects of `rocksdb`.
pub const ROCKSDB: &[Key] = &[
    one("test", "`fillrandom` of db_bench"),
    one("threads", "its `--threads`"),
    spread("fs", "puts a second on the bare file system, `--sync=1`"),
    SEAWALL,
    spread("unsafe", "the same on the bare file system with `--sync=0`"),
    OF_UNSAFE,
    CONTROL,
    SPEEDUP,
];

/// The objects of `lmdb`.
pub const LMDB: &[Key] = &[
    one("test", "one put of 150 bytes a transaction, one transaction after another"),
    spread("fs", "commits a second on the bare file system"),
    SEAWALL,
    spread("unsafe", "the same on the bare file system with `MDB_NOSYNC`"),
    OF_UNSAFE,
    CONTROL,
    SPEEDUP,
];

/// The objects of `mount`.
pub const MOUNT: &[Key] = &[
    one(
        "what",
        "`write_fdatasync`, `cached_read`, `sequential_read`, `sequential_write`, `postgres` or `etcd_put`",
    ),
    one("shape", "of what size, by how many, in what kind of file"),
    one("unit", "of the four rates; higher is better in all of them"),
    spread("fs", "the rate on the bare file system"),
    spread("mount", "the same on the mount"),
    spread("preload", "the same under `seawall run`; null where that is not measured"),
    spread("unsafe", "the same on the bare file system without syncs; null where that is not measured"),
    spread("of_fs", "`mount` / `fs`: the median of the rounds' ratios"),
    spread("of_preload", "`mount` / `preload`: the median of the rounds' ratios"),
    spread("of_unsafe", "`mount` / `unsafe`: the median of the rounds' ratios"),
];

/// The object of `frozen`.
pub const FROZEN: &[Key] = &[
    one("writers", "programs that append and sync, each to a file of its own"),
    one("stopped", "of them are stopped in turn, and go on"),
    spread("fs_stall_us", "the longest write with its sync of the others in µs, on the bare file system"),
    spread("fs_ops_s", "writes of the others a second, all together"),
    spread("fs_late_us", "how late a thread that only sleeps woke at worst meanwhile, in µs"),
    spread(
        "seawall_stall_us",
        "the longest write with its sync of the others under `seawall run`, the log on a disk",
    ),
    spread("seawall_ops_s", "writes of the others a second"),
    spread("seawall_late_us", "how late that thread woke"),
    spread("seawall_calm_stall_us", "the same under `seawall run` while nobody is stopped"),
    spread("seawall_calm_ops_s", "writes of the same twelve a second"),
    spread("seawall_calm_late_us", "how late that thread woke"),
];

/// The object of `start`.
pub const START: &[Key] = &[
    one("pool_mb", "size of both logs, MiB"),
    spread(
        "bare_ms",
        "from the start of a command to its first moment, ms, of five starts the median: alone",
    ),
    spread("seawall_ms", "the same under `seawall run`, the log in memory"),
    spread("disk_ms", "the same, the log on a disk"),
    spread("seawall_of_bare", "`seawall_ms` / `bare_ms`: the median of the rounds' ratios"),
    spread("disk_of_bare", "`disk_ms` / `bare_ms`, likewise"),
    spread("disk_of_seawall", "`disk_ms` / `seawall_ms`, likewise"),
];

/// The objects of `capture`.
pub const CAPTURE: &[Key] = &[
    one("clients", "pgbench's `-c`"),
    one("test", "`simple-update`, pgbench's built-in script"),
    one("every_s", "seconds between two snapshots; activity is sampled every second"),
    spread("alone_tps", "transactions a second with `fsync=off`, nobody captures"),
    spread("captured_tps", "the same while `seawall snap --every` captures"),
    spread("of_alone", "`captured_tps` / `alone_tps`: the median of the rounds' ratios"),
    spread(
        "snapshot_cpu_ms",
        "CPU time of one snapshot and the samples before it in ms, the server's work for it not included",
    ),
    spread(
        "recorder_cpu_percent",
        "CPU time of `seawall snap` in percent of one processor, by the scheduler's count",
    ),
    spread("server_cpu_percent", "the same of its session in the server: what its questions cost there"),
];

/// The object of `cache`.
pub const CACHE: &[Key] = &[
    spread("page_cache_us", "reading 8 KiB from the page cache in µs, the median of a run"),
    spread("cache_us", "the same from the block cache, by a program that reads past the page cache"),
    spread("disk_us", "the same from this disk, past the page cache"),
    spread(
        "hit_share",
        "share of the bytes that the disk was not asked for, of a file that the cache holds as a whole",
    ),
    spread(
        "hit_share_after_restart",
        "the same of the first reads after daemon and program were started anew",
    ),
    spread(
        "uniform_none_s",
        "reads a second all over a file 11 times the cache's size, past the page cache, no block cache",
    ),
    spread("uniform_cache_s", "the same with the block cache"),
    spread("writes_none_s", "writes with fdatasync a second, 8 KiB at random, no block cache"),
    spread("writes_cache_s", "the same with the block cache"),
    spread(
        "over_page_cache",
        "`cache_us` / `page_cache_us`; this and those below: the median of the rounds' ratios",
    ),
    spread("disk_over_cache", "`disk_us` / `cache_us`"),
    spread("warm_after_restart", "`hit_share_after_restart` / `hit_share`"),
    spread("uniform_of_none", "`uniform_cache_s` / `uniform_none_s`"),
    spread("writes_of_none", "`writes_cache_s` / `writes_none_s`"),
];

/// The objects of `twin`.
pub const TWIN: &[Key] = &[
    one("clients", "redis-benchmark's `-c`"),
    one("pipeline", "its `-P`: requests a client sends before it waits"),
    spread("alone", "SETs a second under Seawall with `appendfsync always`"),
    spread("twin", "the same while a twin follows"),
    spread("of_alone", "`twin` / `alone`, the median of the rounds' ratios"),
    spread("twin_cpus", "processors that the twin and its supervisor used meanwhile"),
    spread("twin_memory_mb", "the twin's resident memory in MiB"),
];

/// The objects of `twin_restart`.
pub const TWIN_RESTART: &[Key] = &[
    one("data_mb", "memory that the server's data takes, in MB, about"),
    spread(
        "restart_ms",
        "from kill -9 to the first write that is answered, in ms, of a server that is started again at once",
    ),
    spread("twin_ms", "the same of a server that has a twin"),
    spread("speedup", "`restart_ms` / `twin_ms`, the median of the rounds' ratios"),
];

/// All sections by name.
pub const SECTIONS: [(&str, &[Key]); 26] = [
    ("write_fdatasync", WRITE),
    ("sustained", SUSTAINED),
    ("postgres", POSTGRES),
    ("postgres_atomic", POSTGRES_ATOMIC),
    ("sqlite", SQLITE),
    ("first_write", FIRST_WRITE),
    ("names", NAMES),
    ("definitions", DEFINITIONS),
    ("mariadb", MARIADB),
    ("mariadb_atomic", MARIADB_ATOMIC),
    ("redis", REDIS),
    ("rocksdb", ROCKSDB),
    ("lmdb", LMDB),
    ("mount", MOUNT),
    ("disk", DISK),
    ("block", BLOCK),
    ("block_databases", BLOCK_DATABASES),
    ("block_sustained", BLOCK_SUSTAINED),
    ("replicated", REPLICATED),
    ("frozen", FROZEN),
    ("spill", SPILL),
    ("start", START),
    ("cache", CACHE),
    ("capture", CAPTURE),
    ("twin", TWIN),
    ("twin_restart", TWIN_RESTART),
];

#[cfg(test)]
impl Key {
    /// As it stands in the file: with each side's name, with its extremes.
    pub fn expanded(&self) -> Vec<String> {
        let names = match self.name.contains(SIDE) {
            true => SIDES.map(|side| self.name.replace(SIDE, key(side))).to_vec(),
            false => vec![self.name.to_owned()],
        };
        let endings: &[&str] = if self.spread { &["", "_min", "_max"] } else { &[""] };
        names.iter().flat_map(|name| endings.iter().map(move |ending| format!("{name}{ending}"))).collect()
    }
}

/// The page's table of a section; `None` for an unknown one.
pub fn table(section: &str) -> Option<String> {
    let (_, keys) = SECTIONS.iter().find(|(name, _)| *name == section)?;
    let mut table = String::from("\n| key | |\n|---|---|\n");
    for key in *keys {
        let spread = if key.spread { " ±" } else { "" };
        table += &format!("| `{}`{spread} | {} |\n", key.name.replace(SIDE, "SIDE"), key.meaning);
    }
    Some(table + "\n")
}

/// The keys of an object as they must stand in the file, in no particular order.
#[cfg(test)]
pub fn all(keys: &[Key]) -> Vec<String> {
    keys.iter().flat_map(Key::expanded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_and_each_extreme_is_a_key() {
        let keys = all(WRITE);
        for key in
            ["bs", "seawall_us", "fs_sync_us_min", "fs_nosync_us_max", "eatmydata_longest_us", "speedup"]
        {
            assert!(keys.iter().any(|name| name == key), "{key}");
        }
    }
}
