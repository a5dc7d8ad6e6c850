//! The kernel's cached pages of a file that is written past them.
//!
//! The kernel lets such pages go before it sends us the write. A page that is read between that and our write holds what
//! was there before, and would stay. So of a file that was read, the pages are let go once more, before the write is
//! answered. Newer kernels do that too ("fuse: Invalidate the page cache after FOPEN_DIRECT_IO write", Linux 6.19 and the
//! stable kernels of its time), but do not say so: on one of them nothing shows whether this here is at work.
//!
//! On a thread of its own, which no read ever waits for: the kernel makes it wait for pages that are being read.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use fuser::{INodeNo, Notifier};

struct Job {
    node: INodeNo,
    offset: u64,
    len: usize,
    then: Box<dyn FnOnce() + Send>,
}

/// The way to let them go.
#[derive(Default)]
pub struct Pages(OnceLock<Sender<Job>>);

impl Pages {
    /// Begins: files may be written past their pages.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(&self, kernel: Notifier) -> io::Result<()> {
        let (jobs, queue) = channel::<Job>();
        let work = move || {
            for Job { node, offset, len, then } in queue {
                // What the kernel has forgotten has no pages.
                let _ = kernel.inval_inode(node, offset as i64, len as i64);
                then();
            }
        };
        std::thread::Builder::new().name("pages".into()).spawn(work)?;
        let _ = self.0.set(jobs);
        Ok(())
    }

    /// Lets these bytes' pages go, then runs `then`.
    pub fn drop_then(
        &self,
        node: INodeNo,
        (offset, len): (u64, usize),
        then: impl FnOnce() + Send + 'static,
    ) {
        if let Some(jobs) = self.0.get() {
            // The other end lives as long as this one.
            let _ = jobs.send(Job { node, offset, len, then: Box::new(then) });
        }
    }
}
