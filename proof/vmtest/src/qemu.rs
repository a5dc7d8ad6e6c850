//! QEMU's command line for one boot.
//!
//! In: what the machine shall be like. Out: a command that, once started, never outlives this process.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use serde_json::{Value, json};

use crate::boot::{Boot, Data};
use crate::hardware::Hardware;
use crate::network;

/// Of disks of [`seawall_faulty_disk::nbd`].
const SECTOR_BYTES: u32 = 4096;
/// Where a disk can be plugged in while a machine of several runs.
pub const SLOT: &str = "free-slot";

/// The command. Ports write to files beside `base`, ledgers behind what is there; `disk` and `orders` are names of sockets.
///
/// # Errors
/// If QEMU is not installed, or a file cannot be made.
pub fn command(boot: &Boot<'_>, base: &Path, initrd: &Path, disk: &str, orders: &str) -> Result<Command> {
    let mut qemu = boot.parts.qemu()?;
    processor(&mut qemu, boot);
    memory(&mut qemu, &boot.hardware);
    kernel(&mut qemu, boot, initrd);
    let console = base.with_extension("console");
    qemu.arg("-serial").arg(format!("file:{}", console.display()));
    if let Some(image) = &boot.pmem {
        persistent_memory(&mut qemu, image, &boot.hardware)?;
    }
    root_disk(&mut qemu, &boot.parts.rootfs());
    data_disk(&mut qemu, &boot.data, disk);
    qemu.args(["-device", "virtio-serial-pci,bus=pcie.0,addr=0x6"]);
    port_to_file(&mut qemu, base, "results", "");
    boot.ports.iter().for_each(|ledger| port_to_file(&mut qemu, base, ledger, ",append=on"));
    qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(base.with_extension("qemu"))?);
    if let Some((number, cable)) = &boot.network {
        one_of_several(&mut qemu, *number, cable, orders);
    }
    ends_with_us(&mut qemu, libc::SIGKILL);
    Ok(qemu)
}

fn processor(qemu: &mut Command, boot: &Boot<'_>) {
    // cx16 off: this QEMU's page tables and later kernels disagree with it on.
    let cpu = format!("{},-cx16{}", boot.cpu, boot.hardware.processor());
    let machine = format!("q35,nvdimm=on{}", boot.hardware.machine());
    qemu.args(["-machine", &machine, "-accel", "tcg,thread=multi", "-cpu", &cpu]);
    qemu.args(["-smp", "2", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
}

/// Whoever serves a disk reads and writes it.
fn memory(qemu: &mut Command, hardware: &Hardware) {
    qemu.args(["-object", "memory-backend-memfd,id=ram,size=1G,share=on"]);
    hardware.add(qemu);
}

fn kernel(qemu: &mut Command, boot: &Boot<'_>, initrd: &Path) {
    qemu.arg("-kernel").arg(boot.parts.vmlinuz()).arg("-initrd").arg(initrd);
    let options: Vec<_> =
        boot.options.iter().map(|(name, value)| format!("seawall.{name}={value}")).collect();
    // A busy host spoils the guest's measurement of its TSC, and its clock then runs ahead: the next boot comes
    // before what the last one wrote, which recovery refuses (assumption 6 of the failure model).
    let clock = "clocksource=acpi_pm";
    let kernel =
        format!("console=ttyS0 panic=-1 quiet no_timer_check ipv6.disable=1 {clock} {}", options.join(" "));
    qemu.args(["-append", &kernel]);
}

fn persistent_memory(qemu: &mut Command, image: &Path, hardware: &Hardware) -> Result<()> {
    let bytes = std::fs::metadata(image)?.len();
    let memory = format!(
        "memory-backend-file,id=pm,share=on,mem-path={},size={bytes},align=2M,pmem=off",
        image.display()
    );
    let module = format!("nvdimm,id=nv,memdev=pm,label-size=2M{}", hardware.module());
    qemu.args(["-object", &memory, "-device", &module]);
    Ok(())
}

fn root_disk(qemu: &mut Command, image: &Path) {
    qemu.args(["-drive", &format!("if=none,id=root,format=raw,readonly=on,file={}", image.display())]);
    qemu.args(["-device", "virtio-blk-pci,drive=root,bus=pcie.0,addr=0x4"]);
}

fn data_disk(qemu: &mut Command, data: &Data, socket: &str) {
    let device = match data {
        Data::Lossy { .. } => {
            qemu.arg("-blockdev").arg(disk_node("own", socket).to_string());
            let mut device = disk_device("own");
            device["bus"] = json!("pcie.0");
            device["addr"] = json!("0x5");
            device.to_string()
        }
        Data::File { image, cache } => {
            let drive = format!("if=none,id=own,format=raw,cache={cache},file={}", image.display());
            qemu.arg("-drive").arg(drive);
            "virtio-blk-pci,drive=own,bus=pcie.0,addr=0x5".to_owned()
        }
        Data::Served { socket } => {
            let server = format!("socket,id=own,path={},reconnect=1", socket.display());
            qemu.arg("-chardev").arg(server);
            "vhost-user-blk-pci,chardev=own,num-queues=2,bus=pcie.0,addr=0x5".to_owned()
        }
    };
    qemu.arg("-device").arg(device);
}

/// A disk of [`seawall_faulty_disk::nbd`], as QEMU reaches it.
pub fn disk_node(name: &str, socket: &str) -> Value {
    let server = json!({ "type": "unix", "path": socket, "abstract": true });
    json!({ "driver": "nbd", "node-name": name, "server": server })
}

/// The same, as the guest sees it.
pub fn disk_device(name: &str) -> Value {
    json!({
        "driver": "virtio-blk-pci", "id": format!("{name}-disk"), "drive": name,
        "logical_block_size": SECTOR_BYTES, "physical_block_size": SECTOR_BYTES,
    })
}

fn port_to_file(qemu: &mut Command, base: &Path, name: &str, how: &str) {
    let path = base.with_extension(name);
    port(qemu, name, &format!("file,id={name},path={}{how}", path.display()));
}

fn port(qemu: &mut Command, name: &str, backend: &str) {
    qemu.args(["-chardev", backend, "-device", &format!("virtserialport,chardev={name},name={name}")]);
}

/// A network, a port for orders, a slot for a disk, and the monitor that plugs it in.
fn one_of_several(qemu: &mut Command, number: usize, cable: &str, orders: &str) {
    let address = network::address(number);
    qemu.args([
        "-netdev",
        &format!("stream,id=net,server=off,addr.type=unix,addr.path={cable},addr.abstract=on"),
        "-device",
        &format!("virtio-net-pci,netdev=net,mac={address},bus=pcie.0,addr=0x7"),
        "-device",
        &format!("pcie-root-port,id={SLOT},chassis=1,slot=1,bus=pcie.0,addr=0x8"),
    ]);
    port(qemu, "orders", &format!("socket,id=orders,path={orders},abstract=on"));
    qemu.args(["-qmp", "stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
}

/// Has a process that is started from now on get this signal when this one is gone.
pub fn ends_with_us(command: &mut Command, signal: libc::c_int) {
    let enter = move || {
        // SAFETY: a system call on plain numbers, allowed between fork and exec.
        let failed = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) < 0 };
        if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure makes a system call only and touches no memory that other threads may hold locked.
    unsafe { command.pre_exec(enter) };
}
