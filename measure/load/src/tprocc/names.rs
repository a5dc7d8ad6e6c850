//! Texts and uneven random numbers, as the specification draws them.

use crate::random::Random;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The last name of number 0 to 999.
pub fn last_name(number: u32) -> String {
    [number / 100 % 10, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Which constant an uneven number is drawn with.
#[derive(Clone, Copy)]
pub enum Uneven {
    /// Last names when loading.
    NameLoaded,
    /// Last names when asking.
    NameAsked,
    /// Customers.
    Customer,
    /// Items.
    Item,
}

/// A number from `first` to `last`, some of them far more often than others (NURand).
pub fn uneven(random: &mut Random, which: Uneven, first: u32, last: u32) -> u32 {
    let (a, c) = match which {
        Uneven::NameLoaded => (255, 157),
        Uneven::NameAsked => (255, 223),
        Uneven::Customer => (1023, 259),
        Uneven::Item => (8191, 7911),
    };
    let (first, last) = (u64::from(first), u64::from(last));
    let mixed = random.between(0, a) | random.between(first, last);
    ((mixed + c) % (last - first + 1) + first) as u32
}

/// Letters and digits.
pub fn text(random: &mut Random, shortest: u64, longest: u64) -> String {
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ab";
    let len = random.between(shortest, longest) as usize;
    let mut text = String::with_capacity(len);
    let mut bits = 0;
    for place in 0..len {
        if place % 10 == 0 {
            bits = random.any();
        }
        text.push(LETTERS[(bits & 63) as usize].into());
        bits >>= 6;
    }
    text
}

/// Digits.
pub fn digits(random: &mut Random, count: usize) -> String {
    (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
}

/// Text of an item or of stock: every tenth says ORIGINAL somewhere.
pub fn data(random: &mut Random) -> String {
    let mut data = text(random, 26, 50);
    if random.percent(10) {
        let at = random.below(data.len() as u64 - 7) as usize;
        data.replace_range(at..at + 8, "ORIGINAL");
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_made_of_syllables() {
        assert_eq!((last_name(0).as_str(), last_name(371).as_str()), ("BARBARBAR", "PRICALLYOUGHT"));
    }

    #[test]
    fn uneven_numbers_stay_in_their_range_and_are_uneven() {
        let mut random = Random::new(1, 1);
        let mut seen = vec![0u32; 3000];
        for _ in 0..300_000 {
            seen[uneven(&mut random, Uneven::Customer, 1, 3000) as usize - 1] += 1;
        }
        let hottest = seen.iter().max().copied().unwrap_or_default();
        assert!(hottest > 300, "a hundred each would be even; the hottest has {hottest}");
    }

    #[test]
    fn some_data_is_original() {
        let mut random = Random::new(1, 1);
        let originals = (0..1000).filter(|_| data(&mut random).contains("ORIGINAL")).count();
        assert!((60..150).contains(&originals), "{originals}");
    }
}
