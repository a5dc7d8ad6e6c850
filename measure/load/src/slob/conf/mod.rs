//! `slob.conf`: SLOB's parameters by their own names.
//!
//! In: a shell-style file (`KEY=value`, comments, quotes), as SLOB's users have them. Out: a [`Conf`] and
//! warnings. A wrong value is an error that names the line; an unknown key, a key that only means something to
//! Oracle and a line that sets nothing are warnings: the file is read to its end.

mod keys;
mod lines;
mod parameters;
mod parse;
mod size;

pub use keys::{Key, NO_MEANING, SETTINGS};
pub use parameters::{Conf, RedoStress};
pub use parse::{Mistake, Parsed};
pub use size::Size;
