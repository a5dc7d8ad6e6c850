//! A guard's text in the shape of InnoDB's redo log, so that InnoDB quotes it instead of calling it damaged.
//!
//! ```text
//!      0  the first line: its first four bytes are a log format that no InnoDB has,
//!         bytes 16 to 47 what InnoDB prints as the creator of the log
//!    508  CRC-32C of what is before it, big-endian, as in any header of a redo log
//!    512  the other lines
//!  16384  end: a file shorter than its header and checkpoints "is too small"
//! ```
//!
//! MariaDB 10.8 and later, MySQL 5.7 and 8.0 alike: "Unsupported redo log format. The redo log was created
//! with unreplayed-WAL:run-seawall-recov."

use seawall_media::crc32c;

const CHECKSUM_AT: usize = 508;
const BYTES: usize = 16384;

/// The text as a redo log. What is longer than a log's header area is kept whole.
pub(super) fn as_redo_log(text: &str) -> Vec<u8> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut log = first.as_bytes().to_vec();
    log.resize(CHECKSUM_AT, b'\n');
    log.extend(crc32c(&log).to_be_bytes());
    log.push(b'\n');
    log.extend(rest.as_bytes());
    log.resize(log.len().max(BYTES), b'\n');
    log
}

#[cfg(test)]
mod tests {
    use super::super::Claim;
    use super::*;

    #[test]
    fn innodb_accepts_the_checksum_and_quotes_the_text() {
        let claim = Claim { uuid: 5, pool: "/pool".into() };
        let log = as_redo_log(&claim.text("The redo log is aside."));
        assert_eq!(log.len(), BYTES);
        assert_eq!(log[CHECKSUM_AT..512], crc32c(&log[..CHECKSUM_AT]).to_be_bytes());
        assert_eq!(&log[16..48], b"unreplayed-WAL:run-seawall-recov");
        assert_eq!(Claim::parse(&String::from_utf8_lossy(&log)), Some(claim));
    }
}
