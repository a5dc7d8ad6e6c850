//! `seawall twin`: a second, unmodified Redis server that is always ready to take the first one's place.
//!
//! A Redis server that starts is bound by one CPU: it loads its whole data before it answers. So the data is loaded by
//! another server beforehand, which follows the append-only file of the one that serves.
//!
//! ```text
//! clients ─▶ primary ── write ─▶ append-only file ◀── read ── feed ── replication ─▶ twin ── write ─▶ its own file
//!
//! primary dies ─ read the file to its end ─ wait until the twin has applied it ─ make the twin's file durable
//!   ─ guard the old directory ─ note durably which directory is current ─ give the twin the address
//! ```
//!
//! | module | is |
//! |---|---|
//! | [`settings`] | what the server's configuration and arguments say |
//! | [`manifest`], [`scan`], [`log`] | the append-only file: its parts, its commands, following it |
//! | [`feed`], [`resp`] | Redis's replication protocol, as a primary speaks it, to the twin; a command in it |
//! | [`server`], [`process`], [`address`] | processes: started, watched, dead for sure; what clients connect to |
//! | [`control`], [`watch`] | what we ask and tell the twin |
//! | [`state`], [`guard`] | which directory is current, and that nobody starts on another one |
//! | [`pair`], [`start`], [`twin`], [`care`], [`takeover`], [`supervise`], [`end`] | a server, a twin, the steps above, and everything around them |
//! | [`signals`], [`hook`], [`mod@status`] | what signals tell us, and what we tell others |
//!
//! The invariant: **a twin takes client writes only after it has applied every byte that the dead primary wrote, and after
//! the note that its directory is the current one is durable.** Whatever keeps a step from being done leads to an ordinary
//! restart on the current directory, never to a guess.
//!
//! Not handled here: a twin on another host, whose takeover would have to find the tail that lies on the dead one.

#![deny(unsafe_code)] // Allowed in one place: `server`.
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

#[macro_use(errln)]
extern crate seawall_media;

mod address;
mod care;
mod control;
mod end;
mod feed;
mod guard;
mod hook;
mod log;
mod manifest;
mod pair;
mod process;
mod resp;
mod scan;
mod server;
mod settings;
mod signals;
mod start;
mod state;
mod status;
mod supervise;
mod takeover;
mod twin;
mod watch;

pub use pair::Options;
pub use settings::Settings;
pub use status::{Report, read as status};
pub use supervise::run;
