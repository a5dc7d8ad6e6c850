//! What a file may hold after a crash: the reference, and the checkers of P1, P2 and P3.
//!
//! A file's history is a *floor*, content that a crash may no longer take away, and a *tail* of published
//! changes after it. The floor rises when a sync is acknowledged (P1), and when a write of a tracked file
//! returns: the engine says that it is durable then.
//!
//! * Every change of the tail was logged: the content must be the floor with a prefix of the tail (P3), each
//!   change whole (P2), perhaps with one change that had not returned yet.
//! * Some were not: each byte must have a value that some prefix gives it. That is the kernel's own promise.
//!
//! Not verified: the order among untracked changes; atomicity of a change that a short write cut; the order of a write and of
//! one that a signal handler made inside it, if the process died in the handler (neither had returned to the program); the
//! size of a file after a failed sync; anything about a file whose untracked pages a failed sync lost.

use std::rc::Rc;

use crate::change::Change;

struct Step {
    seq: u64,
    change: Change,
    logged: bool,
    /// It came to be, or it did not: nobody can tell, because whoever made it was killed, or got an error.
    perhaps: bool,
}

impl Step {
    /// Applies it to every content there may be.
    fn apply(&self, contents: &mut Vec<Vec<u8>>) {
        let without = if self.perhaps { contents.clone() } else { Vec::new() };
        contents.iter_mut().for_each(|content| self.change.apply(content));
        contents.extend(without);
        if contents.len() > 1 {
            contents.sort_unstable();
            contents.dedup();
        }
    }
}

/// One file's history.
pub struct Model {
    /// Usually one content. Several: it is not known which of the changes of the dead came to be.
    floor: Vec<Vec<u8>>,
    tail: Vec<Step>,
    seq: u64,
    /// Changes begun and not published, by logical thread.
    begun: Vec<(usize, Change)>,
    /// Why nothing is promised about this file.
    pub unpromised: Option<&'static str>,
    /// A write-back failed: the file left the log and its records stay in it, so that a replay writes them into
    /// a file that may be shorter by now.
    pub failed: bool,
    /// Where an append begins that is under way: the end that the kernel sees, which lacks what is in the log alone.
    pub end: usize,
    /// A change is durable with the next acknowledged sync, not before: what is newer is as the kernel left it.
    pub lazy: bool,
}

impl Model {
    /// A file whose content is durable.
    pub fn holding(content: Vec<u8>) -> Self {
        Self {
            floor: vec![content],
            tail: Vec::new(),
            seq: 0,
            begun: Vec::new(),
            unpromised: None,
            failed: false,
            end: 0,
            lazy: false,
        }
    }

    /// The same, of a log that hardens at syncs.
    pub fn lazy(self, lazy: bool) -> Self {
        Self { lazy, ..self }
    }

    /// A thread begins a change.
    pub fn begin(&mut self, thread: usize, change: Change) {
        self.begun.push((thread, change));
    }

    /// The thread's innermost change is published, as `actual`; returns its number.
    pub fn publish(&mut self, thread: usize, actual: Change, logged: bool) -> u64 {
        self.end(thread);
        self.push(actual, logged)
    }

    /// The kernel did only a part of the thread's innermost change. Until the file has left the log, that says
    /// that all of it happened.
    pub fn publish_partly(&mut self, thread: usize, whole: Change, now: &[u8]) {
        self.end(thread);
        self.step(whole, true, true);
        self.step(Change::Becomes(Rc::new(now.to_vec())), false, true);
    }

    /// Ends the thread's innermost change without effect.
    pub fn end(&mut self, thread: usize) {
        if let Some(i) = self.begun.iter().rposition(|(t, _)| *t == thread) {
            self.begun.remove(i);
        }
    }

    /// The thread's innermost change came to be, or not: nobody knows.
    pub fn perhaps(&mut self, thread: usize) {
        if let Some(i) = self.begun.iter().rposition(|(t, _)| *t == thread) {
            let (_, change) = self.begun.remove(i);
            self.step(change, true, true);
        }
    }

    /// A change happened.
    pub fn push(&mut self, change: Change, logged: bool) -> u64 {
        self.step(change, logged, false)
    }

    fn step(&mut self, change: Change, logged: bool, perhaps: bool) -> u64 {
        self.seq += 1;
        self.tail.push(Step { seq: self.seq, change, logged, perhaps });
        self.seq
    }

    /// The thread's process died: its changes may or may not come to be. True if there are any.
    pub fn died(&mut self, thread: usize) -> bool {
        let (mine, others) = std::mem::take(&mut self.begun).into_iter().partition(|(t, _)| *t == thread);
        self.begun = others;
        let mine: Vec<(usize, Change)> = mine;
        let any = !mine.is_empty();
        for (_, change) in mine {
            self.step(change, true, true);
        }
        any
    }

    /// This was found in the file after a death: from now on it is what happened, or it may be. `half`: also if no change
    /// comes to this as a whole.
    pub fn found(&mut self, now: &[u8], for_certain: bool, half: bool) {
        if !self.seen().iter().any(|content| content == now) {
            if half {
                self.step(Change::Becomes(Rc::new(now.to_vec())), false, !for_certain);
            }
        } else if for_certain && self.tail.iter().all(|step| step.logged) {
            // Which changes came to be is decided; those before are as sure as they were.
            self.decide(now);
        } else if for_certain {
            self.step(Change::Becomes(Rc::new(now.to_vec())), false, false);
        }
    }

    /// Drops what did not come to be, given what did: one way in which everything fits.
    fn decide(&mut self, now: &[u8]) {
        let open: Vec<usize> = (0..self.tail.len()).filter(|i| self.tail[*i].perhaps).collect();
        for choice in (0..1u32 << open.len().min(8)).rev() {
            let kept = |i: usize| open.iter().position(|o| *o == i).is_none_or(|bit| choice >> bit & 1 == 1);
            for start in &self.floor {
                let mut content = start.clone();
                let steps = self.tail.iter().enumerate().filter(|(i, _)| kept(*i));
                steps.for_each(|(_, step)| step.change.apply(&mut content));
                if content == now {
                    self.floor = vec![start.clone()];
                    let mut i = 0;
                    self.tail.retain_mut(|step| {
                        step.perhaps = false;
                        i += 1;
                        kept(i - 1)
                    });
                    return;
                }
            }
        }
    }

    /// The newest published change.
    pub fn now(&self) -> u64 {
        self.seq
    }

    /// What readers should see: usually one content.
    pub fn seen(&self) -> Vec<Vec<u8>> {
        let mut contents = self.floor.clone();
        self.tail.iter().for_each(|step| step.apply(&mut contents));
        contents
    }

    /// Everything up to `seq` is acknowledged: a crash may not take it away.
    pub fn acknowledge(&mut self, seq: u64) {
        let n = self.tail.iter().take_while(|step| step.seq <= seq).count();
        for step in self.tail.drain(..n) {
            step.apply(&mut self.floor);
        }
    }

    /// Acknowledges up to `seq` if everything that far was logged.
    pub fn returned(&mut self, seq: u64) {
        if !self.lazy && self.tail.iter().take_while(|step| step.seq <= seq).all(|step| step.logged) {
            self.acknowledge(seq);
        }
    }

    /// True if something newer than the floor was not logged.
    pub fn has_unlogged(&self) -> bool {
        self.tail.iter().any(|step| !step.logged)
    }

    /// Recovery ended with this content.
    pub fn recovered(&mut self, content: Vec<u8>) {
        *self = Self::holding(content).lazy(self.lazy);
    }

    /// Is this a content that a crash now may leave?
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, content: &[u8]) -> Result<(), String> {
        if self.unpromised.is_some() || self.is_a_prefix(content) {
            return Ok(());
        }
        if self.has_unlogged() || self.lazy {
            return self.check_bytes(content);
        }
        Err(format!(
            "neither the acknowledged content nor that with later changes in order ({}); {}",
            self.brief(),
            self.difference(content)
        ))
    }

    fn is_a_prefix(&self, content: &[u8]) -> bool {
        let fits = |contents: &[Vec<u8>]| contents.iter().any(|one| one == content);
        let mut contents = self.floor.clone();
        if fits(&contents) {
            return true;
        }
        for step in &self.tail {
            step.apply(&mut contents);
            if fits(&contents) {
                return true;
            }
        }
        self.begun.iter().any(|(_, change)| fits(&self.with(&contents, change)))
    }

    fn states(&self) -> Vec<Vec<u8>> {
        let mut contents = self.floor.clone();
        let mut states = contents.clone();
        for step in &self.tail {
            step.apply(&mut contents);
            states.extend_from_slice(&contents);
        }
        for (_, change) in &self.begun {
            states.extend(self.with(&contents, change));
        }
        states
    }

    /// The same contents with a change that is under way.
    fn with(&self, contents: &[Vec<u8>], change: &Change) -> Vec<Vec<u8>> {
        let mut changed = contents.to_vec();
        changed.iter_mut().for_each(|content| change.apply(content));
        if let Change::Append(_) = change {
            let mut at_end = contents.to_vec();
            let placed = change.at(self.end);
            at_end.iter_mut().for_each(|content| placed.apply(content));
            changed.append(&mut at_end);
        }
        changed
    }

    fn check_bytes(&self, content: &[u8]) -> Result<(), String> {
        let states = self.states();
        let changes = || self.tail.iter().map(|step| &step.change).chain(self.begun.iter().map(|(_, c)| c));
        let ended = |change: &Change, len: usize| match change {
            // Without a record nobody finishes what a dead process had the kernel do half of.
            Change::Write(at, data) if self.lazy => *at < len && len <= at + data.len(),
            Change::Write(at, data) => len == at + data.len(),
            _ => false,
        };
        let is_a_size = |len: usize| {
            states.iter().any(|state| state.len() == len) || changes().any(|change| ended(change, len))
        };
        if !self.failed && !is_a_size(content.len()) {
            return Err(format!("size {} was never its size ({})", content.len(), self.brief()));
        }
        for (i, byte) in content.iter().enumerate() {
            let value = |state: &Vec<u8>| state.get(i).copied().unwrap_or(0);
            if !states.iter().any(|state| value(state) == *byte) {
                return Err(format!("byte {i} is {byte:#x}, which nobody wrote there ({})", self.brief()));
            }
        }
        Ok(())
    }

    fn brief(&self) -> String {
        let tail: Vec<String> = self
            .tail
            .iter()
            .map(|step| {
                format!(
                    "{}{}{}",
                    if step.perhaps { "perhaps " } else { "" },
                    step.change.brief(),
                    if step.logged { "" } else { " unlogged" }
                )
            })
            .chain(self.begun.iter().map(|(_, c)| format!("begun: {}", c.brief())))
            .collect();
        format!("{} sure bytes, then: {}", self.floor[0].len(), tail.join(", "))
    }

    fn difference(&self, content: &[u8]) -> String {
        let seen = self.seen().swap_remove(0);
        let Some(at) = content.iter().zip(&seen).position(|(a, b)| a != b) else {
            return format!("{} bytes for {}", content.len(), seen.len());
        };
        let end = at + content[at..].iter().zip(&seen[at..]).take_while(|(a, b)| a != b).count();
        let (found, newest) = (content[at], seen[at]);
        format!("bytes {at}..{end}: {found:#x}, where the newest is {newest:#x}")
    }
}

#[cfg(test)]
mod tests;
