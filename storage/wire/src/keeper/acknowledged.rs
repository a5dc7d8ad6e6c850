//! When enough keepers have confirmed a batch.

/// True if so few keepers that have the data count that witnesses have to make up the number. While there are enough of them,
/// each of `acks` hosts has what was acknowledged, and all but one of these may be lost.
pub fn needs_witnesses(acks: usize, with_data: usize) -> bool {
    with_data < acks
}

/// Up to which batch enough keepers have confirmed. `confirmed` is how far each one did that counts, and whether it has the
/// data: witnesses make up the number only if [they are needed](needs_witnesses), and at least one has to have the data.
pub fn acknowledged(acks: usize, confirmed: impl Iterator<Item = (u64, bool)> + Clone) -> u64 {
    let candidates = confirmed.clone().map(|(number, _)| number);
    let with_data = confirmed.clone().filter(|(_, has_data)| *has_data).count().clamp(1, acks.max(1));
    let is_enough = |number: u64| {
        let have = confirmed.clone().filter(|(at, _)| *at >= number);
        have.clone().count() >= acks && have.filter(|(_, has_data)| *has_data).count() >= with_data
    };
    candidates.filter(|number| is_enough(*number)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_acknowledged_has_enough_copies_and_one_with_data() {
        assert_eq!(acknowledged(2, [(5, true), (9, true), (7, true)].into_iter()), 7);
        assert_eq!(acknowledged(2, [(5, true), (9, false), (7, false)].into_iter()), 5);
        assert_eq!(
            acknowledged(2, [(5, true), (9, true), (9, false)].into_iter()),
            5,
            "no witness is needed"
        );
        assert_eq!(acknowledged(3, [(9, true), (9, true), (9, false), (8, false)].into_iter()), 9);
        assert_eq!(acknowledged(3, [(5, true), (9, true)].into_iter()), 0);
        assert_eq!(acknowledged(1, [(9, false), (4, true)].into_iter()), 4);
    }
}
