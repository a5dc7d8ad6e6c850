//! What a client does in each step, and what its files are before, in and after it.

use std::collections::BTreeMap;

use crate::random::Random;

/// Steps of one run: the numbers of the next one begin behind these.
pub(super) const RUN: i64 = 1_000_000;
/// Files of one client.
const FILES: u64 = 4;

/// A step. Each is durable when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A run begins. Nothing is changed.
    Begin,
    /// Everything is removed.
    Clear,
    /// A new file is written, synced, and renamed to this one.
    Replace(u64),
    /// The file is written anew, in place, and synced.
    Rewrite(u64),
    /// It is removed.
    Remove(u64),
    /// The first becomes the second.
    Rotate(u64, u64),
}

/// What a file holds: all bytes of one step's, or it is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// All of it was written in this step.
    Of(i64),
    /// Nothing was promised.
    Any,
}

/// A client's files by name.
pub(super) type State = BTreeMap<String, Content>;

pub(super) fn name(client: i32, file: u64) -> String {
    format!("store-{client}-{file}")
}

pub(super) fn temporary(client: i32) -> String {
    format!("store-{client}.tmp")
}

/// True for a name of this client's.
pub(super) fn is_of(client: i32, name: &str) -> bool {
    name.starts_with(&format!("store-{client}-")) || name == temporary(client)
}

impl Step {
    /// The client's step with this number.
    pub(super) fn of(client: i32, seq: i64) -> Self {
        match seq % RUN {
            0 => return Self::Begin,
            1 => return Self::Clear,
            _ => {}
        }
        let random = &mut Random::new(seq as u64, client as u64);
        let file = random.below(FILES);
        match random.below(10) {
            0..=5 => Self::Replace(file),
            6 => Self::Rewrite(file),
            7 => Self::Remove(file),
            _ => Self::Rotate(file, (file + 1 + random.below(FILES - 1)) % FILES),
        }
    }

    /// What the client's files may be while the step is under way, and are when it is over: the last one.
    pub(super) fn through(self, client: i32, seq: i64, before: &State) -> Vec<State> {
        let mut states = vec![before.clone()];
        let mut then = |change: &dyn Fn(&mut State)| {
            let mut next = states.last().cloned().unwrap_or_default();
            change(&mut next);
            states.push(next);
        };
        match self {
            Self::Begin => {}
            Self::Clear => {
                for gone in before.keys() {
                    then(&|state| {
                        state.remove(gone);
                    });
                }
            }
            Self::Replace(file) => {
                then(&|state| {
                    state.insert(temporary(client), Content::Any);
                });
                then(&|state| {
                    state.remove(&temporary(client));
                    state.insert(name(client, file), Content::Of(seq));
                });
            }
            Self::Rewrite(file) => {
                then(&|state| {
                    state.insert(name(client, file), Content::Any);
                });
                then(&|state| {
                    state.insert(name(client, file), Content::Of(seq));
                });
            }
            Self::Remove(file) => then(&|state| {
                state.remove(&name(client, file));
            }),
            Self::Rotate(from, to) => then(&|state| {
                if let Some(content) = state.remove(&name(client, from)) {
                    state.insert(name(client, to), content);
                }
            }),
        }
        states
    }
}

/// The bytes that a step writes: some KiB, and now and then more than anybody keeps in a log.
pub(super) fn bytes(client: i32, seq: i64) -> Vec<u8> {
    let random = &mut Random::new(!seq as u64, client as u64);
    let len = if random.below(40) == 0 { 200 << 10 } else { random.below(24 << 10) };
    let mut bytes = format!("{client} {seq}\n").into_bytes();
    while (bytes.len() as u64) < len {
        bytes.extend(random.any().to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_follows_from_its_number_and_ends_where_the_next_begins() {
        let mut state = State::new();
        for seq in 0..500 {
            let states = Step::of(1, seq).through(1, seq, &state);
            assert_eq!(states.first(), Some(&state));
            state = states.last().cloned().expect("one at least");
            assert!(
                state.values().all(|content| *content != Content::Any),
                "{seq}: a step is over when all is known"
            );
            assert!(state.keys().all(|name| is_of(1, name) && !is_of(2, name)));
        }
        assert!(!state.is_empty());
        assert_eq!([RUN, RUN + 1].map(|seq| Step::of(1, seq)), [Step::Begin, Step::Clear]);
        assert_eq!(bytes(1, 7), bytes(1, 7));
    }
}
