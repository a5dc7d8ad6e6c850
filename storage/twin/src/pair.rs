//! What a supervisor has: a server, its twin, and what is known of both.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::address::{Address, Listening};
use crate::log::Place;
use crate::server::Server;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::state::{Directory, State};
use crate::twin::Twin;

/// What the command line says.
pub struct Options {
    /// Where the state is.
    pub state: PathBuf,
    /// The server's command.
    pub command: Vec<OsString>,
    /// A command for the shell, after each takeover.
    pub on_takeover: Option<String>,
    /// A server that runs already, and is not ours to stop.
    pub follow: Option<i32>,
}

/// Everything that runs.
pub struct Supervisor {
    pub options: Options,
    pub settings: Settings,
    pub address: Address,
    pub directory: Directory,
    pub state: State,
    pub signals: Signals,
    pub primary: Server,
    /// It was started by somebody else, who also stops it.
    pub is_foreign: bool,
    pub started: Instant,
    pub listening: Listening,
    pub twin: Option<Twin>,
    /// The twin is ready, or a former one was since this primary serves.
    pub was_ready: bool,
    /// A twin was ready since we run: this server can live.
    pub is_proven: bool,
    /// How often in a row the server ended at once.
    pub failures: u32,
    pub next_twin: Instant,
    pub pause: Duration,
    /// Why there is no twin.
    pub trouble: Option<String>,
    pub stopping: bool,
    pub last_takeover_ms: Option<f64>,
    pub published: Option<Instant>,
}

impl Supervisor {
    /// The append-only file of the current directory.
    pub fn place(&self) -> Place {
        self.settings.place(&self.state.current)
    }
}
