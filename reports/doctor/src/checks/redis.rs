//! Redis's and Valkey's settings that undo durability, and the memory they run in.

use crate::database::{Database, Engine};
use crate::finding::{Finding, Sure};
use crate::view::View;

const READ: &str = "read from the configuration; CONFIG SET may have changed it";

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let Some(found) =
        view.database(Engine::Redis).filter(|found| found.settings.get("dir").is_some() || known(found))
    else {
        return Vec::new();
    };
    let memory = &view.machine.memory;
    let large = memory.transparent.as_deref() == Some("always");
    let refused = memory.overcommit == Some(0);
    let machine = [large.then(large_pages), refused.then(overcommit)];
    [append_only(found), rewrite(found)].into_iter().chain(machine).flatten().collect()
}

fn known(found: &Database) -> bool {
    ["appendonly", "save", "port"].iter().any(|name| found.settings.get(name).is_some())
}

fn append_only(found: &Database) -> Option<Finding> {
    let settings = &found.settings;
    let Some(on) = settings.on("appendonly") else {
        let place = settings.get("appendonly").map_or("appendonly is not set", |set| set.place.as_str());
        return Some(
            Finding::durability("append-only-off", place)
                .what("Redis runs without its append-only file")
                .why("Only snapshots are on disk: a crash loses every write since the last one")
                .sure(Sure::High, READ)
                .type_in("redis-cli CONFIG SET appendonly yes")
                .type_in("redis-cli CONFIG REWRITE"),
        );
    };
    let why = match settings.value("appendfsync").unwrap_or("everysec") {
        "always" => return None,
        "no" => {
            "Redis never waits for the disk: a power cut loses everything that the kernel had not yet \
             written by itself, some 30 s"
        }
        _ => {
            "A write is acknowledged up to a second before it is on disk, or two seconds if the disk is \
             slow: a power cut loses the writes of that time"
        }
    };
    let set = settings.get("appendfsync");
    Some(
        Finding::durability("append-only-not-flushed", set.map_or(&on.place, |set| &set.place))
            .what(format!(
                "Redis runs with appendfsync {}",
                set.map_or("everysec, its default", |set| &set.value)
            ))
            .why(why)
            .sure(Sure::High, READ)
            .type_in("redis-cli CONFIG SET appendfsync always")
            .type_in("redis-cli CONFIG REWRITE"),
    )
}

fn rewrite(found: &Database) -> Option<Finding> {
    let set = found.settings.on("no_appendfsync_on_rewrite")?;
    Some(
        Finding::durability("no-flush-while-rewriting", &set.place)
            .what("Redis does not flush while it rewrites its append-only file (no-appendfsync-on-rewrite yes)")
            .why("During a rewrite, which takes minutes with much data, a power cut loses everything since it began")
            .sure(Sure::High, READ)
            .type_in("redis-cli CONFIG SET no-appendfsync-on-rewrite no"),
    )
}

fn large_pages() -> Finding {
    Finding::speed("transparent-huge-pages", "/sys/kernel/mm/transparent_hugepage/enabled")
        .what("The kernel gives every program large pages without being asked (always)")
        .why("After the fork of a save or a rewrite each write copies 2 MiB instead of 4 KiB: latency and memory rise")
        .sure(Sure::Medium, "Redis switches them off for itself where its option disable-thp is on")
        .type_in("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
}

fn overcommit() -> Finding {
    Finding::durability("save-may-fail", "vm.overcommit_memory")
        .what("vm.overcommit_memory = 0")
        .why("The fork of a save or a rewrite can be refused for want of memory that it would not use: snapshots stop")
        .sure(Sure::Medium, "it depends on how much memory the data takes")
        .type_in("sysctl -w vm.overcommit_memory=1")
}
