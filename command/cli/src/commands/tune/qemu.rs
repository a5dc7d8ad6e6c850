//! `seawall tune qemu`: how a virtual machine gets what its databases commit by. Persistent memory of its own, for a Seawall in
//! the guest (the source's vPMEM), or a disk whose flushes wait for this host's log (`seawall disk`), for any guest.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags};
use seawall_media::{Medium, probe};
use serde_json::json;

use crate::{show, size};

/// What the guest's namespaces are aligned to: a device whose size without its label is no multiple has none.
const ALIGNED: u64 = 16 << 20;
/// Bytes of the label, in which the guest keeps its namespaces.
const LABEL: u64 = 2 << 20;

/// The virtual machine.
#[derive(clap::Args)]
pub struct Wanted {
    /// For qemu: the file that backs the guest's persistent memory, or a directory for it
    #[arg(long, value_name = "PATH")]
    backing: Option<PathBuf>,
    /// For qemu: how much persistent memory the guest gets
    #[arg(long, value_parser = size::parse, default_value = "1G")]
    size: u64,
    /// For qemu: how much other memory it gets
    #[arg(long, value_parser = size::parse, default_value = "4G")]
    memory: u64,
}

/// What backs it, and what that survives.
struct Backing {
    path: PathBuf,
    medium: Medium,
    because: String,
}

/// Prints options, and what to do in the guest.
///
/// # Errors
/// The backing cannot be looked at.
pub fn tune(wanted: &Wanted, as_json: bool) -> Result<()> {
    let backing = wanted.backing.as_deref().map(look).transpose()?;
    let pmem = backing.as_ref().map(|backing| pmem(backing, wanted));
    let disk = disk(wanted.memory);
    if as_json {
        let survives = backing.as_ref().map(|backing| backing.medium == Medium::Pmem);
        return show::json(&json!({
            "persistent_memory": pmem, "survives_power_loss": survives,
            "because": backing.as_ref().map(|backing| &backing.because), "disk": disk,
        }));
    }
    match (&backing, &pmem) {
        (Some(backing), Some(options)) => tell_pmem(backing, options, wanted),
        _ => outln!(
            "Persistent memory in the guest, for its own Seawall: `seawall tune qemu --backing PATH` prints the options, for a \
             file on a DAX mount of this host\n"
        ),
    }
    outln!("A disk, for any guest, with nothing installed in it (docs/admin/VIRTUAL_DISK.md)");
    outln!("  seawall disk IMAGE.img --create SIZE --socket SOCKET");
    disk.iter().for_each(|option| outln!("  {option}"));
    outln!("\nNothing was changed.");
    Ok(())
}

fn tell_pmem(backing: &Backing, options: &[String], wanted: &Wanted) {
    show::facts(&[
        ("backing", format!("{}, {}", backing.path.display(), backing.medium.label())),
        ("because", backing.because.clone()),
    ]);
    outln!("\nPersistent memory in the guest, for its own Seawall");
    options.iter().for_each(|option| outln!("  {option}"));
    outln!("\nIn the guest");
    for line in [
        "ndctl create-namespace --force --reconfig=namespace0.0 --mode=fsdax",
        "mkfs.ext4 -b 4096 -E stride=512,stripe_width=512 /dev/pmem0",
        "mount -o dax=always /dev/pmem0 /pmem",
        "seawall run -- postgres -D …        # takes the DAX mount by itself, and says so",
    ] {
        outln!("  {line}");
    }
    outln!("\nWhat must be true");
    if backing.medium != Medium::Pmem {
        outln!(
            "  1. This is RAM of this host. The guest takes it for persistent memory, and its Seawall says \
             so: a commit there survives the guest's crash, NOT a crash or power cut of this host. Use it \
             only for tests; for data take a file on a DAX mount, or the disk below"
        );
    } else {
        outln!(
            "  1. QEMU has libpmem (it refuses pmem=on without it): otherwise it would not flush what live \
             migration copies"
        );
    }
    outln!(
        "  2. {} without the label ({}) is a multiple of {}: with another size the guest has no namespace (\"misaligned\")",
        mib(pmem_bytes(wanted.size)),
        size::human(LABEL),
        size::human(ALIGNED)
    );
    outln!(
        "  3. The guest's file system is mounted with dax=always. On a namespace without DAX, XFS mounts \
         without a warning:"
    );
    outln!("     `seawall init` refuses it then (MAP_SYNC)");
    outln!(
        "  4. Snapshots of the machine do not contain this memory: run `seawall freeze` in the guest first\n"
    );
}

/// How large the file is: whole blocks of the guest's, and the label.
fn pmem_bytes(wanted: u64) -> u64 {
    wanted.max(1).next_multiple_of(ALIGNED) + LABEL
}

fn pmem(backing: &Backing, wanted: &Wanted) -> Vec<String> {
    let (file, bytes) = (backing.path.display(), mib(pmem_bytes(wanted.size)));
    // A flush to the memory controller makes data durable, in the words that the guest's kernel has for it.
    let durable = backing.medium == Medium::Pmem;
    let pmem = if durable { "on" } else { "off" };
    let most = mib(wanted.memory + pmem_bytes(wanted.size).next_multiple_of(1 << 30) + (1 << 30));
    vec![
        "-machine q35,nvdimm=on,nvdimm-persistence=mem-ctrl".into(),
        format!("-m {},slots=2,maxmem={most}", mib(wanted.memory)),
        format!(
            "-object memory-backend-file,id=pm,share=on,mem-path={file},size={bytes},align=2M,pmem={pmem}"
        ),
        "-device nvdimm,id=nv,memdev=pm,label-size=2M".into(),
    ]
}

/// A disk needs memory that another process may share.
fn disk(memory: u64) -> Vec<String> {
    vec![
        format!("-object memory-backend-memfd,id=m,size={},share=on -numa node,memdev=m", mib(memory)),
        "-chardev socket,id=c,path=SOCKET,reconnect=1 -device vhost-user-blk-pci,chardev=c,num-queues=4"
            .into(),
    ]
}

fn mib(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

/// Looks at the file, or at what one in its place would be.
fn look(path: &Path) -> Result<Backing> {
    let shown = || path.display().to_string();
    let (file, path) = match std::fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() >= 4096 => {
            (File::open(path).with_context(shown)?, path.into())
        }
        Ok(found) if found.is_dir() => (unnamed(path).with_context(shown)?, path.join("guest.pmem")),
        _ => {
            let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            (unnamed(parent).with_context(|| parent.display().to_string())?, path.to_owned())
        }
    };
    let found = probe(&file).with_context(shown)?;
    Ok(Backing { path, medium: found.medium, because: found.because })
}

/// A page of a file that nobody sees.
fn unnamed(dir: &Path) -> Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR)?);
    file.set_len(4096)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_has_a_namespace_in_any_size_that_is_advised() {
        for wanted in [1, 16 << 20, (16 << 20) + 1, 1 << 30, 3_000_000_000] {
            let bytes = pmem_bytes(wanted);
            assert!(bytes >= wanted && (bytes - LABEL).is_multiple_of(ALIGNED), "{wanted}: {bytes}");
            assert!(bytes.is_multiple_of(2 << 20), "aligned as QEMU maps it");
        }
        assert_eq!(mib(pmem_bytes(1 << 30)), "1026M");
    }

    #[test]
    fn a_file_in_memory_is_called_so() {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        for path in [dir.path().to_owned(), dir.path().join("not-there.pmem")] {
            let backing = look(&path).expect("looked at");
            assert_eq!(backing.medium, Medium::Emulated, "{}", backing.because);
            let wanted = Wanted { backing: None, size: 1 << 30, memory: 4 << 30 };
            let options = pmem(&backing, &wanted).join(" ");
            assert!(options.contains("size=1026M") && options.contains("pmem=off"), "{options}");
            assert!(options.contains("-m 4096M,slots=2,maxmem=7168M"), "{options}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 0, "nothing is left");
        look(Path::new("/nowhere/x")).map(drop).expect_err("no such directory");
    }
}
