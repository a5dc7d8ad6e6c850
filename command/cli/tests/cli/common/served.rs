//! A daemon that a test starts by hand, with requests that name what to serve.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use seawall_daemon::AddRoot;
use seawall_daemon::control::{Added, Control};
use seawall_wire::message::Kind;

use super::{Place, SEAWALL, wait_for};

/// It stays until it is stopped.
pub fn start(place: &Place, options: &[&str]) -> Child {
    let mut command = Command::new(SEAWALL);
    command.args(["daemon", "--keep", "--pool", place.pool()]).args(options);
    let daemon = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("seawall starts");
    wait_for("the daemon", || matches!(Control::connect(&place.pool), Ok(Some(_))));
    daemon
}

/// The log manages `path`, of the database in `data`.
pub fn add_root(place: &Place, preset: &str, path: &Path, data: &Path) {
    let root = AddRoot {
        preset: preset.into(),
        policy: "tail".into(),
        path: path.to_owned(),
        data: data.to_owned(),
        recovery: None,
    };
    let control = Control::connect(&place.pool).expect("answers").expect("a daemon");
    control.request::<Added>(Kind::AddRoot, &root).expect("registered");
}
