//! The states of one directory since its last acknowledged sync.

use std::collections::BTreeMap;

use crate::tree::{Lead, Names};

/// A state: since which change the directory was in it.
#[derive(Clone, Debug)]
pub struct State {
    /// The change that led to it.
    pub since: u64,
    /// What the names led to.
    pub names: Names,
}

/// What a directory was.
#[derive(Debug)]
pub struct Past {
    /// The first state is that of the last acknowledged sync.
    states: Vec<State>,
    /// The last change whose call has returned.
    returned: u64,
    /// For each file the last change that gave it a name.
    named: BTreeMap<usize, u64>,
    /// It enters the log name by name, and was never synced.
    pub is_entering: bool,
}

impl Default for Past {
    fn default() -> Self {
        Self::at(0, Names::new())
    }
}

impl Past {
    /// A directory that is in this state.
    pub fn at(since: u64, names: Names) -> Self {
        Self {
            states: vec![State { since, names }],
            returned: since,
            named: BTreeMap::new(),
            is_entering: false,
        }
    }

    /// Some of its names lead elsewhere.
    pub fn change<'l>(&mut self, now: u64, leads: impl Iterator<Item = &'l Lead>) {
        let mut names = self.now().names.clone();
        let mut is_changed = false;
        for (_, name, file) in leads {
            match file {
                Some(file) => names.insert(name.clone(), *file),
                None => names.remove(name),
            };
            self.named.extend(file.map(|file| (file, now)));
            is_changed = true;
        }
        if is_changed {
            self.states.push(State { since: now, names });
        }
    }

    /// Its present state.
    pub fn now(&self) -> &State {
        // There is always one.
        &self.states[self.states.len() - 1]
    }

    /// All states that a power cut may leave.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// A call has returned whose last change was this one.
    pub fn returned(&mut self, change: u64) {
        self.returned = self.returned.max(change);
    }

    /// The last change whose call has returned.
    pub fn last_returned(&self) -> u64 {
        self.returned
    }

    /// The last change that gave this file a name which it still has, if the call has returned.
    pub fn last_named(&self, file: usize) -> Option<u64> {
        let is_here = self.now().names.values().any(|is| *is == file);
        self.named.get(&file).copied().filter(|change| is_here && *change <= self.returned)
    }

    /// Everything up to this change is durable.
    pub fn is_synced(&mut self, change: u64) {
        let last = self.states.iter().rposition(|state| state.since <= change).unwrap_or(0);
        self.states.drain(..last);
    }
}
