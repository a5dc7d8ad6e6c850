//! Who may change a file and leave its set-user-id and set-group-id bits: as the kernel decides it (`fs/attr.c`).
//!
//! By FUSE_HANDLE_KILLPRIV_V2 the kernel leaves it to us to take them away. With a write it says whether the caller lacks
//! CAP_FSETID; with a truncate too, but the library does not pass that on; with fallocate and copy_file_range it does not. A
//! caller waits for our answer, so its thread can be looked at: for that, and for its groups.

use std::fs::{read_link, read_to_string};

use fuser::Request;
use rustix::fs::Stat;

const S_ISUID: u32 = 0o4000;
const S_ISGID: u32 = 0o2000;
const S_IXGRP: u32 = 0o0010;
/// Its number.
const CAP_FSETID: u32 = 4;

/// The caller that changes a file.
#[derive(Clone, Copy, Debug)]
pub struct Changer {
    /// Its thread; 0 for one that we cannot see.
    pub thread: u32,
    /// Its user.
    pub uid: u32,
    /// Its first group.
    pub gid: u32,
    /// It has no CAP_FSETID, the kernel says.
    pub is_unprivileged: bool,
}

impl Changer {
    /// Of a request that does not say whether it is.
    pub fn of(request: &Request) -> Self {
        let (thread, uid, gid) = (request.pid(), request.uid(), request.gid());
        Self { thread, uid, gid, is_unprivileged: false }
    }

    /// Of one that says that it is.
    pub fn unprivileged(thread: u32, uid: u32, gid: u32) -> Self {
        Self { thread, uid, gid, is_unprivileged: true }
    }

    /// The bits that its change of a file takes away.
    pub fn takes(&self, file: &Stat) -> u32 {
        let set = file.st_mode & (S_ISUID | S_ISGID);
        if set == 0 {
            return 0;
        }
        let thread = Thread::look(self.thread);
        let is_capable = || thread.as_ref().map_or(self.uid == 0, |thread| thread.has_fsetid);
        if !self.is_unprivileged && is_capable() {
            return 0;
        }
        let is_in =
            |group| group == self.gid || thread.as_ref().is_some_and(|thread| thread.groups.contains(&group));
        // Without the group's execute bit it once meant locks, and whoever is of the group may leave it.
        let stays = file.st_mode & S_IXGRP == 0 && is_in(file.st_gid);
        set & if stays { S_ISUID } else { S_ISUID | S_ISGID }
    }
}

/// A thread, as /proc has it.
struct Thread {
    has_fsetid: bool,
    groups: Vec<u32>,
}

impl Thread {
    fn look(thread: u32) -> Option<Self> {
        if thread == 0 {
            return None;
        }
        let mut seen = Self::read(&read_to_string(format!("/proc/{thread}/status")).ok()?)?;
        // Capabilities count in the user namespace that they are of.
        let namespace = |of: &str| read_link(format!("/proc/{of}/ns/user")).ok();
        seen.has_fsetid &= namespace(&thread.to_string()) == namespace("self");
        Some(seen)
    }

    fn read(status: &str) -> Option<Self> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let effective = u64::from_str_radix(field("CapEff:")?, 16).ok()?;
        let groups = field("Groups:")?.split_whitespace().filter_map(|group| group.parse().ok()).collect();
        Some(Self { has_fsetid: effective >> CAP_FSETID & 1 != 0, groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read() {
        let thread = |capabilities| {
            let status = format!("Name:\tx\nGroups:\t4 1000 \nCapEff:\t{capabilities}\nCapBnd:\t1ff\n");
            Thread::read(&status).expect("whole")
        };
        assert!(thread("000001ffffffffff").has_fsetid);
        assert!(!thread("000001ffffffffef").has_fsetid);
        assert_eq!(thread("0").groups, [4, 1000]);
        assert!(Thread::read("Name:\tx\n").is_none());
        assert!(Thread::look(std::process::id()).is_some());
    }

    #[test]
    fn bits_go_as_the_kernel_has_it() {
        let mut file = rustix::fs::stat("/proc/self/exe").expect("a file");
        let mut takes = |mode: u32, group, changer: Changer| {
            (file.st_mode, file.st_gid) = (0o100_000 | mode, group);
            changer.takes(&file)
        };
        // Threads that there are not.
        let other = Changer::unprivileged(0, 7, 8);
        assert_eq!(takes(0o6755, 8, other), 0o6000);
        assert_eq!(takes(0o6745, 8, other), 0o4000, "it is of the group");
        assert_eq!(takes(0o6745, 9, other), 0o6000);
        assert_eq!(takes(0o0755, 9, other), 0);
        let unsaid = |uid| Changer { thread: 0, uid, gid: 8, is_unprivileged: false };
        assert_eq!(takes(0o6755, 8, unsaid(0)), 0);
        assert_eq!(takes(0o6755, 8, unsaid(7)), 0o6000);
    }
}
