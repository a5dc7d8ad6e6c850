//! A connection to MariaDB's socket, as the loads need it: text statements, rows as text, and what a failure means.
//!
//! The `mysql` crate speaks the protocol. Statements go as text, not prepared: a load measures what the server does
//! to be durable, and procedures are called by one short line.

use anyhow::{Context, anyhow};
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};

use crate::failure::Failure;
use crate::target::MariadbServer;

/// A row's values; `None` is NULL.
pub type Values<'a> = [Option<&'a str>];

/// No statement of the loads is longer; the server itself reports its own limit.
const LONGEST_PACKET: usize = 1 << 30;

/// A connection.
pub struct Connection(Conn);

impl Connection {
    /// Connects and logs in: by a password, or by who we are (`unix_socket`).
    pub fn open(server: &MariadbServer) -> Result<Self, Failure> {
        let name = server.socket.display();
        let socket = server.socket.to_str().with_context(|| format!("{name} is not a name in UTF-8"))?;
        let options = OptsBuilder::new()
            .socket(Some(socket))
            .user(Some(&server.user))
            .pass(Some(&server.password))
            .max_allowed_packet(Some(LONGEST_PACKET))
            // Rows that an update finds, changed or not: that is what a load counts.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS);
        Conn::new(options).map(Connection).map_err(|error| match failure(error) {
            Failure::Lost(said) => Failure::Lost(format!("cannot connect to {name}: {said}")),
            other => other,
        })
    }

    /// Runs statements and returns how many rows they changed (or matched).
    pub fn execute(&mut self, sql: &str) -> Result<u64, Failure> {
        self.each(sql, &mut |_| Ok(()))
    }

    /// Runs a statement and returns its rows.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        let mut rows = Vec::new();
        self.each(sql, &mut |values| {
            rows.push(values.iter().map(|value| value.map(str::to_owned)).collect());
            Ok(())
        })?;
        Ok(rows)
    }

    /// Runs a statement that returns one number.
    pub fn number(&mut self, sql: &str) -> Result<i64, Failure> {
        let rows = self.query(sql)?;
        let value = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
        value.ok_or_else(|| Failure::Other(anyhow!("{sql}: {rows:?} is not a number")))
    }

    /// Runs statements, shows each row, and returns how many rows they changed (or matched).
    pub fn each(
        &mut self,
        sql: &str,
        see: &mut dyn FnMut(&Values<'_>) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let mut results = self.0.query_iter(sql).map_err(failure)?;
        let (mut changed, mut told) = (0, Ok(()));
        // To the last one, even if `see` failed: an error of a later statement would be dropped with the rest.
        while let Some(result) = results.iter() {
            changed += result.affected_rows();
            for row in result {
                let row = row.map_err(failure)?;
                if told.is_ok() {
                    let values: Vec<_> = (0..row.len()).map(|column| text(row.as_ref(column))).collect();
                    told = see(&values);
                }
            }
        }
        told.map(|()| changed)
    }
}

/// A value that is no text is damage: whoever looks at it will say so.
fn text(value: Option<&Value>) -> Option<&str> {
    match value {
        Some(Value::Bytes(bytes)) => Some(std::str::from_utf8(bytes).unwrap_or_default()),
        _ => None,
    }
}

/// What an error means to a load.
fn failure(error: mysql::Error) -> Failure {
    match error {
        mysql::Error::MySqlError(said) => refused(said.code, &said.message),
        mysql::Error::IoError(error) => Failure::Lost(error.to_string()),
        mysql::Error::CodecError(error) => Failure::Lost(error.to_string()),
        mysql::Error::DriverError(error @ mysql::DriverError::CouldNotConnect(_)) => {
            Failure::Lost(error.to_string())
        }
        other => Failure::Other(anyhow!(other.to_string())),
    }
}

/// What the server refused.
fn refused(code: u16, message: &str) -> Failure {
    let said = format!("{message} ({code})");
    match code {
        // Lock wait timeout, deadlock, record changed since it was read.
        1205 | 1213 | 1020 => Failure::Conflict(said),
        // Shut down, killed, network.
        1053 | 1152 | 1927 | 1158..=1161 => Failure::Lost(said),
        _ => Failure::Other(anyhow!(said)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_tried_again_a_lost_server_ends_the_load_in_order() {
        assert!(matches!(refused(1213, "Deadlock found"), Failure::Conflict(_)));
        assert!(matches!(refused(1927, "Connection was killed"), Failure::Lost(_)));
        assert!(matches!(refused(1064, "You have an error"), Failure::Other(_)));
        let gone = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(matches!(failure(mysql::Error::IoError(gone)), Failure::Lost(_)));
    }

    #[test]
    fn no_server_at_a_socket_is_told_with_its_name() {
        let server =
            MariadbServer { socket: "/nowhere/m.sock".into(), user: "root".into(), password: String::new() };
        let Err(Failure::Lost(said)) = Connection::open(&server) else { panic!("connected to nothing") };
        assert!(said.contains("/nowhere/m.sock"), "{said}");
    }
}
