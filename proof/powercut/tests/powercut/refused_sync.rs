//! Under the policy `atomic` a file is synced before it is in the log. Where the disk refuses that, a write in place could
//! be torn, and nothing would make it whole.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::common::{Mounted, Scene, programs};
use seawall_faulty_disk::Request;

/// Writes a page of a tablespace for each line it gets, and says what came of it.
const WRITER: &str =
    "while read n; do dd if=/dev/zero of=ibdata1 bs=16384 count=1 conv=notrunc 2>&1 | head -n 1; done";

/// A program with Seawall.
struct Run {
    child: Child,
    ask: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Run {
    fn start(data: &Path, pool: &Path) -> Self {
        let mut run = Command::new(programs::directory().join("seawall"));
        run.args(["run", "--emulated", "--size", "16M", "--policy", "atomic", "--preset", "mariadb"]);
        run.arg("--pool").arg(pool).args(["--data", ".", "--", "sh", "-c", WRITER]).current_dir(data);
        run.env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = run.spawn().expect("seawall starts");
        let (ask, said) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, ask, said: BufReader::new(said) }
    }

    /// What came of a write now.
    fn write(&mut self) -> String {
        writeln!(self.ask, "write").expect("it listens");
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it answers");
        line
    }

    fn end(mut self) {
        drop(self.ask);
        let _ = self.child.wait();
    }
}

/// A data file on disk.
fn put(path: &Path) {
    File::create(path).and_then(|mut file| file.write_all(&[7; 16384]).and(file.sync_all())).expect("a file");
}

// Holds: internals/FAILURE_MODEL#promises
#[test]
fn what_could_not_be_taken_into_the_log_is_not_written() {
    let Some(scene) = Scene::new("A REFUSED SYNC") else { return };
    let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
    let mounted = Mounted::new(&scene);
    let Scene { disk, at, .. } = &scene;
    let data = at.join("data");
    fs::create_dir(&data).expect("a directory");
    ["ib_logfile0", "ibdata1"].iter().for_each(|name| put(&data.join(name)));
    File::open(&data).and_then(|dir| dir.sync_all()).expect("on disk");

    let mut run = Run::start(&data, &memory.path().join("pool"));
    disk.fail(Request::Flush, u64::MAX);
    let refused = run.write();
    disk.heal();
    assert!(refused.contains("Input/output error"), "{refused:?}");
    let again = run.write();
    assert!(again.contains("Input/output error"), "the next sync's success proves nothing: {again:?}");
    assert_eq!(fs::read(data.join("ibdata1")).expect("read"), [7; 16384], "neither is there");
    run.end();
    drop(mounted);
}
