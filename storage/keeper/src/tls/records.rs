//! A socket read one record of TLS at a time: what is behind it stays there, for whoever reads on.
//!
//! The kernel takes a connection over between two records, and knows nothing of what this process read before.

use std::io::{self, Read};
use std::net::TcpStream;

/// Bytes in front of each record: what it is, a version, and how long it is.
const HEADER: usize = 5;

/// That socket. A call reads a part of one record at most.
pub(crate) struct Records<'s> {
    socket: &'s TcpStream,
    header: [u8; HEADER],
    /// Bytes of the header that are read.
    read: usize,
    /// Bytes of the record that are not.
    left: usize,
}

impl<'s> Records<'s> {
    /// The next byte there is the first one of a record.
    pub fn new(socket: &'s TcpStream) -> Self {
        Self { socket, header: [0; HEADER], read: 0, left: 0 }
    }

    /// What came of its header.
    fn has_come(&mut self, bytes: &[u8]) {
        self.header[self.read..][..bytes.len()].copy_from_slice(bytes);
        self.read += bytes.len();
        if self.read == HEADER {
            (self.read, self.left) = (0, u16::from_be_bytes([self.header[3], self.header[4]]).into());
        }
    }
}

impl Read for Records<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let is_in_header = self.left == 0;
        let most = if is_in_header { HEADER - self.read } else { self.left }.min(bytes.len());
        let more = self.socket.read(&mut bytes[..most])?;
        if is_in_header {
            self.has_come(&bytes[..more]);
        } else {
            self.left -= more;
        }
        Ok(more)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_behind_a_record_stays_in_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut far = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (near, _) = listener.accept().expect("accepted");
        let (first, empty, last) = ([22, 3, 3, 0, 3, 7, 8, 9], [23, 3, 3, 0, 0], [23, 3, 3, 1, 0]);
        far.write_all(&[&first[..], &empty, &last, &[5; 256], b"behind"].concat()).expect("sent");
        let mut records = Records::new(&near);
        let mut read = |wanted: usize| {
            let mut bytes = vec![0; wanted];
            records.read_exact(&mut bytes).map(|()| bytes).expect("it is there")
        };
        assert_eq!(read(2), first[..2], "a part of a header");
        assert_eq!((read(6), read(10)), (first[2..].to_vec(), [empty, last].concat()));
        assert_eq!(read(200), [5; 200]);
        let mut more = [0; 999];
        assert_eq!(records.read(&mut more).expect("there"), 56, "and not what is behind it");
        assert_eq!((&near).read(&mut more[..6]).expect("there"), 6);
        assert_eq!(&more[..6], b"behind");
    }
}
