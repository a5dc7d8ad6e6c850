//! What a guest may find on its disk: the reference for `seawall disk`, in the guest's own terms.
//!
//! A change is *asked for* and *answered*. It is *sure* once a flush is answered that was asked for behind its answer. After a
//! power cut:
//!
//! * what is sure is there, and beside it nothing but what was asked for (P1);
//! * a change that the log has is there as a whole or not at all (P2);
//! * if one is there, so is every one that was answered before it was asked for (P3).
//!
//! A change that went around the log, or that a log on a device under `tail` waits for a flush to have, may be there in any part,
//! as on any disk. While the machine is up a read sees the newest. A guest never asks for two things at once that overlap.
//!
//! Not verified: a change that was answered with an error, which may be there in any part, and what was read with one.

/// A change that may not be there, or that something under it may not be.
struct Change {
    from: usize,
    data: Vec<u8>,
    asked: u64,
    answered: Option<u64>,
    /// No power cut takes it away.
    sure: bool,
    /// It is there as a whole or not at all.
    whole: bool,
    /// The file system refused a part of it.
    refused: bool,
}

impl Change {
    fn covers(&self, at: usize) -> bool {
        (self.from..self.from + self.data.len()).contains(&at)
    }
}

/// What a content says of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    There,
    NotThere,
}

/// A guest's disk.
pub struct Platter {
    /// What the machine's disks write whole, within a sector.
    unit: usize,
    /// Nothing is promised of what no flush was answered for.
    lazy: bool,
    clock: u64,
    /// What is sure.
    floor: Vec<u8>,
    /// In the order in which they were asked for.
    tail: Vec<Change>,
}

impl Platter {
    /// A disk with this content. `lazy`: its log hardens at flushes, so that until then it is a disk as any other.
    pub fn holding(content: Vec<u8>, unit: usize, lazy: bool) -> Self {
        Self { unit: unit.min(512), lazy, clock: 0, floor: content, tail: Vec::new() }
    }

    /// Bytes of the disk.
    pub fn size(&self) -> usize {
        self.floor.len()
    }

    /// The guest asks for a change. Returns its name.
    pub fn ask(&mut self, from: usize, data: Vec<u8>) -> u64 {
        self.clock += 1;
        let (asked, whole) = (self.clock, !self.lazy);
        self.tail.push(Change { from, data, asked, answered: None, sure: false, whole, refused: false });
        asked
    }

    /// A flush that is asked for now makes sure what was answered until then.
    pub fn now(&self) -> u64 {
        self.clock
    }

    /// These bytes of a change are about to be seen by readers. Not `logged`: nothing brings them back.
    pub fn publish(&mut self, at: usize, logged: bool) {
        let whole = logged && !self.lazy;
        self.under_way(at).whole = whole;
    }

    /// The file system did a part of a change and refuses the rest.
    pub fn refuse(&mut self, at: usize) {
        let change = self.under_way(at);
        (change.refused, change.whole) = (true, false);
    }

    fn under_way(&mut self, at: usize) -> &mut Change {
        let is = |change: &&mut Change| change.answered.is_none() && change.covers(at);
        self.tail.iter_mut().rev().find(is).expect("a change that a guest asked for")
    }

    fn named(&mut self, name: u64) -> &mut Change {
        self.tail.iter_mut().find(|change| change.asked == name).expect("a change that was asked for")
    }

    /// A change is answered.
    pub fn answer(&mut self, name: u64) {
        self.clock += 1;
        let now = self.clock;
        self.named(name).answered = Some(now);
    }

    /// It is answered with an error. False: nothing explains that.
    pub fn fail(&mut self, name: u64) -> bool {
        let change = self.named(name);
        change.whole = false;
        change.refused
    }

    /// A flush is answered that was asked for at this moment.
    pub fn flushed(&mut self, asked: u64) {
        for change in &mut self.tail {
            change.sure |= change.answered.is_some_and(|answered| answered <= asked);
        }
        let sure = self.tail.iter().take_while(|change| change.sure).count();
        for change in self.tail.drain(..sure) {
            self.floor[change.from..change.from + change.data.len()].copy_from_slice(&change.data);
        }
    }

    /// True if a power cut may leave some of what is not in the log.
    pub fn has_unlogged(&self) -> bool {
        self.tail.iter().any(|change| !change.sure && !change.whole)
    }

    /// Recovery ended with this content.
    pub fn recovered(&mut self, content: Vec<u8>) {
        *self = Self::holding(content, self.unit, self.lazy);
    }

    /// The offsets of the units of a range.
    fn units(&self, from: usize, len: usize) -> impl Iterator<Item = usize> + use<> {
        (from..from + len).step_by(self.unit)
    }

    /// The changes of a unit, by their places in the tail, the newest first.
    fn changes(&self, at: usize) -> impl Iterator<Item = (usize, &Change)> {
        self.tail.iter().enumerate().rev().filter(move |(_, change)| change.covers(at))
    }

    fn holds(&self, change: &Change, at: usize, unit: &[u8]) -> bool {
        change.data[at - change.from..][..self.unit] == *unit
    }

    fn is_floor(&self, at: usize, unit: &[u8]) -> bool {
        self.floor[at..at + self.unit] == *unit
    }

    /// Is this what a read sees?
    ///
    /// # Errors
    /// Where it is not.
    pub fn check_read(&self, from: usize, data: &[u8]) -> Result<(), String> {
        for (at, unit) in self.units(from, data.len()).zip(data.chunks(self.unit)) {
            let mut seen = false;
            let mut hidden = false;
            for (_, change) in self.changes(at) {
                seen |= self.holds(change, at, unit);
                // Of one that failed nobody knows.
                hidden = change.answered.is_some();
                if seen || hidden {
                    break;
                }
            }
            if !seen && (hidden || !self.is_floor(at, unit)) {
                return Err(format!("a read of {from}+{} sees something else at {at}", data.len()));
            }
        }
        Ok(())
    }

    /// Is this a content that a power cut now may leave?
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, content: &[u8]) -> Result<(), String> {
        if content.len() != self.floor.len() {
            return Err(format!("{} bytes of a disk of {}", content.len(), self.floor.len()));
        }
        let fate = |change: &Change| if change.sure { Fate::There } else { Fate::Open };
        let mut fates: Vec<Fate> = self.tail.iter().map(fate).collect();
        // Each fate that is settled may settle others.
        loop {
            let before = fates.clone();
            for at in self.units(0, content.len()) {
                self.look(at, &content[at..at + self.unit], &mut fates)?;
            }
            self.order(&mut fates)?;
            if fates == before {
                return Ok(());
            }
        }
    }

    /// What a unit says of the changes that it is part of.
    fn look(&self, at: usize, unit: &[u8], fates: &mut [Fate]) -> Result<(), String> {
        // Those that may have left it so; nothing shows what is under one that is there.
        let mut fitting = Vec::new();
        let mut hidden = false;
        for (i, change) in self.changes(at) {
            if fates[i] != Fate::NotThere && self.holds(change, at, unit) {
                fitting.push(i);
            }
            hidden = fates[i] == Fate::There;
            if hidden {
                break;
            }
        }
        let may_be_floor = !hidden && self.is_floor(at, unit);
        if fitting.is_empty() && !may_be_floor {
            return Err(format!("{}: byte {at} is {:#x}: {}", self.brief(at), unit[0], self.why(at, fates)));
        }
        let newest = fitting.first().copied();
        let newer = self.changes(at).take_while(|(i, _)| Some(*i) != newest);
        newer.filter(|(_, change)| change.whole).for_each(|(i, _)| fates[i] = Fate::NotThere);
        if let ([only], false) = (fitting.as_slice(), may_be_floor)
            && self.tail[*only].whole
        {
            fates[*only] = Fate::There;
        }
        Ok(())
    }

    fn why(&self, at: usize, fates: &[Fate]) -> &'static str {
        let told = |fate: Fate| self.changes(at).any(|(i, change)| fates[i] == fate && !change.sure);
        match () {
            () if self.changes(at).any(|(_, change)| change.sure) => "what was flushed is not there",
            () if told(Fate::There) || told(Fate::NotThere) => "a request is there in part",
            () => "nobody wrote that since it was flushed",
        }
    }

    /// What is there was not overtaken.
    fn order(&self, fates: &mut [Fate]) -> Result<(), String> {
        let there =
            self.tail.iter().zip(&*fates).filter(|(change, fate)| change.whole && **fate == Fate::There);
        let Some(last) = there.map(|(change, _)| change.asked).max() else { return Ok(()) };
        for (change, fate) in self.tail.iter().zip(fates) {
            if !change.whole || change.answered.is_none_or(|answered| answered > last) {
                continue;
            }
            if *fate == Fate::NotThere {
                return Err(format!("{}: a later request overtook it", self.brief(change.from)));
            }
            *fate = Fate::There;
        }
        Ok(())
    }

    /// The requests of a unit, in a few words.
    fn brief(&self, at: usize) -> String {
        let told = |(_, change): (usize, &Change)| {
            let (from, len) = (change.from, change.data.len());
            let state = match change.answered {
                _ if change.sure => "flushed",
                Some(_) => "answered",
                None => "asked for",
            };
            let around = if change.whole { "" } else { ", in parts" };
            format!("{from}+{len} ({} {state}{around})", change.asked)
        };
        let all: Vec<String> = self.changes(at).map(told).collect();
        if all.is_empty() { "no request".into() } else { all.join(", ") }
    }
}

#[cfg(test)]
mod tests;
