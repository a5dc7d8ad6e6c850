//! A real PostgreSQL, without Seawall: it knows which files a table has.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{is_root, wait_for};

pub struct Server {
    directory: tempfile::TempDir,
    bin: PathBuf,
    child: Option<Child>,
}

impl Server {
    /// `None` if it is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with these options.
    pub fn start_with(options: &[&str]) -> Option<Self> {
        let bin = programs()?;
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        if let Some((uid, gid)) = user() {
            std::os::unix::fs::chown(directory.path(), Some(uid), Some(gid)).expect("given");
        }
        let mut server = Self { directory, bin, child: None };
        let mut made = server.command("initdb");
        made.args(["--no-sync", "--auth=trust", "-U", "postgres", "-D"]).arg(server.data());
        assert!(made.stdout(Stdio::null()).status().expect("initdb").success());
        let mut run = server.command("postgres");
        run.arg("-D").arg(server.data()).args(["-c", "listen_addresses=", "-c", "fsync=off"]);
        run.args(options);
        // Nothing of it is left in /dev/shm when it is killed.
        run.args(["-c", "dynamic_shared_memory_type=mmap", "-k"]).arg(server.directory.path());
        server.child = Some(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a server"));
        wait_for("PostgreSQL", || server.sql("SELECT 1").is_some());
        Some(server)
    }

    /// For `--db`.
    pub fn address(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.directory.path().display())
    }

    /// Runs statements of any bytes in a database.
    pub fn sql_bytes(&self, database: &str, sql: &[u8]) {
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-U", "postgres", "-d", database, "-h"])
            .arg(self.directory.path());
        let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("psql");
        std::io::Write::write_all(&mut psql.stdin.take().expect("piped"), sql).expect("written");
        assert!(psql.wait().expect("psql ends").success());
    }

    pub fn data(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it exists").join("data")
    }

    /// How psql is called to reach it.
    pub fn psql(&self) -> String {
        format!("{} -U postgres -h {}", self.bin.join("psql").display(), self.directory.path().display())
    }

    /// Runs a statement; the lines of its answer.
    pub fn sql(&self, sql: &str) -> Option<Vec<String>> {
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-U", "postgres", "-d", "postgres", "-h"])
            .arg(self.directory.path());
        let said = psql.args(["-c", sql]).output().expect("psql");
        let lines = || String::from_utf8_lossy(&said.stdout).lines().map(str::to_owned).collect();
        said.status.success().then(lines)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        if let Some((uid, gid)) = user() {
            command.uid(uid).gid(gid);
        }
        command.stdin(Stdio::null()).current_dir("/");
        command
    }
}

/// Where the programs of the newest one are, if one is installed.
pub fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    Some(versions.flatten().map(|entry| entry.path()).max()?.join("bin"))
}

/// PostgreSQL refuses root.
pub fn user() -> Option<(u32, u32)> {
    let user = nix::unistd::User::from_name("postgres").ok()??;
    is_root().then_some((user.uid.as_raw(), user.gid.as_raw()))
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(mut server) = self.child.take() else { return };
        // An immediate shutdown: the postmaster ends its children, too.
        let pid = nix::unistd::Pid::from_raw(server.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGQUIT);
        let _ = server.wait();
    }
}
