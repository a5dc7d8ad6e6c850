//! The processes of a server: one that was named, or all that work in a directory, as databases do in their data's.

use std::fs;
use std::path::Path;

use seawall_media::process;

use crate::error::Error;

/// How mappings begin that are memory, and that processes share: as /proc names their files.
pub const SHARED: [&str; 5] = ["/dev/zero", "/SYSV", "/dev/shm/", "/memfd:", "/anon_hugepage"];

/// Its processes, the first one first.
///
/// # Errors
/// There are none.
pub fn processes(target: &str) -> Result<Vec<u32>, Error> {
    let first = match target.parse::<u32>() {
        Ok(pid) => pid,
        Err(_) => first_in(Path::new(target))?,
    };
    if !process::is_alive(first) {
        return Err(Error::refused(format!("there is no process {first}")));
    }
    Ok(process::tree(first))
}

/// The one that works there, and whose parent does not.
fn first_in(directory: &Path) -> Result<u32, Error> {
    let real = fs::canonicalize(directory).map_err(Error::file(directory))?;
    let works_there = |pid: u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == real);
    let is_first = |pid: &u32| {
        works_there(*pid)
            && !process::stat(*pid).is_some_and(|stat| works_there(stat.parent))
            && is_server(*pid)
    };
    process::all().find(is_first).ok_or_else(|| {
        Error::refused(format!(
            "no server works in {} (root also sees the servers of others): name its process",
            real.display()
        ))
    })
}

/// Somebody's shell may be there too.
fn is_server(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    !matches!(name.trim(), "bash" | "sh" | "dash" | "zsh" | "fish" | "tmux" | "screen")
}
