//! What a guest reads of its disk: `struct virtio_blk_config`, and the features (virtio 1.2, 5.2).

/// Bytes of a sector, as virtio counts them, whatever the disk's blocks are.
pub const SECTOR: u64 = 512;
/// The longest write of zeros, or discard, in one range: a single record.
pub const LONGEST_ZEROS: u64 = 16 << 20;
/// So many ranges in one request.
pub const RANGES: u32 = 16;
/// Bytes of the whole structure.
pub const BYTES: usize = 60;

/// Bits of the features.
pub mod feature {
    /// The guest cannot write.
    pub const RO: u64 = 1 << 5;
    /// The rest as in the standard.
    pub const SEG_MAX: u64 = 1 << 2;
    #[allow(missing_docs)]
    pub const BLK_SIZE: u64 = 1 << 6;
    #[allow(missing_docs)]
    pub const FLUSH: u64 = 1 << 9;
    #[allow(missing_docs)]
    pub const TOPOLOGY: u64 = 1 << 10;
    #[allow(missing_docs)]
    pub const MQ: u64 = 1 << 12;
    #[allow(missing_docs)]
    pub const DISCARD: u64 = 1 << 13;
    #[allow(missing_docs)]
    pub const WRITE_ZEROES: u64 = 1 << 14;
    /// Pages of the guest's memory that were written are marked (VHOST_F_LOG_ALL).
    pub const LOG_ALL: u64 = 1 << 26;
    #[allow(missing_docs)]
    pub const INDIRECT: u64 = 1 << 28;
    #[allow(missing_docs)]
    pub const EVENT_IDX: u64 = 1 << 29;
    #[allow(missing_docs)]
    pub const PROTOCOL: u64 = 1 << 30;
    #[allow(missing_docs)]
    pub const VERSION_1: u64 = 1 << 32;
}

/// What a disk can do.
///
/// Not VIRTIO_BLK_F_CONFIG_WCE, by which a guest says that it will not flush any more: QEMU does not say it again to the next process
/// that serves the disk, which would leave writes to flushes that never come.
///
/// `can_move`: QEMU may move the guest to another host.
pub fn features(is_read_only: bool, can_move: bool) -> u64 {
    use feature::*;
    let always = SEG_MAX | BLK_SIZE | FLUSH | TOPOLOGY | MQ | INDIRECT | EVENT_IDX | PROTOCOL | VERSION_1;
    let moves = if can_move { LOG_ALL } else { 0 };
    always | moves | if is_read_only { RO } else { DISCARD | WRITE_ZEROES }
}

/// The structure of a disk of so many bytes.
pub fn bytes(size: u64, queues: u16) -> [u8; BYTES] {
    let mut all = [0; BYTES];
    let mut put = |at: usize, bytes: &[u8]| all[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &(size / SECTOR).to_le_bytes());
    put(12, &126_u32.to_le_bytes());
    put(20, &512_u32.to_le_bytes());
    // Blocks of 4 KiB: that is what the image's page cache has. The best lengths are multiples of 4 KiB, up to 64.
    put(24, &[3]);
    put(26, &8_u16.to_le_bytes());
    put(28, &128_u32.to_le_bytes());
    put(34, &queues.to_le_bytes());
    let sectors = ((LONGEST_ZEROS / SECTOR) as u32).to_le_bytes();
    put(36, &sectors);
    put(40, &RANGES.to_le_bytes());
    put(44, &8_u32.to_le_bytes());
    put(48, &sectors);
    put(52, &RANGES.to_le_bytes());
    put(56, &[1]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_its_fields_where_the_standard_has_them() {
        let all = bytes(1 << 30, 4);
        let word = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().expect("four bytes"));
        assert_eq!(word(0), 2 << 20, "the capacity, in sectors");
        assert_eq!((word(20), all[24]), (512, 3));
        assert_eq!(all[34..36], [4, 0]);
        assert_eq!((word(36), word(48)), (32 << 10, 32 << 10));
    }
}
