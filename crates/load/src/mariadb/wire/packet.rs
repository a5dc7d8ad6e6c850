//! Packets: a length in three bytes, a running number, the content; and the fields in them.

use std::io::{Read, Write};

use anyhow::anyhow;

use crate::failure::Failure;

/// The longest content of one packet.
const CONTENT_MAX: usize = 0xff_ffff;

/// Sends and receives packets.
pub struct Packets<S> {
    stream: S,
    number: u8,
    buffer: Vec<u8>,
    /// What of `buffer` was received and not yet taken.
    unread: std::ops::Range<usize>,
}

impl<S: Read + Write> Packets<S> {
    pub fn new(stream: S) -> Self {
        Packets { stream, number: 0, buffer: vec![0; 1 << 16], unread: 0..0 }
    }

    /// A new command begins: numbers start again.
    pub fn begin(&mut self) {
        self.number = 0;
    }

    /// Sends a content of any length.
    pub fn send(&mut self, content: &[u8]) -> Result<(), Failure> {
        let mut bytes = Vec::with_capacity(content.len() + 4);
        // A content that fills its last packet is followed by an empty one.
        for at in (0..=content.len()).step_by(CONTENT_MAX) {
            let part = &content[at..content.len().min(at + CONTENT_MAX)];
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes()[..3]);
            bytes.push(self.number);
            bytes.extend_from_slice(part);
            self.number = self.number.wrapping_add(1);
        }
        self.stream.write_all(&bytes).map_err(lost)
    }

    /// Receives a content.
    pub fn receive(&mut self) -> Result<Vec<u8>, Failure> {
        let mut content = Vec::new();
        loop {
            let mut head = [0; 4];
            self.read_exact(&mut head)?;
            let len = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            self.number = head[3].wrapping_add(1);
            let before = content.len();
            content.resize(before + len, 0);
            self.read_exact(&mut content[before..])?;
            if len < CONTENT_MAX {
                return Ok(content);
            }
        }
    }

    fn read_exact(&mut self, mut into: &mut [u8]) -> Result<(), Failure> {
        while !into.is_empty() {
            if self.unread.is_empty() {
                let n = self.stream.read(&mut self.buffer).map_err(lost)?;
                if n == 0 {
                    return Err(Failure::Lost("the server closed the connection".to_owned()));
                }
                self.unread = 0..n;
            }
            let n = into.len().min(self.unread.len());
            into[..n].copy_from_slice(&self.buffer[self.unread.start..self.unread.start + n]);
            into = &mut into[n..];
            self.unread.start += n;
        }
        Ok(())
    }
}

fn lost(error: std::io::Error) -> Failure {
    Failure::Lost(error.to_string())
}

/// Takes fields off a content.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Failure> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return Err(Failure::Other(anyhow!("MariaDB sent a packet that ends too early")));
        };
        self.0 = rest;
        Ok(taken)
    }

    /// A number of two bytes.
    pub fn u16(&mut self) -> Result<u16, Failure> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// A number of a length that its first byte tells.
    pub fn length(&mut self) -> Result<u64, Failure> {
        let more = match self.bytes(1)?[0] {
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            small => return Ok(small.into()),
        };
        let mut bytes = [0; 8];
        bytes[..more].copy_from_slice(self.bytes(more)?);
        Ok(u64::from_le_bytes(bytes))
    }

    /// A value of a row.
    pub fn text(&mut self) -> Result<Option<&'a str>, Failure> {
        if self.0.first() == Some(&0xfb) {
            self.bytes(1)?;
            return Ok(None);
        }
        let len = self.length()?;
        let bytes = self.bytes(usize::try_from(len).unwrap_or(usize::MAX))?;
        // What is no text is damage: whoever looks at it will say so.
        Ok(Some(std::str::from_utf8(bytes).unwrap_or_default()))
    }

    /// Bytes up to a zero.
    pub fn until_zero(&mut self) -> Result<&'a [u8], Failure> {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let taken = self.bytes(end)?;
        self.0 = self.0.get(1..).unwrap_or_default();
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn what_is_sent_is_received_whatever_its_length() -> Result<(), Failure> {
        for len in [0, 1, 70_000, CONTENT_MAX, CONTENT_MAX + 1] {
            let content: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mut packets = Packets::new(Cursor::new(Vec::new()));
            packets.send(&content)?;
            packets.stream.set_position(0);
            assert!(packets.receive()? == content, "{len}");
        }
        Ok(())
    }

    #[test]
    fn fields_are_read_and_a_short_packet_is_refused() -> Result<(), Failure> {
        let mut fields = Fields(&[5, 0xfc, 1, 2, 0xfb, 2, b'h', b'i', b'x', 0, 9]);
        assert_eq!((fields.length()?, fields.length()?), (5, 0x201));
        assert_eq!((fields.text()?, fields.text()?), (None, Some("hi")));
        assert_eq!(fields.until_zero()?, b"x");
        assert!(fields.u16().is_err());
        Ok(())
    }
}
