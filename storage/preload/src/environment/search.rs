//! The search for the one variable in an environment that comes in pieces, a byte at a time.

/// The variable, as it begins.
pub const NAME: &[u8] = b"SEAWALL_SOCKET=";
/// Room of sockaddr_un's path.
pub const SOCKET_PATH_MAX: usize = 108;

/// Looks for `NAME` at the start of NUL-separated strings, a byte at a time.
pub struct Search {
    /// Bytes of `NAME` matched in this string; `None` once it differs.
    matched: Option<usize>,
    value: [u8; SOCKET_PATH_MAX],
    len: usize,
}

impl Default for Search {
    fn default() -> Self {
        Self { matched: Some(0), value: [0; SOCKET_PATH_MAX], len: 0 }
    }
}

impl Search {
    /// True when the value is complete.
    pub fn step(&mut self, byte: u8) -> bool {
        match self.matched {
            Some(n) if n == NAME.len() => {
                if byte != 0 && self.len < self.value.len() {
                    self.value[self.len] = byte;
                    self.len += 1;
                }
                return byte == 0;
            }
            _ if byte == 0 => self.matched = Some(0),
            Some(n) if NAME[n] == byte => self.matched = Some(n + 1),
            _ => self.matched = None,
        }
        false
    }

    /// The value, cut at the room there is.
    pub fn value(&self) -> &[u8] {
        &self.value[..self.len]
    }
}
