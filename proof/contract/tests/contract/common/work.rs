//! Work directories on a real file system, and the native library built into them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set to look at what a failed test left behind.
const KEEP: &str = "SEAWALL_CONTRACT_KEEP";

/// A directory of its own, removed at the end.
pub struct Work {
    path: PathBuf,
}

impl Work {
    /// Makes one under TMPDIR when that is set, else under the target directory: never on tmpfs,
    /// whose files have no handles that outlive it.
    pub fn new(name: &str) -> Work {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base = std::env::var_os("TMPDIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("contract-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        let path = std::fs::canonicalize(path).expect("the directory was just made");
        Work { path }
    }

    /// A new sub-directory.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        std::fs::create_dir_all(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        path
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Builds `native/native.c` and `native/cancel.c`; `None`, with the reason printed, where there is no C compiler.
    pub fn native_library(&self) -> Option<PathBuf> {
        self.build(&["native", "cancel"], &["-shared", "-fPIC"], "-lpthread")
    }

    /// Builds `native/uring.c`; `None`, with the reason printed, where there is no C compiler or no liburing.
    pub fn uring_program(&self) -> Option<PathBuf> {
        self.build(&["uring"], &[], "-luring")
    }

    fn build(&self, names: &[&str], options: &[&str], library: &str) -> Option<PathBuf> {
        let name = names[0];
        let output = self.path.join(format!("{name}.built"));
        let source = |name: &&str| format!(concat!(env!("CARGO_MANIFEST_DIR"), "/native/{}.c"), name);
        let mut compiler = Command::new("cc");
        compiler.args(options).args(["-O1", "-o"]).arg(&output);
        compiler.args(names.iter().map(source)).arg(library);
        match compiler.status() {
            Ok(status) if status.success() => Some(output),
            other => {
                eprintln!("skipped: what needs native/{name}.c, cc and {library}: {other:?}");
                None
            }
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if std::env::var_os(KEEP).is_none() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
