//! What the guest told of its cases.

use serde::Serialize;

use crate::guest::Line;
use crate::report::Outcome;

/// All boots together.
#[derive(Debug, Default, Serialize)]
pub struct Seen {
    /// Cases that passed, with their seconds.
    passed: Vec<String>,
    /// What cannot be tried here, and why.
    skipped: Vec<String>,
    /// What failed, and the end of its output.
    failed: Vec<String>,
    /// Boots that did not come to their end.
    unfinished: Vec<String>,
    /// The kernel's.
    complaints: Vec<String>,
    /// How long all took.
    pub seconds: f64,
}

impl Seen {
    /// What one boot told.
    pub fn add(&mut self, lines: &[Line], complaints: Vec<String>, phase: &str) {
        let told = |word: &str| {
            let lines = lines.iter().filter(|line| line.word == word);
            lines.map(|line| format!("{} {}", line.subject, line.rest)).collect::<Vec<_>>()
        };
        self.passed.extend(told("passed"));
        self.skipped.extend(told("skipped"));
        self.failed.extend(told("failed"));
        self.complaints.extend(complaints);
        if !lines.iter().any(|line| line.word == "done" && line.subject == phase) {
            self.unfinished.push(phase.to_owned());
        }
    }
}

impl Outcome for Seen {
    fn is_clean(&self) -> bool {
        let bad = [&self.failed, &self.unfinished, &self.complaints];
        !self.passed.is_empty() && bad.iter().all(|list| list.is_empty())
    }

    fn print(&self) {
        self.passed.iter().for_each(|line| println!("passed {line}"));
        self.skipped.iter().for_each(|line| println!("skipped {line}"));
        self.failed.iter().for_each(|line| println!("FAILED {line}"));
        self.unfinished.iter().for_each(|phase| println!("NOT FINISHED: {phase}"));
        self.complaints.iter().for_each(|line| println!("the kernel: {line}"));
        println!("{} passed, {} failed, {:.0} s", self.passed.len(), self.failed.len(), self.seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(word: &str, subject: &str) -> Line {
        Line { word: word.to_owned(), subject: subject.to_owned(), rest: "1 s".to_owned() }
    }

    #[test]
    fn only_a_boot_that_came_to_its_end_and_in_which_nothing_failed_is_clean() {
        let is_clean = |lines: &[Line], complaints: &[&str]| {
            let mut seen = Seen::default();
            seen.add(lines, complaints.iter().map(|text| (*text).to_owned()).collect(), "cases");
            seen.is_clean()
        };
        let (passed, done) = (line("passed", "x"), line("done", "cases"));
        assert!(is_clean(&[passed.clone(), done.clone()], &[]));
        assert!(!is_clean(std::slice::from_ref(&done), &[]), "nothing was tried");
        assert!(!is_clean(std::slice::from_ref(&passed), &[]), "the guest ended early");
        assert!(!is_clean(&[passed.clone(), line("failed", "y"), done.clone()], &[]));
        assert!(!is_clean(&[passed, done], &["I/O error, dev vdb"]));
    }
}
