//! The engine: where the stages meet. Used by every front, inside the database's process.
//!
//! What is known of a file, and every change of that knowledge, belongs to [`crate::file`].

mod absent;
mod attach;
mod client;
mod enter;
mod hold;
mod join;
mod name;
mod names;
pub mod naming;
mod out;
#[cfg(feature = "std")]
mod register;
mod say;
mod scope;
mod space;
mod sync;
mod timing;
mod unsynced;
mod write;

pub use attach::{AttachError, Engine};
#[cfg(feature = "std")]
pub(crate) use enter::Entering;
#[cfg(feature = "std")]
pub(crate) use hold::counted;
pub use join::JoinError;
pub use names::{Place, Turn};
pub use out::Out;
#[cfg(feature = "std")]
pub use register::Registered;
pub use scope::Scope;
pub use sync::{NameDue, RealDue, Syncing};
pub use unsynced::{Around, Right};
pub use write::{At, Begun, Change};
