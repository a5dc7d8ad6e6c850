//! Keys and values in etcd's JSON (RFC 4648, with padding).

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of each letter; of other bytes none.
const VALUES: [Option<u8>; 256] = {
    let mut values = [None; 256];
    let mut i = 0;
    while i < LETTERS.len() {
        values[LETTERS[i] as usize] = Some(i as u8);
        i += 1;
    }
    values
};

/// As text.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let number = (0..3).fold(0u32, |n, i| n << 8 | u32::from(three.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= three.len() { letter as char } else { '=' });
        }
    }
    text
}

/// From text; `None` if it is not of this kind.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.as_bytes().chunks(4) {
        let filled = four.iter().take_while(|letter| **letter != b'=').count();
        let mut number = 0;
        for i in 0..4 {
            number = number << 6 | if i < filled { VALUES[four[i] as usize]?.into() } else { 0 };
        }
        let whole = [(number >> 16) as u8, (number >> 8) as u8, number as u8];
        bytes.extend(&whole[..filled.checked_sub(1)?]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc() {
        let all =
            [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (plain, text) in all {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(decode("Z*=="), None);
    }
}
