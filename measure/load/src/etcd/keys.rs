//! Which keys a client puts, and with which values.

/// What all keys of a client begin with.
pub fn prefix_of(client: i32) -> String {
    format!("seawall/{client}/")
}

/// Keys sort as their numbers do.
pub fn key_of(client: i32, seq: i64) -> String {
    format!("{}{seq:012}", prefix_of(client))
}

/// The key, and as much behind it as is asked for.
pub fn value_of(client: i32, seq: i64, bytes: usize) -> String {
    let key = key_of(client, seq);
    format!("{key} {}", "x".repeat(bytes.saturating_sub(key.len() + 1)))
}
