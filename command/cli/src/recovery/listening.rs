//! Whether a server listens: MariaDB opens its sockets when its recovery is over.

use std::collections::HashSet;
use std::fs;

use seawall_daemon::process;

/// `__SO_ACCEPTCON`, in the flags of /proc/net/unix.
const ACCEPTS: u64 = 0x1_0000;
/// `TCP_LISTEN`, in /proc/net/tcp.
const LISTEN: &str = "0A";

/// True if a process, or one that it started, listens on a socket.
pub fn listens(pid: u32) -> bool {
    let listening = listening();
    let is_one = |link: &str| {
        let inode = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.is_some_and(|inode| listening.contains(inode))
    };
    process::tree(pid).into_iter().any(|pid| {
        let descriptors = fs::read_dir(process::place(pid).join("fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|fd| fs::read_link(fd.path()).ok())
            .any(|link| link.to_str().is_some_and(is_one))
    })
}

/// The inodes of all sockets that take connections.
fn listening() -> HashSet<String> {
    let read = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let of_tcp = |text: String| tcp(&text);
    unix(&read("unix")).into_iter().chain(["tcp", "tcp6"].map(read).into_iter().flat_map(of_tcp)).collect()
}

/// Lines of: number, references, protocol, flags, type, state, inode, path.
fn unix(text: &str) -> Vec<String> {
    let accepts = |flags: &str| u64::from_str_radix(flags, 16).is_ok_and(|flags| flags & ACCEPTS != 0);
    inodes(text, (3, 6), accepts)
}

/// Lines of: number, both addresses, state, queues, timers, retransmissions, user, timeout, inode, …
fn tcp(text: &str) -> Vec<String> {
    inodes(text, (3, 9), |state| state == LISTEN)
}

fn inodes(text: &str, (state, inode): (usize, usize), takes: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let taken = lines.filter(|words| words.get(state).is_some_and(|word| takes(word)));
    taken.filter_map(|words| words.get(inode).map(|word| (*word).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::Command;

    use super::*;

    #[test]
    fn a_server_listens_and_whoever_asks_it_does_not() {
        let place = tempfile::tempdir().expect("a directory");
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        assert!(!listens(child.id()));
        child.kill().and_then(|()| child.wait()).expect("ended");
        let path = place.path().join("s");
        let (_server, _client) = (UnixListener::bind(&path).expect("bound"), UnixStream::connect(&path));
        assert!(listens(std::process::id()));
        let at_port = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = format!("{:04X}", at_port.local_addr().expect("bound").port());
        let all = fs::read_to_string("/proc/net/tcp").expect("read");
        let ours: String = all
            .lines()
            .take(1)
            .chain(all.lines().filter(|line| line.contains(&port)))
            .fold(String::new(), |text, line| text + line + "\n");
        assert_eq!(tcp(&ours).len(), 1, "{ours}");
    }
}
