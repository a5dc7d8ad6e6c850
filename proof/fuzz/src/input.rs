//! Bytes as a source of decisions. When they are used up, every further decision is 0.

/// What is left of the input.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Reads from the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// True when nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Up to `n` bytes.
    pub fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.bytes(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// A byte.
    pub fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number that is small as a rule, and now and then at one of the edges where arithmetic breaks.
    pub fn number(&mut self) -> u64 {
        match self.u8() {
            250 => self.u64(),
            251 => u64::from(u32::MAX) - u64::from(self.u8()),
            252 => u64::from(u32::MAX) + u64::from(self.u8()),
            253 => i64::MAX as u64 - u64::from(self.u8()),
            254 => i64::MAX as u64 + u64::from(self.u8()),
            255 => u64::MAX - u64::from(self.u8()),
            small => u64::from(small) << 8 | u64::from(self.u8()),
        }
    }

    /// One of these.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[usize::from(self.u8()) % from.len()]
    }
}
