//! Logging in: by a password, or by who we are (`unix_socket`).

use std::io::{Read, Write};

use anyhow::anyhow;
use sha1_smol::Sha1;

use super::packet::{Fields, Packets};
use super::{ERROR, OK, refused};
use crate::failure::Failure;

/// What we understand: protocol 4.1, long flags, transactions, rows found instead of rows changed, several
/// statements in one, several results, named ways of logging in.
const CAPABILITIES: u32 = 0x200 | 0x4 | 0x2000 | 0x2 | 0x1_0000 | 0x2_0000 | 0x8000 | 0x8_0000 | 0x1;
const UTF8MB4: u8 = 45;
const PASSWORD: &[u8] = b"mysql_native_password";
/// "Log in another way."
const SWITCH: u8 = 0xfe;

/// Logs in on a new connection.
pub fn log_in<S: Read + Write>(packets: &mut Packets<S>, user: &str, password: &str) -> Result<(), Failure> {
    let greeting = packets.receive()?;
    if greeting.first() == Some(&ERROR) {
        return Err(refused(&greeting));
    }
    let scramble = scramble_of(&greeting)?;
    let proof = prove(password, &scramble);
    let mut response = CAPABILITIES.to_le_bytes().to_vec();
    response.extend_from_slice(&(1u32 << 30).to_le_bytes());
    response.push(UTF8MB4);
    response.extend_from_slice(&[0; 23]);
    response.extend_from_slice(user.as_bytes());
    response.extend_from_slice(&[0, proof.len() as u8]);
    response.extend_from_slice(&proof);
    response.extend_from_slice(PASSWORD);
    response.push(0);
    packets.send(&response)?;
    let mut answer = packets.receive()?;
    if answer.first() == Some(&SWITCH) {
        packets.send(&another_way(&answer[1..], password)?)?;
        answer = packets.receive()?;
    }
    match answer.first() {
        Some(&OK) => Ok(()),
        Some(&ERROR) => Err(refused(&answer)),
        _ => Err(Failure::Other(anyhow!("MariaDB wants another way of logging in than a password"))),
    }
}

fn another_way(asked: &[u8], password: &str) -> Result<Vec<u8>, Failure> {
    let mut fields = Fields(asked);
    match fields.until_zero()? {
        PASSWORD => Ok(prove(password, fields.until_zero()?)),
        b"" | b"unix_socket" | b"auth_socket" => Ok(Vec::new()), // the kernel says who we are
        other => {
            let other = String::from_utf8_lossy(other);
            Err(Failure::Other(anyhow!(
                "MariaDB wants this user to log in by {other}, which is not known here"
            )))
        }
    }
}

/// The random bytes of the server's greeting.
fn scramble_of(greeting: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut fields = Fields(greeting);
    if fields.bytes(1)? != [10] {
        return Err(Failure::Other(anyhow!("not a MariaDB server: it greets in another protocol")));
    }
    fields.until_zero()?; // its version
    fields.bytes(4)?; // the connection's number
    let mut scramble = fields.bytes(8)?.to_vec();
    fields.bytes(1 + 2 + 1 + 2 + 2 + 1 + 10)?; // what it can do
    scramble.extend_from_slice(fields.until_zero()?);
    Ok(scramble)
}

/// `SHA1(password) xor SHA1(scramble, SHA1(SHA1(password)))`
fn prove(password: &str, scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let hash = |bytes: &[u8]| Sha1::from(bytes).digest().bytes();
    let once = hash(password.as_bytes());
    let mask = hash(&[scramble, &hash(&once)].concat());
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::prove;

    #[test]
    fn no_password_proves_nothing_and_each_scramble_asks_for_another_proof() {
        assert!(prove("", b"12345678901234567890").is_empty());
        let proof = prove("secret", b"12345678901234567890");
        assert_eq!(proof.len(), 20);
        assert_ne!(proof, prove("secret", b"12345678901234567891"));
    }
}
