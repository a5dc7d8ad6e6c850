//! How many queues the kernel has, and what their threads ask of it.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// As many as processors that there can be. They may have higher numbers than that: then the first queue has their
/// requests.
pub fn count() -> io::Result<u16> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    counted(&list).ok_or_else(|| io::Error::other("cannot read the list of processors"))
}

/// Such as `0-3,8`.
fn counted(list: &str) -> Option<u16> {
    list.trim().split(',').try_fold(0u16, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The thread's processor only: that of the requests. One that is away has none.
pub fn pin(number: u16) {
    let (number, mut only) = (usize::from(number), CpuSet::new());
    if number < CpuSet::MAX_CPU {
        only.set(number);
        let _ = sched_setaffinity(None, &only);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_and_not_their_highest_number() {
        assert_eq!(counted("0\n"), Some(1));
        assert_eq!(counted("0-1\n"), Some(2));
        assert_eq!(counted("0-3,8,16-17\n"), Some(7));
        for not_a_list in ["", "a", "3-1", "0-", "0-70000", "0-65535"] {
            assert_eq!(counted(not_a_list), None, "{not_a_list:?}");
        }
    }
}
