//! PostgreSQL's own note of the server that runs in a directory: postmaster.pid.

use std::path::Path;

use anyhow::{Context, Result};

/// A server that runs, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its process.
    pub process: String,
    /// Its directory, as it was called.
    pub data: String,
    /// Its port.
    pub port: String,
    /// The directory of its first socket.
    pub socket: Option<String>,
    /// It takes transactions.
    pub is_ready: bool,
}

impl Running {
    /// The server of a directory, if one runs there.
    ///
    /// # Errors
    /// If its file is there and cannot be read.
    pub fn of(data: &Path) -> Result<Option<Self>> {
        Ok(read(&data.join("postmaster.pid"))?
            .and_then(|bytes| Self::parse(&String::from_utf8_lossy(&bytes))))
    }

    /// The same, if it takes transactions. Of a file that cannot be read nothing is known.
    pub fn ready(data: &Path) -> Option<Self> {
        Self::of(data).ok().flatten().filter(|server| server.is_ready)
    }

    /// Its lines are: process, directory, time of its start, port, directory of its first socket, addresses, shared memory,
    /// state.
    fn parse(text: &str) -> Option<Self> {
        let line = |number| text.lines().nth(number).map(str::trim).filter(|line| !line.is_empty());
        let socket = line(4).map(str::to_owned);
        let is_ready = line(7).is_some_and(|state| state == "ready");
        Some(Self {
            process: line(0)?.to_owned(),
            data: line(1)?.to_owned(),
            port: line(3)?.to_owned(),
            socket,
            is_ready,
        })
    }

    /// What tells psql where it listens, also behind sudo, which passes no variables on.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let socket = self.socket.iter().map(|socket| ("host", socket.as_str()));
        socket.chain([("port", self.port.as_str())])
    }
}

/// A file's content, if it is there.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| {
            format!("cannot read {}, which says which server runs in this directory", path.display())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID_FILE: &str = "812\n/srv/pg\n1700000000\n5433\n/run/postgresql\nlocalhost\n  1 2\nready   \n";

    #[test]
    fn where_a_server_listens_is_in_its_pid_file() {
        let all = |text: &str| {
            let running = Running::parse(text).expect("a server");
            running.parameters().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(all(PID_FILE), ["host=/run/postgresql", "port=5433"]);
        assert_eq!(all(&PID_FILE.replace("/run/postgresql", "")), ["port=5433"], "no socket: by its name");
        assert_eq!(Running::parse("812\n"), None);
        assert!(Running::parse(PID_FILE).is_some_and(|running| running.is_ready));
        assert!(
            !Running::parse(&PID_FILE.replace("ready   ", "starting"))
                .is_some_and(|running| running.is_ready)
        );
    }
}
