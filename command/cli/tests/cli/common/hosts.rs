//! Hosts of a test's own: each has a name, a machine id, a boot, processes, memory and a network card of its own, and all of
//! them the disk. Needs root.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{SEAWALL, Said, is_root, wait_for};

/// What a host does before it is one.
const BOOT: &str = r#"
mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs -o mode=755 tmpfs /run &&
mount --bind "$1/machine-id" /etc/machine-id && mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id &&
hostname "$2" && ip link set lo up && echo ready && exec sleep infinity
"#;

/// A network with nobody in it.
pub struct Network {
    switch: Namespaces,
    hosts: usize,
}

/// A host. Its processes end with it.
pub struct Host {
    namespaces: Namespaces,
    pub name: String,
    pub ip: String,
    port: String,
    switch: u32,
}

/// A process that holds namespaces open.
struct Namespaces {
    unshare: Child,
    pid: u32,
    files: tempfile::TempDir,
}

impl Namespaces {
    fn new(name: &str, number: usize, is_host: bool) -> Self {
        let files = tempfile::tempdir_in("/var/tmp").expect("a directory");
        // Of this test alone: images in memory of other tests' logs have other names.
        fs::write(files.path().join("machine-id"), format!("{:032x}\n", 0xfeed_0000 + number))
            .expect("written");
        let boot = format!("00000000-0000-4000-8000-{:012x}\n", std::process::id() as usize * 16 + number);
        fs::write(files.path().join("boot_id"), boot).expect("written");
        let mut command = Command::new("unshare");
        command.args(["--net", "--fork", "--kill-child"]);
        if is_host {
            command
                .args(["--mount", "--uts", "--ipc", "--pid", "--mount-proc"])
                .args(["sh", "-c", BOOT, "sh"]);
        } else {
            command.args(["sh", "-c", "echo ready && exec sleep infinity", "sh"]);
        }
        command.arg(files.path()).arg(name);
        // It complains when its child is killed.
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut unshare = command.spawn().expect("unshare starts");
        let mut line = String::new();
        BufReader::new(unshare.stdout.take().expect("piped")).read_line(&mut line).expect("it boots");
        assert_eq!(line.trim(), "ready", "{name}");
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let pid = fs::read_to_string(children).expect("a child").trim().parse().expect("a pid");
        Self { unshare, pid, files }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // The first process of a host: all others end with it.
        let _ = Command::new("kill").args(["-KILL", &self.pid.to_string()]).status();
        let _ = self.unshare.wait();
        let _ = &self.files;
    }
}

fn ip(namespace: u32, arguments: &[&str]) {
    let net = format!("--net=/proc/{namespace}/ns/net");
    let done = Command::new("nsenter").arg(net).arg("ip").args(arguments).output().expect("nsenter starts");
    assert!(done.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Network {
    /// `None`, and a word about it, where namespaces cannot be made.
    pub fn new() -> Option<Self> {
        let has = |program: &str| super::has(program);
        if !is_root() || !["unshare", "nsenter", "ip", "setpriv"].into_iter().all(has) {
            eprintln!("skipped: hosts of a test's own need root, util-linux and iproute2");
            return None;
        }
        let switch = Namespaces::new("switch", 0, false);
        ip(switch.pid, &["link", "add", "sw", "type", "bridge"]);
        ip(switch.pid, &["link", "set", "sw", "up"]);
        Some(Self { switch, hosts: 0 })
    }

    /// A host with this name.
    pub fn host(&mut self, name: &str) -> Host {
        self.hosts += 1;
        let namespaces = Namespaces::new(name, self.hosts, true);
        let (own, port) = (namespaces.pid, format!("port{}", self.hosts));
        let address = format!("169.254.77.{}", self.hosts);
        let net = format!("/proc/{own}/ns/net");
        ip(self.switch.pid, &["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &net]);
        ip(self.switch.pid, &["link", "set", &port, "master", "sw", "up"]);
        ip(own, &["addr", "add", &format!("{address}/16"), "dev", "eth0"]);
        ip(own, &["link", "set", "eth0", "up"]);
        Host { namespaces, name: name.into(), ip: address, port, switch: self.switch.pid }
    }
}

impl Host {
    fn enter(&self, nsenter: &mut Command) {
        nsenter.args(["--target", &self.namespaces.pid.to_string()]);
        nsenter.args(["--mount", "--uts", "--ipc", "--pid", "--net"]);
    }

    /// A command there, in this directory, without the right to watch what other hosts open: they share a kernel here.
    pub fn command(&self, directory: &str, program: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        self.enter(&mut command);
        command.args(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]);
        command.args(["sh", "-c", "cd \"$0\" && exec \"$@\"", directory]).args(program);
        command.env_remove("LD_PRELOAD").stdin(Stdio::null());
        command
    }

    /// A command there with every right, to its end.
    pub fn with_all_rights(&self, program: &[&str]) -> Said {
        let mut command = Command::new("nsenter");
        self.enter(&mut command);
        command.args(program).output().expect("it runs").into()
    }

    /// `seawall` there.
    pub fn seawall_command(&self, directory: &str, arguments: &[&str]) -> Command {
        self.command(directory, &[&[SEAWALL], arguments].concat())
    }

    /// The same, to its end.
    pub fn seawall(&self, arguments: &[&str]) -> Said {
        self.seawall_command("/", arguments).output().expect("it runs").into()
    }

    pub fn run(&self, program: &[&str]) -> Said {
        self.command("/", program).output().expect("it runs").into()
    }

    /// A process there that is not one of the host's own: it is killed by its own id.
    pub fn outside(&self, program: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.namespaces.pid));
        command.arg(format!("--uts=/proc/{}/ns/uts", self.namespaces.pid)).args(program);
        command
    }

    /// Nothing gets out of it or into it.
    pub fn unplug(&self) {
        ip(self.switch, &["link", "set", &self.port, "down"]);
    }

    pub fn plug(&self) {
        ip(self.switch, &["link", "set", &self.port, "up"]);
    }

    pub fn daemon(&self, pool: &str) -> Option<u64> {
        self.status(pool)["daemon_pid"].as_u64()
    }

    pub fn status(&self, pool: &str) -> serde_json::Value {
        let said = self.seawall(&["status", "--json", "--pool", pool]);
        serde_json::from_str(&said.out).unwrap_or_default()
    }

    /// Sends a signal to one of its processes, by the number that it has there.
    pub fn signal(&self, pid: u64, name: &str) {
        self.run(&["kill", "-s", name, &pid.to_string()]).succeeds();
    }

    /// Every process ends, at once.
    pub fn end_processes(&self) {
        self.signal_all("KILL", &self.processes());
    }

    /// Every process is stopped when this returns, and none is in the middle of a system call. The processes through which the
    /// test came in go on: whoever waits for them outside would be stopped too.
    pub fn pause(&self) {
        wait_for("every process to be stopped", || {
            let all = self.own_processes();
            self.signal_all("STOP", &all);
            all.iter().flat_map(Process::states).all(|state| ['T', 'Z'].contains(&state))
        });
    }

    /// They go on.
    pub fn resume(&self) {
        self.signal_all("CONT", &self.own_processes());
    }

    /// True while a process of this program is there.
    pub fn runs(&self, program: &str) -> bool {
        let runs = |process: &Process| {
            fs::read_link(process.path.join("exe")).is_ok_and(|exe| exe.ends_with(program))
        };
        self.processes().iter().any(runs)
    }

    fn signal_all(&self, name: &str, all: &[Process]) {
        let pids: Vec<String> = all.iter().map(|process| process.pid.to_string()).collect();
        let kill: Vec<&str> =
            ["kill", "-s", name].into_iter().chain(pids.iter().map(String::as_str)).collect();
        // Some have ended meanwhile.
        let _ = self.run(&kill);
    }

    fn own_processes(&self) -> Vec<Process> {
        self.processes().into_iter().filter(|process| process.parent != 0).collect()
    }

    /// All but the first one.
    fn processes(&self) -> Vec<Process> {
        let all = below(&self.root().join("proc")).filter_map(Process::at);
        all.filter(|process| process.pid > 1).collect()
    }

    /// Its root directory, as it is seen from outside.
    fn root(&self) -> PathBuf {
        format!("/proc/{}/root", self.namespaces.pid).into()
    }

    /// The directory that is this host's memory, as it is seen from outside.
    pub fn memory(&self) -> PathBuf {
        self.root().join("dev/shm")
    }

    /// Its memory is gone, as after a power cut.
    pub fn forget(&self) {
        self.end_processes();
        let is_empty = || fs::read_dir(self.memory()).is_ok_and(|mut found| found.next().is_none());
        wait_for("an empty memory", || {
            for entry in fs::read_dir(self.memory()).expect("its memory").flatten() {
                let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path()));
            }
            is_empty()
        });
    }
}

/// A process of a host, by the numbers that are known there.
struct Process {
    path: PathBuf,
    pid: u32,
    parent: u32,
}

impl Process {
    fn at(path: PathBuf) -> Option<Self> {
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        let parent = stat(&path)?.split(' ').nth(1)?.parse().ok()?;
        Some(Self { path, pid, parent })
    }

    /// What its threads do, as `ps` shows it.
    fn states(&self) -> Vec<char> {
        below(&self.path.join("task")).filter_map(|thread| stat(&thread)?.chars().next()).collect()
    }
}

/// What the kernel says of a process or thread, from its state on.
fn stat(of: &Path) -> Option<String> {
    Some(fs::read_to_string(of.join("stat")).ok()?.rsplit_once(") ")?.1.to_owned())
}

fn below(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}
