//! PostgreSQL's settings that undo durability, or hide damage.

use crate::database::{COMMAND_LINE, Database, Engine, Setting};
use crate::finding::{Finding, Sure};
use crate::view::View;

const READ: &str =
    "read from the file; the server may not have read it again yet, or a session may have another value";
const RELOAD: &str = "SELECT pg_reload_conf()";

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let Some(found) = view.database(Engine::Postgres) else { return Vec::new() };
    let atomic = view.data().and_then(|place| place.stack.last()?.atomic);
    [
        fsync(found),
        full_pages(found, atomic).map(|finding| finding.harmless_if(view.copies_on_write())),
        commit(found),
        retry(found),
        damage(found),
        checksums(found),
        sync_method(found),
        huge_pages(found, view),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The remedy for a setting depends on where it stands: ALTER SYSTEM has the last word over files, and none over the
/// command line.
fn mend(name: &str, value: &str, set: &Setting) -> String {
    match set.place.as_str() {
        COMMAND_LINE => {
            format!("# take {name} out of the command or the unit that starts the server, and restart it")
        }
        place if place.contains("postgresql.auto.conf") => format!("ALTER SYSTEM RESET {name}"),
        _ => format!("ALTER SYSTEM SET {name} = {value}"),
    }
}

fn fsync(found: &Database) -> Option<Finding> {
    let set = found.settings.off("fsync")?;
    Some(
        Finding::durability("fsync-off", &set.place)
            .what(format!("PostgreSQL runs with fsync = {}", set.value))
            .why(
                "The server never waits for a disk. After a power cut or a crash of the kernel the whole cluster may be damaged \
                 beyond repair, not only short of its last commits",
            )
            .sure(Sure::High, READ)
            .type_in(mend("fsync", "on", set))
            .type_in(RELOAD)
            .type_in(
                "initdb --sync-only -D PGDATA      # data that was written until now may be only in memory"),
    )
}

fn full_pages(found: &Database, atomic: Option<u64>) -> Option<Finding> {
    let set = found.settings.off("full_page_writes")?;
    let device = match atomic {
        Some(bytes) if bytes >= found.page => {
            "The device can write a page whole, but PostgreSQL does not ask it to (RWF_ATOMIC)"
        }
        _ => "The device does not promise that a write of 8 KiB is made as a whole or not at all",
    };
    Some(
        Finding::durability("full-page-writes-off", &set.place)
            .what(format!("PostgreSQL runs with full_page_writes = {}", set.value))
            .why(format!("A power cut can leave half of a page, which no redo record repairs. {device}"))
            .sure(
                Sure::Medium,
                "a copy-on-write file system with records of 8 KiB or more, or Seawall's policy atomic, \
                 keeps pages whole; whether the server always runs on one is not visible from here",
            )
            .type_in(mend("full_page_writes", "on", set))
            .type_in(RELOAD)
            .type_in("CHECKPOINT"),
    )
}

fn commit(found: &Database) -> Option<Finding> {
    let settings = &found.settings;
    let remote = settings.is("synchronous_commit", "remote_write");
    let set = settings.off("synchronous_commit").or(remote)?;
    let why = match remote {
        Some(_) => {
            "A standby acknowledges before its disk has the commit: a power cut of both hosts loses it"
        }
        None => {
            "A commit is acknowledged before it is on disk: a crash loses the last ones, up to three times wal_writer_delay. \
             The cluster stays consistent"
        }
    };
    Some(
        Finding::durability("synchronous-commit-off", &set.place)
            .what(format!("PostgreSQL runs with synchronous_commit = {}", set.value))
            .why(why)
            .sure(Sure::High, READ)
            .type_in(mend("synchronous_commit", "on", set))
            .type_in(RELOAD),
    )
}

fn retry(found: &Database) -> Option<Finding> {
    let set = found.settings.on("data_sync_retry")?;
    Some(
        Finding::durability("data-sync-retry-on", &set.place)
            .what("PostgreSQL repeats an fsync that failed (data_sync_retry = on)")
            .why("Linux drops the pages whose write failed, so the second fsync succeeds without them: the data is lost in silence")
            .sure(Sure::High, READ)
            .type_in(mend("data_sync_retry", "off", set))
            .type_in("pg_ctl restart"),
    )
}

fn damage(found: &Database) -> Option<Finding> {
    let names = ["zero_damaged_pages", "ignore_checksum_failure"];
    let (name, set) = names.iter().find_map(|name| Some((name, found.settings.on(name)?)))?;
    Some(
        Finding::durability("damage-is-ignored", &set.place)
            .what(format!("PostgreSQL runs with {name} = on"))
            .why(
                "The server goes on with damaged pages: their content is dropped or taken as correct, and \
                 the next write makes that final",
            )
            .sure(Sure::High, READ)
            .type_in(mend(name, "off", set))
            .type_in(RELOAD),
    )
}

/// All of Linux's methods are durable; two also write what recovery does not need.
fn sync_method(found: &Database) -> Option<Finding> {
    let set = found
        .settings
        .get("wal_sync_method")
        .filter(|set| matches!(set.value.as_str(), "fsync" | "open_sync"))?;
    Some(
        Finding::speed("wal-sync-method", &set.place)
            .what(format!("PostgreSQL runs with wal_sync_method = {}", set.value))
            .why(
                "Each commit also writes the segment's times into the file system's journal; fdatasync and \
                 open_datasync do not write them",
            )
            .sure(Sure::Medium, "how much it costs depends on the file system")
            .type_in(mend("wal_sync_method", "fdatasync", set))
            .type_in(RELOAD)
            .type_in("pg_test_fsync -f FILE      # on the log's file system: which one is fastest"),
    )
}

fn checksums(found: &Database) -> Option<Finding> {
    (found.checksums == Some(false)).then(|| {
        Finding::information("data-checksums-off", "global/pg_control")
            .what("The cluster has no data checksums")
            .why(
                "A page that a device changed or tore is taken as correct, copied into backups, and found by \
                 chance",
            )
            .sure(Sure::High, "the control file says so")
            .type_in("pg_checksums --enable -D PGDATA      # with the server stopped")
    })
}

/// From this much on the page table of each session costs what large pages would save.
const LARGE: u64 = 8 << 30;

fn huge_pages(found: &Database, view: &View<'_>) -> Option<Finding> {
    let buffers = found.settings.get("shared_buffers")?;
    let bytes = bytes(&buffers.value).filter(|bytes| *bytes >= LARGE)?;
    let memory = &view.machine.memory;
    let page = memory.huge_page.max(1);
    (memory.huge < bytes).then(|| {
        Finding::speed("huge-pages-missing", &buffers.place)
            .what(format!("shared_buffers = {}, and the machine reserves {} MiB of huge pages", buffers.value, memory.huge >> 20))
            .why("Every session maps the buffers in pages of 4 KiB: page tables take memory, and lookups take time")
            .sure(Sure::Medium, "huge_pages = try falls back without a warning")
            .type_in(format!("sysctl -w vm.nr_hugepages={}", bytes.div_ceil(page) * 105 / 100))
    })
}

/// `8GB`, `512MB`, `16384` (pages)
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic() || c == ' ');
    let unit = match text[digits.len()..].trim() {
        "" => 8192,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_have_the_servers_units() {
        assert_eq!(super::bytes("16GB"), Some(16 << 30));
        assert_eq!(super::bytes("1048576"), Some(8 << 30));
        assert_eq!(super::bytes("x"), None);
    }
}
