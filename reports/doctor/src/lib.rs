//! Looks at the machine below a database and says what undoes durability or costs speed.
//!
//! Input: a root directory with sysfs, procfs and configuration files below it, and a [`Kernel`] that answers what no file
//! says. Output: a [`Report`]: findings, each with what is, why it matters, how sure that is and the commands that mend it;
//! what could not be seen; a verdict. [`Machine::read`] reads, checks are pure functions of a [`View`], and the report shows.
//!
//! Nothing is changed, no program is run, no server is asked. Not handled here: what a load makes of the machine
//! (`seawall-awr`), and Seawall's own pool (`seawall status`).

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

mod checks;
mod database;
mod finding;
mod kernel;
pub mod machine;
mod place;
mod report;
mod root;
mod view;

pub use finding::{Finding, Kind, Sure, Unseen};
pub use kernel::{Answer, Kernel, Running};
pub use machine::Machine;
pub use report::{Report, Verdict};
pub use root::Root;
pub use view::View;

use std::io;
use std::path::Path;

/// Looks at a whole machine, or at what is under a path.
///
/// # Errors
/// The path is not there, or may not be looked at.
pub fn examine(root: &Root, kernel: &dyn Kernel, path: Option<&Path>) -> io::Result<Report> {
    let machine = Machine::read(root);
    let view = match path {
        Some(path) => View::of(&machine, root, kernel, path)?,
        None => View::whole(&machine),
    };
    Ok(Report::of(&view))
}
