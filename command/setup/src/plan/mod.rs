//! A plan: steps that are shown as what an administrator would type, carried out one after the other, and undone in
//! reverse.
//!
//! In: steps, each with what must hold before it. Out: a changed machine, and a [record] of what was changed, which
//! is on disk before the change is: after a crash at any point `undo` takes back what was begun.

mod act;
mod carry;
mod check;
pub mod record;
mod steps;
#[cfg(test)]
mod tests;

pub use act::Act;
pub use carry::{carry_out, undo};
pub(crate) use carry::{change, check};
pub use check::Check;
pub use steps::{Of, Plan, State, Step};
