//! The kernel's cached pages of a file that is written past them.
//!
//! The kernel lets such pages go before it sends us the write. What is put there between that and our write is what was there
//! before, and would stay. There are two kinds of such writes:
//!
//! * by O_DIRECT, of any file. When one is done the kernel lets the pages go once more, and until then it has others wait that
//!   write the file in any way: so it is right, as long as one is done when the call ends. Of those that libaio or io_uring
//!   have under way it would let nothing go (FUSE_ASYNC_DIO). We could, but not in time for writes through the cache beside
//!   them: their pages are there before we know of them. So the kernel is not asked to have any under way.
//! * by any call, of a file that we want to be written past them (FOPEN_DIRECT_IO). Newer kernels see to these too ("fuse:
//!   Invalidate the page cache after FOPEN_DIRECT_IO write", Linux 6.19 and the stable kernels of its time), but do not say
//!   so: on one of them nothing shows whether this here is at work. Its pages are let go once more before the write is
//!   answered, if there can be any.
//!
//! ```text
//!  something is to be put there: Held::may_fill, then it is read        the page is locked until that is answered
//!  a write past them is published, then asks Held::may_be_there ─ no ─▶ answered
//!                    yes ─▶ its own pages are let go, which waits for those that are locked ─▶ answered
//! ```
//!
//! Invariant: what was put there before the write was published has a number that the write sees, unless all pages were let
//! go since. What is put there later was read later.
//!
//! A file that is written past its pages again and again, and not read through them meanwhile, has them all let go once:
//! then its writes need none of this.
//!
//! On a thread of its own, which no read ever waits for: the kernel makes it wait for pages that are being read.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use fuser::{INodeNo, Notifier};

use crate::node::Node;

struct Job {
    node: Arc<Node>,
    span: (u64, usize),
    then: Box<dyn FnOnce() + Send>,
}

/// The way to let them go.
#[derive(Default)]
pub struct Pages(OnceLock<(Notifier, Sender<Job>)>);

impl Pages {
    /// Begins: files may be written past their pages.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(&self, kernel: Notifier) -> io::Result<()> {
        let (jobs, queue) = channel::<Job>();
        let ours = kernel.clone();
        let work = move || {
            for Job { node, span, then } in queue {
                // What the kernel has forgotten has no pages.
                node.pages.let_go(span, |offset, len| {
                    let _ = kernel.inval_inode(node.number, offset as i64, len as i64);
                });
                then();
            }
        };
        std::thread::Builder::new().name("pages".into()).spawn(work)?;
        let _ = self.0.set((ours, jobs));
        Ok(())
    }

    /// Lets these bytes' pages go, then runs `then`.
    pub fn drop_then(&self, node: &Arc<Node>, span: (u64, usize), then: impl FnOnce() + Send + 'static) {
        if let Some((_, jobs)) = self.0.get() {
            // The other end lives as long as this one.
            let _ = jobs.send(Job { node: Arc::clone(node), span, then: Box::new(then) });
        }
    }

    /// Lets all pages of a node go that nobody has open, at once, and what the kernel believes of its size and times. False
    /// if there is no way to.
    pub fn drop_closed(&self, node: INodeNo) -> bool {
        // What it has forgotten has no pages.
        let drop = |(kernel, _): &(Notifier, _)| drop(kernel.inval_inode(node, 0, 0));
        self.0.get().map(drop).is_some()
    }

    /// What the kernel believes of a node's size and times it asks for anew.
    pub fn forget_attributes(&self, node: INodeNo) {
        if let Some((kernel, _)) = self.0.get() {
            let _ = kernel.inval_inode(node, -1, 0);
        }
    }
}
