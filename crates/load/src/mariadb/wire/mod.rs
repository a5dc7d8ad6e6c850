//! As much of MariaDB's client protocol as a load needs: text statements over the server's socket.
//!
//! A client of our own because the loads need answers within microseconds and many connections, and a client
//! library would bring a hundred crates along.

mod login;
mod packet;
mod server;

use std::os::unix::net::UnixStream;

use anyhow::anyhow;

use self::packet::{Fields, Packets};
use crate::failure::Failure;
use crate::target::MariadbServer;

pub use server::told;

const QUERY: u8 = 3;
const OK: u8 = 0;
const ERROR: u8 = 0xff;
const EOF: u8 = 0xfe;
const LOCAL_FILE: u8 = 0xfb;
/// More results of the same statement follow.
const MORE_RESULTS: u16 = 8;

/// A row's values; `None` is NULL.
pub type Values<'a> = [Option<&'a str>];

/// A connection.
pub struct Connection(Packets<UnixStream>);

impl Connection {
    /// Connects and logs in.
    pub fn open(server: &MariadbServer) -> Result<Self, Failure> {
        let name = server.socket.display();
        let stream = UnixStream::connect(&server.socket)
            .map_err(|e| Failure::Lost(format!("connect to {name}: {e}")))?;
        let mut packets = Packets::new(stream);
        login::log_in(&mut packets, &server.user, &server.password)?;
        Ok(Connection(packets))
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
        value.ok_or_else(|| Failure::Other(anyhow!("{sql}: no number, but {rows:?}")))
    }

    /// Runs statements, shows each row, and returns how many rows they changed (or matched).
    pub fn each(
        &mut self,
        sql: &str,
        see: &mut dyn FnMut(&Values<'_>) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        self.0.begin();
        self.0.send(&[&[QUERY], sql.as_bytes()].concat())?;
        let mut changed = 0;
        loop {
            let packet = self.0.receive()?;
            let status = match packet.first() {
                Some(&OK) => {
                    let mut fields = Fields(&packet[1..]);
                    changed += fields.length()?;
                    fields.length()?; // the last inserted number
                    fields.u16()?
                }
                Some(&ERROR) => return Err(refused(&packet)),
                Some(&LOCAL_FILE) => return Err(Failure::Other(anyhow!("the server asks for a file"))),
                _ => {
                    let columns = Fields(&packet).length()?;
                    self.rows(columns, see)?
                }
            };
            if status & MORE_RESULTS == 0 {
                return Ok(changed);
            }
        }
    }

    /// Reads a result's columns and rows; returns its status.
    fn rows(
        &mut self,
        columns: u64,
        see: &mut dyn FnMut(&Values<'_>) -> Result<(), Failure>,
    ) -> Result<u16, Failure> {
        for _ in 0..=columns {
            self.0.receive()?; // each column's description, and what ends them
        }
        let mut told = Ok(());
        loop {
            let packet = self.0.receive()?;
            match packet.first() {
                Some(&EOF) if packet.len() < 9 => {
                    told?;
                    let mut fields = Fields(&packet[1..]);
                    fields.u16()?; // warnings
                    return fields.u16();
                }
                Some(&ERROR) => return Err(refused(&packet)),
                _ if told.is_err() => {} // the rest is read all the same: the next answer stands behind it
                _ => {
                    let mut fields = Fields(&packet);
                    let values: Result<Vec<_>, _> = (0..columns).map(|_| fields.text()).collect();
                    told = see(&values?);
                }
            }
        }
    }
}

/// What an error packet says.
fn refused(packet: &[u8]) -> Failure {
    let code = packet.get(1..3).map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    let said = String::from_utf8_lossy(packet.get(9..).unwrap_or_default());
    let said = format!("{said} ({code})");
    match code {
        // Lock wait timeout, deadlock, record changed since it was read.
        1205 | 1213 | 1020 => Failure::Conflict(said),
        // Shut down, killed, network.
        1053 | 1152 | 1927 | 1158..=1161 => Failure::Lost(said),
        _ => Failure::Other(anyhow!(said)),
    }
}
