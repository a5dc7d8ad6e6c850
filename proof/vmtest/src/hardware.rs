//! What few machines have, and a guest may: several disks, several memory nodes, CXL memory.

use std::path::PathBuf;
use std::process::Command;

/// More than the usual.
#[derive(Clone, Debug, Default)]
pub struct Hardware {
    /// Images of more disks, /dev/vdc and on, each at a PCI function of its own.
    pub disks: Vec<PathBuf>,
    /// A second node of memory without processors, and a third one that the persistent memory belongs to.
    pub nodes: bool,
    /// Image of a persistent CXL memory device, and where its labels are.
    pub cxl: Option<[PathBuf; 2]>,
    /// A volatile CXL memory device. It takes the later emulator.
    pub cxl_volatile: bool,
}

/// Bytes of a CXL memory device: what a window takes at least.
pub const CXL_BYTES: u64 = 256 << 20;
/// Of its labels.
pub const CXL_LABEL_BYTES: u64 = 1 << 20;

impl Hardware {
    /// What follows a machine's name.
    pub(crate) fn machine(&self) -> String {
        let memory = if self.nodes { "" } else { ",memory-backend=ram" };
        let cxl = if self.has_cxl() { ",cxl=on,cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=4G" } else { "" };
        format!("{memory}{cxl}")
    }

    /// What follows a processor's name. A kernel in a virtual machine does not flush caches for CXL memory, and refuses it.
    pub(crate) fn processor(&self) -> &'static str {
        if self.has_cxl() { ",-hypervisor" } else { "" }
    }

    /// What follows the persistent memory's.
    pub(crate) fn module(&self) -> &'static str {
        if self.nodes { ",node=2" } else { "" }
    }

    /// The rest.
    pub(crate) fn add(&self, qemu: &mut Command) {
        if self.nodes {
            qemu.args(["-m", "1536M,slots=2,maxmem=8G"]);
            qemu.args(["-object", "memory-backend-memfd,id=far,size=512M,share=on"]);
            qemu.args(["-numa", "node,nodeid=0,cpus=0-1,memdev=ram", "-numa", "node,nodeid=1,memdev=far"]);
            qemu.args(["-numa", "node,nodeid=2"]);
            for (from, to, distance) in [(0, 1, 20), (0, 2, 40), (1, 2, 40)] {
                qemu.args(["-numa", &format!("dist,src={from},dst={to},val={distance}")]);
            }
        } else {
            qemu.args(["-m", "1G,slots=2,maxmem=8G"]);
        }
        self.disks.iter().enumerate().for_each(|(number, image)| disk(qemu, number, image));
        if let Some([image, labels]) = &self.cxl {
            let memory = |id: &str, path: &std::path::Path, bytes: u64| {
                format!("memory-backend-file,id={id},share=on,mem-path={},size={bytes}", path.display())
            };
            qemu.args(["-object", &memory("cxl-mem", image, CXL_BYTES)]);
            qemu.args(["-object", &memory("cxl-lsa", labels, CXL_LABEL_BYTES)]);
            // As QEMU 7.2 calls it too.
            cxl(qemu, "memdev=cxl-mem,lsa=cxl-lsa");
        }
        if self.cxl_volatile {
            qemu.args(["-object", &format!("memory-backend-ram,id=cxl-mem,share=on,size={CXL_BYTES}")]);
            cxl(qemu, "volatile-memdev=cxl-mem");
        }
    }

    fn has_cxl(&self) -> bool {
        self.cxl.is_some() || self.cxl_volatile
    }
}

fn disk(qemu: &mut Command, number: usize, image: &std::path::Path) {
    let drive =
        format!("if=none,id=more{number},format=raw,cache=unsafe,discard=unmap,file={}", image.display());
    let device = format!(
        "virtio-blk-pci,drive=more{number},serial=more-{number},bus=pcie.0,addr={:#x}",
        0x10 + number
    );
    qemu.args(["-drive", &drive, "-device", &device]);
}

/// QEMU 7.2 loses what is written to the only port of a bridge: there are two.
fn cxl(qemu: &mut Command, memory: &str) {
    qemu.args(["-device", "pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.1"]);
    qemu.args(["-device", "cxl-rp,port=0,bus=cxl.1,id=cxl-port,chassis=0,slot=2"]);
    qemu.args(["-device", "cxl-rp,port=1,bus=cxl.1,id=cxl-port-2,chassis=0,slot=3"]);
    qemu.args(["-device", &format!("cxl-type3,bus=cxl-port,{memory},id=cxl-mem0")]);
}
