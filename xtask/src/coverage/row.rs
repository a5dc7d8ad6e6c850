//! A row of the table.

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The library defines it.
    Handled,
    /// libc's own, untouched.
    Passed,
    /// Looks like a file call by its name, and is none.
    NoFileCall,
}

/// Calls that are treated alike, for the same reason.
pub struct Row {
    /// Their family: the file under `storage/preload/src/entry/` for those that are handled.
    pub family: &'static str,
    /// What becomes of them.
    pub what: What,
    /// Why, or how.
    pub why: &'static str,
    /// Their names. A `*` at the end stands for any ending, in rows that are not handled.
    pub symbols: &'static [&'static str],
}

impl What {
    /// Its heading in the document.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Handled => "Handled",
            Self::Passed => "Passed through",
            Self::NoFileCall => "Not file calls, whatever their names say",
        }
    }
}
