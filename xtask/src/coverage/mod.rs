//! The coverage table: what becomes of every file call that libc exports.
//!
//! `xtask docs` makes docs/internals/COVERAGE.md of it, and a test compares it with the libc of the machine and with what the
//! preload library exports.

mod handled;
mod other;
mod passed;
mod row;

pub use row::{Row, What};

/// The page, from the root of the tree.
pub const PAGE: &str = "docs/internals/COVERAGE.md";

/// Every row.
pub fn table() -> impl Iterator<Item = &'static Row> {
    handled::ROWS.iter().chain(passed::ROWS).chain(other::ROWS)
}

/// Parts of names that file calls have. An exported function with one of them must be in the table.
pub const FILE_WORDS: &[&str] = &[
    "IO_", "accept", "access", "acct", "aio", "chdir", "chmod", "chown", "chroot", "clone", "close", "creat",
    "daemon", "dir", "dprintf", "dup", "epoll", "err", "exec", "falloc", "fcntl", "fd", "file", "flush",
    "fork", "ftw", "getpt", "ioctl", "link", "lio_", "lock", "login", "map", "mknod", "mkfifo", "mkstemp",
    "mktemp", "mostemp", "mount", "mq_", "msg", "msync", "mtrace", "notify", "open", "pipe", "poll", "print",
    "protect", "pty", "put", "quota", "rcmd", "read", "recv", "remap", "remove", "rename", "rexec", "rresv",
    "seek", "send", "setbuf", "setvbuf", "shm", "signalfd", "socket", "spawn", "splice", "stat", "stemp",
    "stream", "swap", "sync", "syscall", "syslog", "tee", "temp", "timerfd", "tmp", "trunc", "tty", "utim",
    "utmp", "vise", "warn", "write", "xattr",
];

/// True if the table has a row for `symbol`.
pub fn knows(symbol: &str) -> bool {
    let is = |name: &str| match name.strip_suffix('*') {
        Some(start) => symbol.starts_with(start),
        None => name == symbol,
    };
    table().any(|row| row.symbols.iter().any(|name| is(name)))
}

/// The document.
pub fn document() -> String {
    let mut text = String::from(include_str!("head.md"));
    for what in [What::Handled, What::Passed, What::NoFileCall] {
        text += &format!("\n## {}\n\n| family | calls | why |\n|---|---|---|\n", what.title());
        for row in table().filter(|row| row.what == what) {
            let names: Vec<String> = row.symbols.iter().map(|name| format!("`{name}`")).collect();
            text += &format!("| {} | {} | {} |\n", row.family, names.join(" "), row.why);
        }
    }
    text
}
