//! How a UUID is written, and what of it travels.

/// A UUID as it is written: as `seawall inspect` does.
pub fn uuid_text(uuid: [u8; 16]) -> String {
    format!("{:032x}", u128::from_le_bytes(uuid))
}

/// The UUID that is written so.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(text, 16).ok().map(u128::to_le_bytes)).flatten()
}

/// What frames and batches say of a log.
pub fn low_half(uuid: [u8; 16]) -> u64 {
    u128::from_le_bytes(uuid) as u64
}
