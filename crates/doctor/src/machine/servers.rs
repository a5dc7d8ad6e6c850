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

/// Reads them. Processes of one server work in one directory.
pub fn read(root: &Root) -> Vec<Server> {
    let mut found: Vec<Server> = Vec::new();
    for pid in root.names("/proc").iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        let Some(comm) = root.text(format!("/proc/{pid}/comm")) else { continue };
        let Some((_, name)) = NAMES.iter().find(|(begin, _)| comm.starts_with(begin)) else { continue };
        let directory = std::fs::read_link(root.host_path(Path::new(&format!("/proc/{pid}/cwd")))).ok();
        let server = Server { name, directory };
        if !found.contains(&server) {
            found.push(server);
        }
    }
    found
}
