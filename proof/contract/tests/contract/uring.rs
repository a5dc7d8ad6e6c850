//! Requests by io_uring: whoever asks while a mount begins is answered, too.

use crate::common::mount::{Mount, isolate};
use crate::common::seawall::Pool;
use crate::common::work::Work;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// How often the mount begins.
const BEGINNINGS: usize = 5;
const LIMIT: Duration = Duration::from_secs(30);

/// The last queue that is registered makes the kernel send all that had to wait. Whoever waits here goes before the
/// thread that registers, on its processor: its request is there before the registration has returned.
#[test]
fn a_request_that_waits_for_the_io_urings_is_answered() {
    isolate();
    let pool = Pool::new("uring-begins", "16M");
    let work = Work::new("uring-begins");
    let (backing, at) = (work.directory("backing"), work.directory("mount"));
    for _ in 0..BEGINNINGS {
        let (tell, told) = channel();
        let askers: Vec<_> = processors().into_iter().map(|cpu| asker(cpu, &at, tell.clone())).collect();
        drop(tell);
        let Some(mount) = Mount::by_uring(&pool, &backing, &at) else { return };
        for _ in &askers {
            if told.recv_timeout(LIMIT).is_err() {
                // Else they, and so this process, wait for ever.
                pool.kill_everything();
                panic!("a statfs that came while the io_urings were registered was not answered");
            }
        }
        askers.into_iter().for_each(|asker| asker.join().expect("it has told"));
        mount.unmount().expect_success("seawall umount");
    }
}

/// Asks for `at`'s file system, in place of whatever else `cpu` could do, until it is the mount.
fn asker(cpu: usize, at: &Path, tell: Sender<()>) -> std::thread::JoinHandle<()> {
    let at = CString::new(at.as_os_str().as_bytes()).expect("a path");
    std::thread::spawn(move || {
        first_on(cpu);
        while !is_fuse(&at) {
            std::thread::sleep(Duration::from_micros(500));
        }
        let _ = tell.send(());
    })
}

fn is_fuse(at: &CString) -> bool {
    const FUSE_SUPER_MAGIC: u64 = 0x6573_5546;
    // SAFETY: all zeros is a `statfs`, which the call fills.
    let mut said: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a path that ends in zero, and room for the answer.
    let done = unsafe { libc::statfs(at.as_ptr(), &raw mut said) };
    // An error is an answer as well.
    done != 0 || said.f_type as u64 == FUSE_SUPER_MAGIC
}

fn processors() -> Vec<usize> {
    // SAFETY: all zeros is an empty set, which the call fills.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

/// Where that is not allowed the test finds less.
fn first_on(cpu: usize) {
    // SAFETY: all zeros is an empty set; both calls read what they are given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
        let how = libc::sched_param { sched_priority: 2 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const how);
    }
}
