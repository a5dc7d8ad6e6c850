//! Which machine this is, and in which boot.

/// Where images and run-time memories lie: a tmpfs on every Linux.
pub const MEMORY: &str = "/dev/shm";

/// The boot id of this boot (random/boot_id, proc(5)).
pub fn boot() -> [u8; 16] {
    hex_id("/proc/sys/kernel/random/boot_id")
}

/// The machine id of this host (machine-id(5)); zeros where there is none.
pub fn host() -> [u8; 16] {
    hex_id("/etc/machine-id")
}

fn hex_id(path: &str) -> [u8; 16] {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}
