//! Which server it was that psql asked: the one that runs in a database's directory, or another one, which may have tables
//! of the same names in other files.
//!
//! ```text
//! the server says     system identifier · port · directory, to a role that may see it
//! the directory says  global/pg_control · postmaster.pid, while a server runs there
//! ```
//!
//! All three are compared: a copy and a replica have the identifier of what they were copied from, and in two containers
//! directories and ports are often the same. A role that may not see the directory is believed without it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::postmaster::{Running, read};

/// What asks a server which one it is: its answer is one line. Every role may, unless that was revoked.
pub const WHICH: &str = "SELECT system_identifier, current_setting('port'),
    (SELECT setting FROM pg_settings WHERE name = 'data_directory') FROM pg_control_system();";

/// A server, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answering {
    system: u64,
    port: String,
    /// `None` if the role may not see it.
    data: Option<String>,
}

impl Answering {
    /// The server that answered [`WHICH`] so; `None` if that is no such answer.
    pub fn of(line: &str) -> Option<Self> {
        let [system, port, data] = line.splitn(3, '|').collect::<Vec<_>>().try_into().ok()?;
        // SQL has no unsigned integers.
        let system = system.parse::<i64>().ok()? as u64;
        Some(Self {
            system,
            port: port.to_owned(),
            data: Some(data.to_owned()).filter(|data| !data.is_empty()),
        })
    }

    /// Which of these directories it runs in.
    ///
    /// # Errors
    /// If in none of them, or that cannot be found out.
    pub fn directory(&self, directories: &[&Path], psql: &str) -> Result<PathBuf> {
        for data in directories {
            if self.runs_in(data)? {
                return Ok(data.to_path_buf());
            }
        }
        let Self { system, port, data } = self;
        let data = data.as_deref().unwrap_or("unknown to its role");
        let expected: Vec<String> = directories.iter().map(|data| expected(data, psql)).collect();
        bail!(
            "psql asked another server (directory {data}, port {port}, system identifier {system}). {}",
            expected.join(". ")
        )
    }

    fn runs_in(&self, data: &Path) -> Result<bool> {
        let Some(running) = Running::of(data)? else { return Ok(false) };
        let is_same =
            self.data.as_ref().is_none_or(|data| *data == running.data) && self.port == running.port;
        Ok(is_same && system_identifier(data)? == Some(self.system))
    }
}

/// The hint about a directory whose server was not asked.
fn expected(data: &Path, psql: &str) -> String {
    let data_name = data.display();
    match Running::of(data) {
        Ok(Some(Running { port, socket, .. })) => {
            let host = socket.map_or(String::new(), |socket| format!(" -h {socket}"));
            format!(
                "The server of {data_name} listens at port {port}: say with --psql how to reach it, for \
                 example --psql \"{psql}{host} -p {port}\""
            )
        }
        _ => format!(
            "No server runs in {data_name}: start it, or name with --pool the daemon of the server that you \
             mean"
        ),
    }
}

/// What initdb called this cluster: the first eight bytes of pg_control.
fn system_identifier(data: &Path) -> Result<Option<u64>> {
    let bytes = read(&data.join("global/pg_control"))?;
    Ok(bytes.and_then(|bytes| Some(u64::from_ne_bytes(*bytes.first_chunk()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: u64 = 0xf000_0000_0000_0007;
    const PID_FILE: &str = "812\n/srv/pg\n1700000000\n5433\n/run/postgresql\nlocalhost\n  1 2\nready   \n";

    #[test]
    fn a_server_is_known_by_all_that_it_says() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("global")).expect("made");
        std::fs::write(dir.path().join("postmaster.pid"), PID_FILE).expect("written");
        std::fs::write(dir.path().join("global/pg_control"), [&SYSTEM.to_ne_bytes()[..], &[0; 8]].concat())
            .expect("written");
        let is_its = |system: u64, rest: &str| {
            let said = Answering::of(&format!("{}|{rest}", system as i64)).expect("an answer");
            said.directory(&[Path::new("/nowhere"), dir.path()], "psql")
                .is_ok_and(|found| found == dir.path())
        };
        assert!(is_its(SYSTEM, "5433|/srv/pg"));
        assert!(is_its(SYSTEM, "5433|"), "its role may not see the directory");
        assert!(!is_its(SYSTEM + 1, "5433|/srv/pg"), "in another container");
        assert!(!is_its(SYSTEM, "5432|"), "a copy that listens elsewhere");
        assert!(!is_its(SYSTEM, "5433|/srv/copy"), "a copy");
        std::fs::remove_file(dir.path().join("postmaster.pid")).expect("removed");
        assert!(!is_its(SYSTEM, "5433|/srv/pg"), "it ended");
        for answer in ["", "t", "7|5432", "x|5432|/srv/pg"] {
            assert_eq!(Answering::of(answer), None, "{answer}");
        }
    }
}
