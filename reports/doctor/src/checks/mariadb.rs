//! MariaDB's and MySQL's settings that undo durability.

use crate::database::{Database, Engine};
use crate::finding::{Finding, Sure};
use crate::view::View;

const READ: &str = "read from the option files; the server may have been started with other options, or SET \
                    GLOBAL may have changed them";

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let Some(found) = view.database(Engine::Mariadb) else { return Vec::new() };
    let atomic = view.data().and_then(|place| place.stack.last()?.atomic);
    [
        redo(found),
        binary_log(found),
        doublewrite(found, atomic).map(|finding| finding.harmless_if(view.copies_on_write())),
        method(found),
        checksums(found),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// SET GLOBAL lasts until the next start.
fn in_file(place: &str) -> String {
    format!("# and the same in {place}, for the next start")
}

fn redo(found: &Database) -> Option<Finding> {
    let set = found.settings.get("innodb_flush_log_at_trx_commit")?;
    let why = match set.value.as_str() {
        "0" => {
            "A commit is only in the server's memory: a crash of the server alone loses up to a second of commits"
        }
        "2" => {
            "A commit is only in the page cache: a power cut or a crash of the kernel loses up to a second of commits"
        }
        _ => return None,
    };
    Some(
        Finding::durability("redo-not-flushed", &set.place)
            .what(format!("The server runs with innodb_flush_log_at_trx_commit = {}", set.value))
            .why(why)
            .sure(Sure::High, READ)
            .type_in("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
            .type_in(in_file(&set.place)),
    )
}

/// MariaDB's default is 0, MySQL's is 1: unless it is set nobody knows which one this is.
fn binary_log(found: &Database) -> Option<Finding> {
    let log = found.settings.get("log_bin").filter(|_| found.settings.off("log_bin").is_none())?;
    let set = found.settings.get("sync_binlog");
    let (place, is, sure) = match set {
        Some(set) if set.value == "1" => return None,
        Some(set) => (&set.place, set.value.as_str(), Sure::High),
        None => (&log.place, "0, MariaDB's default", Sure::Medium),
    };
    Some(
        Finding::durability("binlog-not-flushed", place)
            .what(format!("The binary log is written with sync_binlog = {is}"))
            .why(
                "After a power cut the binary log lacks transactions that the tables or the replicas have: replication diverges, \
                 and point-in-time recovery has a gap",
            )
            .sure(sure, if sure == Sure::High { READ } else { "it is not set; MySQL's default is 1" })
            .type_in("SET GLOBAL sync_binlog = 1")
            .type_in(in_file(place)),
    )
}

fn doublewrite(found: &Database, atomic: Option<u64>) -> Option<Finding> {
    let set = found.settings.off("innodb_doublewrite")?;
    let device = match atomic {
        Some(bytes) if bytes >= found.page => {
            format!(
                "The device can write {bytes} bytes whole, if the server asks for it (RWF_ATOMIC), or sends one aligned request"
            )
        }
        _ => format!(
            "The device does not promise that a write of {} bytes is made as a whole or not at all",
            found.page
        ),
    };
    Some(
        Finding::durability("doublewrite-off", &set.place)
            .what("InnoDB runs without its doublewrite buffer")
            .why(format!(
                "A power cut can leave half of a page, which the redo log does not repair. {device}"
            ))
            .sure(
                Sure::Medium,
                "a copy-on-write file system with large records, or Seawall's policy atomic, keeps pages \
                 whole; whether the server always runs on one is not visible from here",
            )
            .type_in(format!("# take it out of {}, and restart the server", set.place)),
    )
}

fn method(found: &Database) -> Option<Finding> {
    let set = found.settings.get("innodb_flush_method")?;
    let why = match set.value.to_ascii_lowercase().as_str() {
        "nosync" => "InnoDB never waits for a disk: a power cut may damage every table",
        "littlesync" => "InnoDB flushes the log only: a power cut may damage tables",
        "o_direct_no_fsync" => {
            "Direct writes are not followed by a flush: data in a volatile cache of the device, and a file's \
             new length, may be missing after a power cut"
        }
        _ => return None,
    };
    Some(
        Finding::durability("flush-method-skips-fsync", &set.place)
            .what(format!("InnoDB runs with innodb_flush_method = {}", set.value))
            .why(why)
            .sure(Sure::High, READ)
            .type_in("innodb_flush_method = O_DIRECT         # in the option file, and a restart"),
    )
}

fn checksums(found: &Database) -> Option<Finding> {
    let set = found.settings.is("innodb_checksum_algorithm", "none")?;
    Some(
        Finding::information("innodb-checksums-off", &set.place)
            .what("InnoDB writes pages without checksums")
            .why("A page that a device changed or tore is taken as correct")
            .sure(Sure::High, READ)
            .type_in("SET GLOBAL innodb_checksum_algorithm = full_crc32")
            .type_in(in_file(&set.place)),
    )
}
