//! A MariaDB of the user `mysql`, for tests that root runs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::{Place, has, is_root, wait_for};

pub struct Mariadb {
    pub place: Place,
    socket: PathBuf,
}

impl Mariadb {
    /// Its data is made. `None` where that is not to be had.
    pub fn installed() -> Option<Self> {
        let user = nix::unistd::User::from_name("mysql").ok().flatten();
        let user = user.filter(|_| is_root() && has("mariadb-install-db"))?;
        let place = Place::bare();
        for dir in [place.data.path(), place.pool.parent().expect("a directory")] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("opened");
        }
        chown(place.data.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("given away");
        let this = Self { socket: place.file("s"), place };
        let mut install = Command::new("runuser");
        install.args(["-u", "mysql", "--", "mariadb-install-db", "--no-defaults"]);
        install.args(["--auth-root-authentication-method=normal", &this.data()]).stdout(Stdio::null());
        assert!(install.status().expect("runs").success());
        Some(this)
    }

    fn data(&self) -> String {
        format!("--datadir={}", self.place.file("data").display())
    }

    /// The server's.
    pub fn options(&self) -> [String; 4] {
        let socket = format!("--socket={}", self.socket.display());
        ["--no-defaults".into(), self.data(), socket, "--skip-networking".into()]
    }

    /// Runs the server by this command until it is there.
    pub fn serve(&self, command: &mut Command) -> Serving {
        let serving = Serving(command.stdout(Stdio::null()).spawn().expect("starts"));
        wait_for("the server", || self.sql("SELECT 1"));
        serving
    }

    /// True if the server did it.
    pub fn sql(&self, what: &str) -> bool {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "-u", "root", "-e", what, "--socket"]).arg(&self.socket);
        client.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("runs").success()
    }
}

/// A command that runs the server. A test that fails leaves neither behind.
pub struct Serving(Child);

impl Serving {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// How it ended.
    pub fn wait(mut self) -> ExitStatus {
        self.0.wait().expect("ends")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            for pid in seawall_media::process::tree(self.id()) {
                let _ = Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status();
            }
            let _ = self.0.wait();
        }
    }
}
