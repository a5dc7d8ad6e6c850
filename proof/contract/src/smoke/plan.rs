//! What a worker does: an endless list of operations that follows from the seed.

/// Length of a worker's region in a shared file, and of its own file at most.
pub const REGION: u64 = 512 * 1024;
/// The largest single write.
pub const LARGEST: usize = 256 * 1024;

/// How bytes are written.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Pwrite,
    SeekAndWrite,
    Vectored,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Bytes at an offset of the region.
    Write {
        offset: u64,
        length: usize,
        way: Way,
        forked: bool,
    },
    /// Bytes at the end, through O_APPEND. Own files only.
    Append {
        length: usize,
    },
    /// Own files only.
    Truncate {
        length: u64,
    },
    Fsync,
    Fdatasync,
    /// Closes and opens again.
    Reopen,
}

/// Names one operation of one life of one worker.
#[derive(Clone, Copy)]
pub struct Step {
    pub seed: u64,
    pub worker: usize,
    pub life: u64,
    pub index: u64,
}

impl Step {
    fn random(self, salt: u64) -> u64 {
        // splitmix64 over everything that names the step.
        let mut value = self.seed ^ (self.worker as u64) << 40 ^ self.life << 52 ^ self.index << 8 ^ salt;
        value = value.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A length from 1 byte to [`LARGEST`], every order of magnitude as likely as the next.
    fn length(self) -> usize {
        let magnitude = self.random(1) % 19;
        let length = (1 << magnitude) + self.random(2) % (1 << magnitude);
        (length as usize).min(LARGEST)
    }

    /// What to do in this step.
    pub fn operation(self, own_file: bool) -> Operation {
        let dice = self.random(3) % 100;
        let length = self.length();
        match dice {
            0..=14 => Operation::Fsync,
            15..=29 => Operation::Fdatasync,
            30..=33 => Operation::Reopen,
            34..=53 if own_file => Operation::Append { length },
            54..=57 if own_file => Operation::Truncate { length: self.random(4) % REGION },
            _ => Operation::Write {
                offset: self.random(5) % (REGION - length as u64 + 1),
                length,
                way: [Way::Pwrite, Way::SeekAndWrite, Way::Vectored][(self.random(6) % 3) as usize],
                forked: self.random(7).is_multiple_of(40),
            },
        }
    }

    /// The bytes this step writes.
    pub fn fill(self, buffer: &mut [u8]) {
        let key = self.random(8).to_le_bytes();
        for (index, chunk) in buffer.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&key[..chunk.len()]);
            chunk[0] ^= index as u8;
        }
    }
}
