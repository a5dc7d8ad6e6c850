//! The first root file system of the guest: busybox, the modules in the order they load, and the script that
//! goes on into the real one.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cpio::Archive;
use crate::packages::Packages;
use crate::tool;

const INIT: &str = include_str!("../guest/init");
/// What is needed as modules; built-in ones are not listed by depmod and are left out.
const MODULES: [&str; 21] = [
    "virtio_pci",
    "virtio_blk",
    "virtio_console",
    "virtio_net",
    "nfit",
    "nd_pmem",
    "dax_pmem",
    "ext4",
    "xfs",
    // Memory devices as memory, CXL, software RAID.
    "device_dax",
    "kmem",
    "cxl_acpi",
    "cxl_port",
    "cxl_pci",
    "cxl_mem",
    "cxl_pmem",
    "dax_cxl",
    "raid0",
    "raid1",
    "raid10",
    "btrfs",
];
/// The same, for a kernel that encrypts: TLS, and its ciphers.
const TLS: [&str; 6] = ["tls", "gcm", "ctr", "ghash_generic", "aesni_intel", "chacha20poly1305"];

/// The archive, without what changes from boot to boot.
///
/// # Errors
/// If a file of the packages is missing.
pub fn build(packages: &Packages) -> Result<Vec<u8>> {
    let busybox = packages.file("bin/busybox");
    let mut archive = Archive::default();
    for dir in ["bin", "dev", "proc", "root", "modules"] {
        archive.directory(dir);
    }
    archive.device("dev/console", 5, 1);
    archive.file("init", INIT.as_bytes());
    archive.file("bin/busybox", &read(&busybox)?);
    let mut order = String::new();
    for module in modules(packages, &busybox)? {
        let name = format!("{order_len:03}.ko", order_len = order.lines().count());
        archive.file(&format!("modules/{name}"), &content(&module)?);
        order += &format!("{name}\n");
    }
    archive.file("modules/order", order.as_bytes());
    Ok(archive.finish())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

/// Modules with all they need, each after what it needs.
fn modules(packages: &Packages, busybox: &Path) -> Result<Vec<std::path::PathBuf>> {
    tool::run(Command::new(busybox).arg("depmod").arg("-b").arg(&packages.tree).arg(&packages.kernel))?;
    let base = packages.file("lib/modules").join(&packages.kernel);
    let table = std::fs::read_to_string(base.join("modules.dep")).context("depmod made no table")?;
    let needs: HashMap<&str, Vec<&str>> = table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(module, needs)| (module, needs.split_whitespace().collect()))
        .collect();
    let (mut done, mut order) = (BTreeSet::new(), Vec::new());
    for name in MODULES.into_iter().chain(TLS) {
        let mut names = needs.keys().filter(|path| module_name(path) == name);
        if let Some(path) = names.next() {
            add(path, &needs, &mut done, &mut order);
        }
    }
    Ok(order.iter().map(|path| base.join(path)).collect())
}

fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

fn add<'a>(
    module: &'a str,
    needs: &HashMap<&'a str, Vec<&'a str>>,
    done: &mut BTreeSet<&'a str>,
    order: &mut Vec<&'a str>,
) {
    if !done.insert(module) {
        return;
    }
    needs.get(module).into_iter().flatten().for_each(|need| add(need, needs, done, order));
    order.push(module);
}

/// A module as the kernel takes it: some releases compress them.
fn content(module: &Path) -> Result<Vec<u8>> {
    if module.extension().is_some_and(|e| e == "xz") {
        return Ok(tool::run(Command::new("xz").arg("-dc").arg(module))?.stdout);
    }
    read(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_after_what_it_needs_and_only_once() {
        let needs = HashMap::from([("a", vec!["b", "c"]), ("b", vec!["c"]), ("c", vec![])]);
        let (mut done, mut order) = (BTreeSet::new(), Vec::new());
        add("a", &needs, &mut done, &mut order);
        add("b", &needs, &mut done, &mut order);
        assert_eq!(order, ["c", "b", "a"]);
    }

    #[test]
    fn modules_are_known_by_either_spelling() {
        assert_eq!(module_name("kernel/drivers/x/nd_pmem.ko"), "nd_pmem");
        assert_eq!(module_name("kernel/drivers/x/dm-log.ko.xz"), "dm_log");
    }
}
