//! `--db`: how people name a database.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// In libpq's words: a URL or `host=… user=…`.
    Postgres(String),
    /// The server's socket; its own client program connects, with the options of its option files.
    Mariadb(PathBuf),
    /// `HOST:PORT` or a socket's path.
    Redis(String),
}

const FORMS: &str = "name the database as postgres://USER@HOST/DB, 'host=… user=… dbname=…', the directory of \
PostgreSQL's socket (/var/run/postgresql), mariadb:/run/mysqld/mysqld.sock, redis:/run/redis/redis.sock or \
redis://HOST:PORT";

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scheme = text.split_once(':').map(|(scheme, rest)| (scheme, rest.trim_start_matches("//")));
        match scheme {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(text.into())),
            Some(("mariadb" | "mysql", rest)) if rest.starts_with('/') => Ok(Self::Mariadb(rest.into())),
            Some(("redis", rest)) if !rest.is_empty() => Ok(Self::Redis(rest.trim_end_matches('/').into())),
            _ if text.contains('=') => Ok(Self::Postgres(text.into())),
            _ if text.starts_with('/') => by_path(Path::new(text)),
            _ => Err(format!("{text:?} names no database: {FORMS}")),
        }
    }
}

/// A socket, or the directory PostgreSQL's is in.
fn by_path(path: &Path) -> Result<Address, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if let Some(port) = name.strip_prefix(".s.pgsql.") {
        let directory = path.parent().unwrap_or(Path::new("/")).display();
        return Ok(Address::Postgres(format!("host={directory} port={port}")));
    }
    if path.is_dir() {
        return match postgres_port(path) {
            Some(port) => Ok(Address::Postgres(format!("host={} port={port}", path.display()))),
            None => Err(format!(
                "{}: no PostgreSQL listens in this directory (no .s.PGSQL.…): is it running?",
                path.display()
            )),
        };
    }
    match name {
        name if name.contains("redis") || name.contains("valkey") => {
            Ok(Address::Redis(path.display().to_string()))
        }
        name if name.contains("mysql") || name.contains("maria") => Ok(Address::Mariadb(path.into())),
        _ => Err(format!("{}: it is neither a directory nor known as a socket: {FORMS}", path.display())),
    }
}

fn postgres_port(directory: &Path) -> Option<u16> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let names = entries.filter_map(|e| e.file_name().to_str().map(str::to_owned));
    names.filter_map(|name| name.strip_prefix(".s.PGSQL.")?.parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_known_by_their_addresses() {
        let cases = [
            ("postgres://u@h/d", Address::Postgres("postgres://u@h/d".into())),
            ("host=/run user=x", Address::Postgres("host=/run user=x".into())),
            ("/x/.s.PGSQL.5433", Address::Postgres("host=/x port=5433".into())),
            ("mariadb:/run/m.sock", Address::Mariadb("/run/m.sock".into())),
            ("mysql:///run/m.sock", Address::Mariadb("/run/m.sock".into())),
            ("/run/mysqld/mysqld.sock", Address::Mariadb("/run/mysqld/mysqld.sock".into())),
            ("redis://127.0.0.1:6379", Address::Redis("127.0.0.1:6379".into())),
            ("redis:/run/r.sock", Address::Redis("/run/r.sock".into())),
        ];
        for (text, wanted) in cases {
            assert_eq!(text.parse(), Ok(wanted), "{text}");
        }
        for wrong in ["", "oracle", "oracle://x", "/nowhere/x", "/proc", "redis:"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
