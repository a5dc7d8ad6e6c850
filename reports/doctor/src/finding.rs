//! A finding: what is, why it matters, how sure that is, and what mends it.

pub use seawall_page::Sure;
use serde::Serialize;

/// What a finding is about. The order is the one of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Data that was acknowledged can be lost or damaged.
    Durability,
    /// Something is slower than it has to be.
    Speed,
    /// Good to know: nothing is wrong.
    Information,
}

/// One finding. Its fields are those of the JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// A stable name, for scripts and exceptions: `fsync-off`.
    pub id: &'static str,
    /// What it is about.
    pub kind: Kind,
    /// The device, mount point, file or setting.
    pub subject: String,
    /// What is.
    pub what: String,
    /// Why that matters.
    pub why: String,
    /// How sure.
    pub sure: Sure,
    /// Why so sure, or not.
    pub sure_because: String,
    /// Commands that mend it, or that show more. They are never run here.
    pub commands: Vec<String>,
}

impl Finding {
    /// Acknowledged data is at risk.
    pub fn durability(id: &'static str, subject: impl Into<String>) -> Self {
        Self::new(Kind::Durability, id, subject)
    }

    /// Something costs speed.
    pub fn speed(id: &'static str, subject: impl Into<String>) -> Self {
        Self::new(Kind::Speed, id, subject)
    }

    /// Something is good to know.
    pub fn information(id: &'static str, subject: impl Into<String>) -> Self {
        Self::new(Kind::Information, id, subject)
    }

    /// The same, and only good to know, if this holds.
    #[must_use]
    pub fn harmless_if(mut self, harmless: bool) -> Self {
        if harmless {
            self.kind = Kind::Information;
        }
        self
    }

    fn new(kind: Kind, id: &'static str, subject: impl Into<String>) -> Self {
        Self {
            id,
            kind,
            subject: subject.into(),
            what: String::new(),
            why: String::new(),
            sure: Sure::High,
            sure_because: "the kernel says so".into(),
            commands: Vec::new(),
        }
    }

    /// Says what is.
    #[must_use]
    pub fn what(mut self, what: impl Into<String>) -> Self {
        self.what = what.into();
        self
    }

    /// Says why it matters.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// Says how sure it is, and why.
    #[must_use]
    pub fn sure(mut self, sure: Sure, because: impl Into<String>) -> Self {
        (self.sure, self.sure_because) = (sure, because.into());
        self
    }

    /// Adds a command to type.
    #[must_use]
    pub fn type_in(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }
}

/// Something that cannot be seen from here, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// What.
    pub what: String,
    /// Why not, and where to look instead.
    pub why: String,
    /// True if the question was about this, so that nothing found does not mean nothing wrong.
    pub asked: bool,
}

impl Unseen {
    /// Something that nobody asked for by name.
    pub fn aside(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), asked: false }
    }

    /// What was asked for.
    pub fn asked(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), asked: true }
    }
}
