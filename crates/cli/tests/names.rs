//! Names in the log: new files, renames and removals wait for no disk, and are there after a power cut.

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use common::disk::LoopDevice;
use common::{Place, cc, kill, wait_for, wait_for_end};
use serde_json::Value;

/// A disk with a file system that keeps the order of names, and a program on it.
struct Scene {
    place: Place,
    program: String,
    disk: Option<LoopDevice>,
    data: PathBuf,
}

/// What is under Seawall.
struct Running {
    run: Child,
    out: BufReader<ChildStdout>,
}

impl Scene {
    /// `None` where there are no loop devices, or none for this user.
    fn on(kind: &str) -> Option<Self> {
        Self::made(kind, &[])
    }

    fn made(kind: &str, options: &[&str]) -> Option<Self> {
        let place = Place::new();
        let program = cc(&place, "names", include_str!("programs/names.c"), &["-O1"])?.display().to_string();
        let disk = LoopDevice::in_memory(if kind == "xfs" { 320 << 20 } else { 64 << 20 })?;
        let made =
            Command::new(format!("mkfs.{kind}")).arg("-q").args(options).arg(disk.path()).output().ok()?;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut scene = Self { data: place.file("disk/data"), place, program, disk: Some(disk) };
        fs::create_dir(scene.place.file("disk")).expect("made");
        scene.attach();
        fs::create_dir(&scene.data).expect("made");
        scene.sync();
        Some(scene)
    }

    fn attach(&mut self) {
        let disk = self.disk.as_ref().expect("a disk");
        let at = self.place.file("disk");
        let mounted = Command::new("mount").arg(disk.path()).arg(&at).output().expect("mount");
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
    }

    fn sync(&self) {
        rustix::fs::syncfs(File::open(&self.data).expect("open")).expect("synced");
    }

    /// Runs the program until it is over.
    fn run(&self, how: &str, times: u32) -> Running {
        let data = self.data.to_str().expect("text");
        let mut run = self.place.command(&["run", "--quiet", "--pool", self.place.pool()]);
        run.args(["--preset", "any", "--unguarded", "--data", data, "--", &self.program]);
        run.args([how, data, &times.to_string()]).stdout(Stdio::piped()).stdin(Stdio::null());
        let mut run = run.spawn().expect("seawall starts");
        let out = BufReader::new(run.stdout.take().expect("a pipe"));
        Running { run, out }
    }

    /// The directory, as `status` has it.
    fn directory(&self) -> Value {
        let status = self.place.status();
        let is_it = |file: &&Value| file["path"].as_str() == self.data.to_str();
        status["files"].as_array().expect("files").iter().find(is_it).cloned().unwrap_or_default()
    }

    /// Everything is killed, and the disk has what it has been given so far.
    fn cut(&mut self, running: Running) {
        let processes = processes(running.run.id());
        let daemon = self.place.daemon().expect("a daemon");
        running.kill(daemon, &processes);
        let copy = self.disk.as_ref().expect("a disk").copy();
        self.detach();
        self.disk = Some(copy);
        self.attach();
        self.place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    }

    fn detach(&self) {
        let at = self.place.file("disk");
        wait_for("the disk to be free", || {
            Command::new("umount").arg(&at).output().expect("umount").status.success()
        });
    }

    fn recover(&self) {
        self.place.seawall(&["recover", "--replay", "--pool", self.place.pool()]).succeeds();
    }

    /// The files by name, without the note that is beside them while the log is open.
    fn files(&self) -> BTreeMap<String, String> {
        let entries = fs::read_dir(&self.data).expect("listed").map(|entry| entry.expect("an entry").path());
        let text = |path: &Path| fs::read_to_string(path).expect("read");
        let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        entries
            .map(|path| (name(&path), text(&path)))
            .filter(|(name, _)| !name.starts_with("SEAWALL"))
            .collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.place.file("disk")).output();
    }
}

impl Running {
    /// The last number that was durable, when the program says a line.
    fn until(&mut self, line: &str) -> u32 {
        let mut last = 0;
        loop {
            let mut said = String::new();
            assert!(self.out.read_line(&mut said).expect("said") > 0, "it ended");
            match said.trim() {
                said if said == line => return last,
                said => last = said.parse().expect("a number"),
            }
        }
    }

    fn kill(mut self, daemon: u64, processes: &[u64]) {
        kill(self.run.id().into());
        kill(daemon);
        processes.iter().for_each(|pid| kill(*pid));
        self.run.wait().expect("reaped");
        processes.iter().chain(&[daemon]).for_each(|pid| wait_for_end(*pid));
    }
}

/// What a process started.
fn processes(of: u32) -> Vec<u64> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().expect("a process")).collect()
}

fn number(i: u32) -> String {
    format!("number {i}, and so many bytes\n")
}

#[test]
fn new_files_that_replace_others_wait_for_no_disk_and_are_there_after_a_power_cut() {
    for kind in ["ext4", "xfs"] {
        let Some(mut scene) = Scene::on(kind) else { continue };
        let mut running = scene.run("replace", 40);
        let durable = running.until("over");
        let directory = scene.directory();
        let syncs = ["absorbed", "real_syncs"].map(|count| directory[count].as_u64().expect("a count"));
        assert!(syncs[0] >= 39 && syncs[1] <= 2, "{kind}: {directory}");
        scene.cut(running);
        scene.recover();
        assert_eq!(scene.files(), BTreeMap::from([("store".to_owned(), number(durable))]), "{kind}");
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(scene.data.join("store")).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o640, "{kind}");
    }
}

#[test]
fn a_directory_is_what_was_acknowledged_wherever_the_power_goes() {
    for how in ["replace", "unique"] {
        let Some(mut scene) = Scene::on("ext4") else { return };
        let mut running = scene.run(how, 1_000_000);
        let mut said = String::new();
        while said.trim() != "200" {
            said.clear();
            running.out.read_line(&mut said).expect("said");
        }
        let mut out = std::mem::replace(&mut running.out, BufReader::new(spare()));
        scene.cut(running);
        let mut durable = 200;
        while out
            .read_line({
                said.clear();
                &mut said
            })
            .is_ok_and(|len| len > 0)
        {
            durable = said.trim().parse().unwrap_or(durable);
        }
        scene.recover();
        let files = scene.files();
        let newest =
            files.values().filter_map(|text| text.get(7..)?.split(',').next()?.parse::<u32>().ok()).max();
        let newest = newest.unwrap_or_else(|| panic!("{how}: {files:?}"));
        assert!(newest >= 200 && newest <= durable + 1, "{how}: {newest} of {durable}: {files:?}");
        let most = if how == "replace" { 2 } else { 3 };
        assert!(files.len() <= most, "{how}: {files:?}");
    }
}

fn spare() -> ChildStdout {
    let mut child = Command::new("true").stdout(Stdio::piped()).spawn().expect("started");
    let out = child.stdout.take().expect("a pipe");
    child.wait().expect("ended");
    out
}

/// What the log has of the file as a whole must not come back over it.
#[test]
fn a_file_that_became_durable_in_another_way_keeps_what_it_has() {
    for how in ["fsync", "msync", "dsync", "syncfs"] {
        let Some(mut scene) = Scene::on("ext4") else { return };
        let mut running = scene.run(how, 0);
        assert_eq!(running.until("over"), 2, "{how}");
        scene.cut(running);
        scene.recover();
        assert_eq!(scene.files().get("file"), Some(&number(2)), "{how}");
    }
}

/// A record has no room for them: such a file is synced for real.
#[test]
fn a_file_with_extended_attributes_keeps_them() {
    let Some(mut scene) = Scene::on("ext4") else { return };
    let mut running = scene.run("xattr", 0);
    assert_eq!(running.until("over"), 1);
    scene.cut(running);
    scene.recover();
    let mut room = [0_u8; 8];
    let len = rustix::fs::getxattr(scene.data.join("file"), "user.kept", &mut room[..]);
    assert_eq!(len.map(|len| room[..len].to_vec()), Ok(b"yes".to_vec()));
}

#[test]
fn what_a_program_without_seawall_does_to_names_is_not_undone() {
    let Some(mut scene) = Scene::on("ext4") else { return };
    let mut running = scene.run("replace", 3);
    running.until("over");
    fs::rename(scene.data.join("store"), scene.data.join("taken")).expect("renamed");
    File::open(&scene.data).expect("open").sync_all().expect("synced");
    wait_for("the directory to leave the log", || scene.directory()["tracked"] == false);
    scene.cut(running);
    scene.recover();
    assert_eq!(scene.files(), BTreeMap::from([("taken".to_owned(), number(3))]));
}

/// Where the order of names is not kept, their syncs are the disk's.
#[test]
fn on_a_file_system_without_order_names_are_not_in_the_log_and_status_says_so() {
    let Some(scene) = Scene::made("ext4", &["-O", "^has_journal"]) else { return };
    let mut running = scene.run("replace", 5);
    running.until("over");
    assert_eq!(scene.directory(), Value::Null);
    let left_out = scene.place.status()["left_out"].clone();
    assert_eq!(left_out["path"].as_str(), scene.data.to_str(), "{left_out}");
    assert!(left_out["why"].as_str().is_some_and(|why| why.contains("the order of names")), "{left_out}");
    let (daemon, all) = (scene.place.daemon().expect("a daemon"), processes(running.run.id()));
    running.kill(daemon, &all);
}
