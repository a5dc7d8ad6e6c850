//! Database servers that run here, by their names and the directories they work in.

use std::path::{Path, PathBuf};

use crate::root::Root;

/// Beginnings of names, as the kernel shortens them, and what they are.
const NAMES: [(&str, &str); 7] = [
    ("postgres", "PostgreSQL"),
    ("postmaster", "PostgreSQL"),
    ("mariadbd", "MariaDB"),
    ("mysqld", "MySQL"),
    ("redis-server", "Redis"),
    ("valkey-server", "Valkey"),
    ("mongod", "MongoDB"),
];

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Which database.
    pub name: &'static str,
    /// The directory it works in: its data. `None` where only root may see it.
    pub directory: Option<PathBuf>,
}

/// Every process: its number, and its name as the kernel shortens it.
pub fn processes(root: &Root) -> Vec<(String, String)> {
    let names = root.names("/proc").into_iter();
    let pids = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    pids.filter_map(|pid| Some((root.text(format!("/proc/{pid}/comm"))?, pid)))
        .map(|(comm, pid)| (pid, comm))
        .collect()
}

/// Reads them. Processes of one server work in one directory.
pub fn read(root: &Root, processes: &[(String, String)]) -> Vec<Server> {
    let mut found: Vec<Server> = Vec::new();
    for (pid, comm) in processes {
        let Some((_, name)) = NAMES.iter().find(|(begin, _)| comm.starts_with(begin)) else { continue };
        let directory = std::fs::read_link(root.host_path(Path::new(&format!("/proc/{pid}/cwd")))).ok();
        let server = Server { name, directory };
        if !found.contains(&server) {
            found.push(server);
        }
    }
    found
}
