//! What a file held since its last acknowledged sync, byte for byte.

use seawall_core::format::Handle;

use crate::tree::Inode;

/// A file's contents.
#[derive(Debug)]
pub struct Written {
    /// Its identity.
    pub handle: Handle,
    /// What it was made with.
    pub mode: u32,
    /// It is a symbolic link that says this.
    pub target: Option<Vec<u8>>,
    /// It is this directory.
    pub folder: Option<usize>,
    /// Its contents, oldest first, and how many there were before the first of these.
    versions: Vec<Vec<u8>>,
    before: u64,
}

impl Written {
    /// A new file.
    pub fn of(handle: Handle, mode: u32) -> Self {
        Self { handle, mode, target: None, folder: None, versions: vec![Vec::new()], before: 0 }
    }

    /// The same of what was just made, or found.
    pub fn at(inode: &Inode) -> Self {
        let (target, folder) = (inode.target.clone(), inode.folder);
        Self { target, folder, ..Self::of(inode.handle(), inode.mode) }
    }

    /// It holds this from now on.
    pub fn has(&mut self, content: &[u8]) {
        self.versions.push(content.to_vec());
    }

    /// Its newest version.
    pub fn newest(&self) -> u64 {
        self.before + self.versions.len() as u64 - 1
    }

    /// This version is durable, or a later one.
    pub fn is_synced(&mut self, version: u64) {
        let gone = version.saturating_sub(self.before) as usize;
        self.versions.drain(..gone.min(self.versions.len() - 1));
        self.before = self.before.max(version);
    }

    /// Is this a content that a power cut may leave? Each byte may be of another version, and zero where one of them
    /// had none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, content: &[u8]) -> Result<(), String> {
        if !self.versions.iter().any(|version| version.len() == content.len()) {
            let known: Vec<usize> = self.versions.iter().map(Vec::len).collect();
            return Err(format!("it has {} bytes, and had {known:?}", content.len()));
        }
        let may_be = |at: usize, byte: u8| {
            self.versions.iter().any(|version| version.get(at).copied().unwrap_or(0) == byte)
        };
        match content.iter().enumerate().find(|(at, byte)| !may_be(*at, **byte)) {
            None => Ok(()),
            Some((at, byte)) => Err(format!(
                "byte {at} of {} is {byte:#x}, which it has not been since its last sync ({} versions)",
                content.len(),
                self.versions.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_stays_and_what_is_foreign_is_found() {
        let mut written = Written::of(Handle::new(1, &[1; 8]).expect("short"), 0o600);
        written.has(b"synced");
        assert!(written.check(b"").is_ok() && written.check(b"\0\0nced").is_ok());
        written.is_synced(written.newest());
        assert!(written.check(b"").is_err() && written.check(b"\0\0nced").is_err());
        written.has(b"later, longer");
        assert!(written.check(b"lynced").is_ok() && written.check(b"synced\0lonXer").is_err());
        assert!(written.check(b"synced\0\0\0\0\0\0\0").is_ok() && written.check(b"xynced").is_err());
    }
}
