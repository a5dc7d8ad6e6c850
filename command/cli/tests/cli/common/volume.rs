//! A disk with a file system of its own, a program on it under `--preset any` or on a mount that has it, and its power cut.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::disk::LoopDevice;
use super::{Place, cc, kill, signal, wait_for, wait_for_end};

/// A disk, and the program.
pub struct Volume {
    pub place: Place,
    program: String,
    kind: String,
    disk: Option<LoopDevice>,
    /// On the disk.
    pub data: PathBuf,
    mount: Option<Child>,
}

/// What is under Seawall.
pub struct Running {
    pub run: Child,
    pub to: Option<ChildStdin>,
    pub out: BufReader<ChildStdout>,
}

impl Volume {
    /// Made with mkfs and these options, for a program in C. `None` where there are no loop devices, or none for this user.
    pub fn of(place: Place, kind: &str, options: &[&str], (name, source): (&str, &str)) -> Option<Self> {
        let program = cc(&place, name, source, &["-O1"])?.display().to_string();
        let disk = LoopDevice::in_memory(if kind == "xfs" { 320 << 20 } else { 64 << 20 })?;
        let made =
            Command::new(format!("mkfs.{kind}")).arg("-q").args(options).arg(disk.path()).output().ok()?;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let (data, kind) = (place.file("disk/data"), kind.to_owned());
        let volume = Self { data, place, program, kind, disk: Some(disk), mount: None };
        fs::create_dir(volume.place.file("disk")).expect("made");
        volume.attach();
        fs::create_dir(&volume.data).expect("made");
        volume.sync();
        Some(volume)
    }

    fn attach(&self) {
        let disk = self.disk.as_ref().expect("a disk");
        let at = self.place.file("disk");
        let mut mount = Command::new("mount");
        // Another test's mount namespace may hold the file system that this one is a copy of.
        mount.args(if self.kind == "xfs" { &["-o", "nouuid"][..] } else { &[] });
        let mounted = mount.arg(disk.path()).arg(&at).output().expect("mount");
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
    }

    /// All that its file system has is on the disk.
    pub fn sync(&self) {
        rustix::fs::syncfs(File::open(&self.data).expect("open")).expect("synced");
    }

    /// The device, as the kernel calls it.
    pub fn device(&self) -> &str {
        self.disk.as_ref().expect("a disk").path().trim_start_matches("/dev/")
    }

    /// Serves the directory on a mount, for what runs from now on.
    pub fn serve(&mut self) {
        self.serve_as("any");
    }

    /// The same by another preset.
    pub fn serve_as(&mut self, preset: &str) {
        let (data, at) = (self.data.to_str().expect("text"), self.place.file("at"));
        fs::create_dir(&at).expect("made");
        let mut mount = self.place.command(&["mount", "--foreground", "--quiet", "--preset", preset]);
        mount.args(["--pool", self.place.pool(), data]).arg(&at).stdin(Stdio::null());
        self.mount = Some(mount.spawn().expect("seawall starts"));
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        wait_for("the mount", || device(&at) != device(self.place.data.path()));
    }

    /// Where the program finds the directory.
    pub fn at(&self) -> PathBuf {
        if self.mount.is_some() { self.place.file("at") } else { self.data.clone() }
    }

    /// Starts the program.
    pub fn run(&self, arguments: &[&str]) -> Running {
        self.run_as(&["--preset", "any", "--unguarded"], arguments)
    }

    /// The same by another preset.
    pub fn run_as(&self, preset: &[&str], arguments: &[&str]) -> Running {
        let data = self.data.to_str().expect("text");
        let mut run = match self.mount {
            Some(_) => Command::new(&self.program),
            None => {
                let mut run = self.place.command(&["run", "--quiet", "--pool", self.place.pool()]);
                run.args(preset).args(["--data", data, "--", &self.program]);
                run
            }
        };
        run.args(arguments).stdout(Stdio::piped()).stdin(Stdio::piped());
        let mut run = run.spawn().expect("seawall starts");
        let (to, out) = (run.stdin.take(), BufReader::new(run.stdout.take().expect("a pipe")));
        Running { run, to, out }
    }

    /// Everything is killed, and the disk has what it has been given so far.
    pub fn cut(&mut self, running: Running) {
        let daemon = self.place.daemon().expect("a daemon");
        self.cut_with(daemon, running);
    }

    /// The same with a daemon that may be stopped.
    pub fn cut_with(&mut self, daemon: u64, running: Running) {
        let processes = processes(running.run.id());
        // Else it would close the log when its last client is gone, or be replaced by it.
        signal(daemon, "STOP");
        if let Some(mut mount) = self.mount.take() {
            mount.kill().expect("killed");
            mount.wait().expect("reaped");
        }
        running.kill(daemon, &processes);
        self.lets_go();
        let copy = self.disk.as_ref().expect("a disk").copy();
        self.detach();
        self.disk = Some(copy);
        self.attach();
        self.place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    }

    /// The mount's process is gone.
    fn lets_go(&self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.place.file("at")).output();
    }

    fn detach(&self) {
        let at = self.place.file("disk");
        wait_for("the disk to be free", || {
            Command::new("umount").arg(&at).output().expect("umount").status.success()
        });
    }

    pub fn recover(&self) {
        self.place.seawall(&["recover", "--replay", "--pool", self.place.pool()]).succeeds();
    }

    /// The files by name, without the note that is beside them while the log is open.
    pub fn files(&self) -> BTreeMap<String, String> {
        let text = |name: &str| fs::read_to_string(self.data.join(name)).expect("read");
        self.names().into_iter().map(|name| (name.clone(), text(&name))).collect()
    }

    /// The names in the directory, in order, without guards.
    pub fn names(&self) -> Vec<String> {
        let entries =
            fs::read_dir(&self.data).expect("listed").map(|entry| entry.expect("an entry").file_name());
        let names = entries.map(|name| name.to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with("SEAWALL")).collect();
        names.sort();
        names
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Some(mut mount) = self.mount.take() {
            let _ = mount.kill();
            let _ = mount.wait();
            self.lets_go();
        }
        let _ = Command::new("umount").arg("--lazy").arg(self.place.file("disk")).output();
    }
}

impl Running {
    pub fn kill(mut self, daemon: u64, processes: &[u64]) {
        kill(self.run.id().into());
        kill(daemon);
        processes.iter().for_each(|pid| kill(*pid));
        self.run.wait().expect("reaped");
        processes.iter().chain(&[daemon]).for_each(|pid| wait_for_end(*pid));
    }
}

/// A test that fails leaves nothing behind: the daemon ends by itself.
impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.run.try_wait() {
            processes(self.run.id()).into_iter().for_each(kill);
            let _ = self.run.kill();
            let _ = self.run.wait();
        }
    }
}

/// What a process started.
pub fn processes(of: u32) -> Vec<u64> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().expect("a process")).collect()
}
