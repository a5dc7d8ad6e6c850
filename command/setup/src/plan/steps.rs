//! What a plan consists of, and its text.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::act::Act;
use super::check::Check;

/// What a plan is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// A device, made ready.
    Provision,
    /// Several disks as one.
    Layout,
    /// Memory of several kinds.
    Tier,
}

impl Of {
    /// The command that makes such plans.
    pub fn command(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Layout => "layout",
            Self::Tier => "tier",
        }
    }
}

/// What is to be done to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this form.
    pub version: u32,
    /// By which it is undone.
    pub name: String,
    /// What it is of.
    pub of: Of,
    /// What to know before deciding whether to carry it out.
    pub about: Vec<String>,
    /// What must hold before the first step.
    pub needs: Vec<Check>,
    /// The steps.
    pub steps: Vec<Step>,
    /// What to type afterwards.
    pub next: Vec<String>,
    /// What later commands of the same kind need to know.
    #[serde(default)]
    pub notes: serde_json::Value,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it brings.
    pub title: String,
    /// What must hold right before it.
    pub needs: Vec<Check>,
    /// What is done.
    pub act: Act,
    /// What takes it back; nothing where another step's undoing does.
    pub undo: Option<Act>,
    /// What must hold before anything is taken back.
    pub undo_needs: Vec<Check>,
    /// That what is taken back is still what was made: names of devices change from start to start.
    pub undo_if: Option<Check>,
    /// How far it came.
    pub state: State,
}

/// How far a step came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not begun.
    #[default]
    Planned,
    /// Begun; nobody knows whether it was done.
    Begun,
    /// Done.
    Done,
}

impl Plan {
    /// An empty plan.
    pub fn new(of: Of, name: &str) -> Self {
        Self {
            version: 1,
            name: name.to_owned(),
            of,
            about: Vec::new(),
            needs: Vec::new(),
            steps: Vec::new(),
            next: Vec::new(),
            notes: serde_json::Value::Null,
        }
    }

    /// The text that is shown: each step as one would type it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.about.iter().for_each(|line| text += &format!("{line}\n"));
        if !self.about.is_empty() {
            text.push('\n');
        }
        for (number, step) in self.steps.iter().enumerate() {
            text += &format!("{:>2}. {}\n", number + 1, step.title);
            step.act.lines().iter().for_each(|line| text += &format!("      {line}\n"));
        }
        text
    }
}

impl Step {
    /// A step.
    pub fn new(title: impl Into<String>, act: Act) -> Self {
        let (needs, undo_needs) = (Vec::new(), Vec::new());
        Self { title: title.into(), needs, act, undo: None, undo_needs, undo_if: None, state: State::Planned }
    }

    /// A new file: nothing is there before, and it is removed as long as it is as it was written.
    pub fn file(title: impl Into<String>, path: PathBuf, text: &str) -> Self {
        let text = text.to_owned();
        Self::new(title, Act::Write { path: path.clone(), text: text.clone() })
            .needs(Check::Absent { path: path.clone() })
            .undo(Act::Remove { path: path.clone() })
            .undo_needs(Check::Unchanged { path, text })
    }

    /// What is done besides: after it, before it is taken back, and after that.
    #[must_use]
    pub fn around<const D: usize, const B: usize, const A: usize>(
        mut self,
        done: [Act; D],
        before: [Act; B],
        after: [Act; A],
    ) -> Self {
        self.act = Act::All([self.act].into_iter().chain(done).collect());
        self.undo = Some(Act::All(before.into_iter().chain(self.undo).chain(after).collect()));
        self
    }

    /// Says what takes it back.
    #[must_use]
    pub fn undo(mut self, act: Act) -> Self {
        self.undo = Some(act);
        self
    }

    /// Says what must hold right before it.
    #[must_use]
    pub fn needs(mut self, check: Check) -> Self {
        self.needs.push(check);
        self
    }

    /// Says by what it is known again.
    #[must_use]
    pub fn undo_if(mut self, check: Check) -> Self {
        self.undo_if = Some(check);
        self
    }

    /// Says what must hold before anything is taken back.
    #[must_use]
    pub fn undo_needs(mut self, check: Check) -> Self {
        self.undo_needs.push(check);
        self
    }
}
