//! Random UUIDs.

/// A random UUID (version 4), as tools write it.
pub fn uuid() -> String {
    let bits = fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let text = format!("{bits:032x}");
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

#[cfg(test)]
mod tests {
    #[test]
    fn they_are_of_version_4_and_differ() {
        let (one, other) = (super::uuid(), super::uuid());
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
        assert!("89ab".contains(&one[19..20]), "{one}");
    }
}
