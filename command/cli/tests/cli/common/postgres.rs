//! A real PostgreSQL under Seawall, and a bare one on what was copied of it.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Place, SEAWALL, Said, server, wait_for};

/// A PostgreSQL under Seawall, as the user that it wants.
pub struct Postgres {
    pub dir: tempfile::TempDir,
    pub bin: PathBuf,
    ram: tempfile::TempDir,
    run: Cell<Option<Child>>,
}

impl Postgres {
    /// `None` if it is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[], &[])
    }

    /// The same, with these options of `seawall run` and these of the server.
    pub fn start_with(of_run: &[&str], of_server: &[&str]) -> Option<Self> {
        let bin = server::programs()?;
        drop(Place::bare());
        let (dir, ram) = (tempfile::tempdir_in("/var/tmp").ok()?, tempfile::tempdir_in("/dev/shm").ok()?);
        copy_seawall(dir.path());
        if let Some((uid, gid)) = server::user() {
            for dir in [&dir, &ram] {
                std::os::unix::fs::chown(dir.path(), Some(uid), Some(gid)).expect("given");
            }
        }
        let server = Self { dir, bin, ram, run: Cell::new(None) };
        let mut initdb = server.command(&server.bin.join("initdb"));
        initdb.args(["--no-sync", "--auth=trust", "-U", "postgres", "-D"]).arg(server.data());
        assert!(initdb.stdout(Stdio::null()).status().expect("initdb").success());
        server.launch(of_run, of_server);
        Some(server)
    }

    /// Starts it, and waits until it answers.
    pub fn launch(&self, of_run: &[&str], of_server: &[&str]) {
        let mut run = self.seawall(&["run", "--quiet", "--emulated", "--size", "64M", "--pool"]);
        run.arg(self.pool()).args(of_run).arg("--").arg(self.bin.join("postgres")).arg("-D").arg(self.data());
        run.args(["-c", "listen_addresses=", "-c", "dynamic_shared_memory_type=mmap", "-k"])
            .arg(self.dir.path())
            .args(of_server);
        let said = fs::File::options().create(true).append(true).open(self.said()).expect("opened");
        self.run.set(Some(run.stdout(Stdio::null()).stderr(said).spawn().expect("a server")));
        let ready = || self.psql().args(["-c", "select 1"]).output().expect("psql").status.success();
        wait_for("PostgreSQL", ready);
    }

    /// What `seawall run` and the server say.
    pub fn said(&self) -> PathBuf {
        self.dir.path().join("said")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn pool(&self) -> PathBuf {
        self.ram.path().join("pool")
    }

    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((uid, gid)) = server::user() {
            command.uid(uid).gid(gid);
        }
        command.stdin(Stdio::null()).current_dir("/").env("XDG_DATA_HOME", self.dir.path().join("state"));
        command.env_remove("XDG_RUNTIME_DIR").env_remove("LD_PRELOAD");
        command
    }

    pub fn seawall(&self, words: &[&str]) -> Command {
        let mut command = self.command(&self.dir.path().join("seawall"));
        command.args(words);
        command
    }

    pub fn psql(&self) -> Command {
        let mut psql = self.command(&self.bin.join("psql"));
        psql.args(["-XqAt", "-U", "postgres", "-d", "postgres", "-h"]).arg(self.dir.path());
        psql
    }

    /// The server's processes.
    pub fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).expect("it runs");
        let postmaster: u32 = text.lines().next().and_then(|pid| pid.parse().ok()).expect("a pid");
        let children =
            fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).expect("children");
        std::iter::once(postmaster)
            .chain(children.split_whitespace().map(|pid| pid.parse().expect("a pid")))
            .collect()
    }

    /// The answer of a server without Seawall, in a mode of its own, after its crash recovery.
    pub fn bare(&self, data: &Path, sql: &str) -> String {
        let mut single = self.command(&self.bin.join("postgres"));
        single
            .args(["--single", "-D"])
            .arg(data)
            .arg("postgres")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut single = single.stderr(Stdio::piped()).spawn().expect("postgres");
        writeln!(single.stdin.take().expect("piped"), "{sql}").expect("it reads");
        let said = Said::from(single.wait_with_output().expect("ended"));
        said.succeeds();
        let value = said.out.split("= \"").nth(1).and_then(|rest| rest.split('"').next());
        value.unwrap_or_else(|| panic!("{}{}", said.out, said.err)).to_owned()
    }

    /// Kills all of its processes, and waits for the end of the run.
    pub fn kill(&self) {
        let pids = self.pids().into_iter().map(|pid| pid.to_string());
        let _ = Command::new("kill").arg("-KILL").args(pids).status();
        let _ = self.run.take().map(|mut run| run.wait());
    }

    pub fn stop(&self) {
        let Some(mut run) = self.run.take() else { return };
        if self.data().join("postmaster.pid").exists() {
            let _ = Command::new("kill").args(["-s", "INT", &self.pids()[0].to_string()]).status();
        }
        let _ = run.wait();
    }
}

/// Copies program and library to where the server's user can go: the checkout may lie where it cannot.
pub fn copy_seawall(directory: &Path) {
    let library = Path::new(SEAWALL).with_file_name(seawall_daemon::process::PRELOAD_NAME);
    for program in [Path::new(SEAWALL), &library] {
        fs::copy(program, directory.join(program.file_name().expect("a name"))).expect("copied");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
        let _ = self.seawall(&["stop", "--pool"]).arg(self.pool()).output();
    }
}
