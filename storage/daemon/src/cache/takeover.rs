//! The zone of a former daemon whose fronts live.
//!
//! Nobody watched for strangers since it died, and nothing was served: the kernel saw to that. Each file is compared
//! with what was noted last. One that changed since, by a stranger or by one of ours, loses its blocks; one that is not
//! found in its directory is not served until somebody asks for it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use seawall_cache::shared::Tenant;

use super::enter::adopt;
use super::identity;
use super::zone::Zone;
use crate::state::Daemon;

/// Opens the files again that a former daemon had entered. Not before the thread that answers opens is about to run:
/// ours wait for it too.
pub(super) fn find_files(daemon: &Daemon, zone: &Zone) {
    let mut missing: Vec<Tenant> = zone.cache.tenants().collect();
    let all = missing.len();
    if all == 0 {
        return;
    }
    for root in daemon.roots.all().into_values() {
        search(daemon, zone, &root.data, &mut missing);
        search(daemon, zone, &root.path, &mut missing);
    }
    daemon.log.say(format!("took over the block cache; {all} files, {} of them not found", missing.len()));
}

fn search(daemon: &Daemon, zone: &Zone, dir: &Path, missing: &mut Vec<Tenant>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if missing.is_empty() {
            return;
        }
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            search(daemon, zone, &entry.path(), missing);
        } else if kind.is_file() {
            let Ok(stat) = entry.metadata() else { continue };
            let is_it = |tenant: &Tenant| {
                tenant.record.dev == stat.dev() && tenant.record.identity.inode == stat.ino()
            };
            if let Some(i) = missing.iter().position(is_it)
                && found(daemon, zone, &entry.path(), &missing[i])
            {
                missing.swap_remove(i);
            }
        }
    }
}

fn found(daemon: &Daemon, zone: &Zone, path: &Path, tenant: &Tenant) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let open = std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let Ok(file) = open else { return false };
    let Ok(stat) = rustix::fs::fstat(&file) else { return false };
    let _alone = zone.entering.take();
    if zone.watches(stat.st_dev, stat.st_ino) {
        // Somebody has asked for it already.
        return true;
    }
    let Some(entered) = adopt(daemon, &file, &stat, tenant.file) else { return false };
    let Some(now) = identity::now(&file).filter(|now| tenant.record.is(now)) else { return false };
    zone.resume(tenant.file, &now);
    zone.insert(entered);
    true
}
