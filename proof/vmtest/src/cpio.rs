//! The archive the kernel unpacks into its first root file system ("newc" cpio).
//!
//! In: entries. Out: bytes. Written by hand because that needs no root for device nodes and no program; the
//! kernel takes several archives one after another, so what changes from boot to boot is a small one behind
//! a large one. Format: Documentation/driver-api/early-userspace/buffer-format.rst.

/// An archive being written.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;
const END: &str = "TRAILER!!!";

impl Archive {
    /// Adds a directory.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// Adds a file that may be executed.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, (0, 0), content);
    }

    /// Adds a character device.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, DEVICE, (major, minor), &[]);
    }

    /// The archive, padded so that another may follow.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(END, 0, (0, 0), &[]);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let name_len = path.len() as u32 + 1;
        let (len, (major, minor)) = (content.len() as u32, device);
        // inode, mode, uid, gid, links, mtime, size, device (2), device of the node (2), name, check
        let fields = [self.entries, mode, 0, 0, 1, 0, len, 0, 0, major, minor, name_len, 0];
        self.bytes.extend_from_slice(b"070701");
        fields.iter().for_each(|field| self.bytes.extend_from_slice(format!("{field:08x}").as_bytes()));
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_names_and_contents_are_aligned() {
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.file("dev/x", b"abc");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 512, 0);
        let second = (110 + 4usize).next_multiple_of(4);
        assert_eq!(&bytes[second..second + 6], b"070701");
        let content = second + (110 + 6usize).next_multiple_of(4);
        assert_eq!(&bytes[content..content + 3], b"abc");
        assert_eq!(&bytes[content + 4..content + 10], b"070701");
    }
}
