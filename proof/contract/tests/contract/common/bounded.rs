//! Running a command that may hang: its output, its end, and never longer than a limit.

use super::processes;
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a command did.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Panics, with everything the command said, unless it succeeded.
    pub fn expect_success(self, what: &str) -> Finished {
        assert!(self.status.success(), "{what}: {}\n{}", self.ending(), self.output());
        self
    }

    /// `exit 1` or `signal 9`.
    pub fn ending(&self) -> String {
        self.status.code().map_or_else(
            || format!("signal {}", self.status.signal().unwrap_or(0)),
            |code| format!("exit {code}"),
        )
    }

    /// Both streams, for messages.
    pub fn output(&self) -> String {
        format!("--- its standard output\n{}\n--- its standard error\n{}", self.stdout, self.stderr)
    }
}

/// A command at work; killed, with its whole process group, when dropped.
pub struct Running {
    child: Child,
    what: String,
    stdout: Stream,
    stderr: Stream,
}

/// One of a command's output streams, as far as it was read.
struct Stream {
    text: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Running {
    /// Starts `command` in a process group of its own.
    pub fn start(command: &mut Command, what: &str) -> Running {
        processes::adopt_orphans();
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {what} ({:?}): {error}", command.get_program()));
        let stdout = Stream::read(child.stdout.take().expect("piped above"));
        let stderr = Stream::read(child.stderr.take().expect("piped above"));
        Running { child, what: what.to_owned(), stdout, stderr }
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id is positive")
    }

    /// Waits until it has printed `line`, at most `limit`.
    pub fn wait_for(&self, line: &str, limit: Duration) {
        let deadline = Instant::now() + limit;
        while !self.stdout.said().lines().any(|said| said == line) {
            assert!(
                Instant::now() < deadline && !self.stdout.reader.is_finished(),
                "{} did not print `{line}` (limit {limit:?})\n--- its standard output\n{}\n--- its standard error\n{}",
                self.what,
                self.stdout.said(),
                self.stderr.said()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends a line to its standard input.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("piped at the start");
        writeln!(stdin, "{line}").unwrap_or_else(|error| panic!("{} does not listen: {error}", self.what));
    }

    /// Waits for its end, at most `limit`.
    pub fn finish(mut self, limit: Duration) -> Finished {
        let deadline = Instant::now() + limit;
        let mut late = false;
        let status = loop {
            match self.child.try_wait().expect("our own child") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    late = true;
                    processes::kill_group(self.pid());
                    break self.child.wait().expect("our own child");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        // A descendant may still hold the pipes: nobody reads them after the command has ended.
        processes::kill_group(self.pid());
        let finished = Finished { status, stdout: self.stdout.end(), stderr: self.stderr.end() };
        assert!(!late, "{} did not end within {limit:?} and was killed\n{}", self.what, finished.output());
        finished
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        processes::kill_group(self.pid());
        let _ = self.child.wait();
        processes::reap_group(self.pid());
    }
}

impl Stream {
    fn read(mut source: impl Read + Send + 'static) -> Stream {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0_u8; 16 * 1024];
            while let Ok(length @ 1..) = source.read(&mut buffer) {
                let read = String::from_utf8_lossy(&buffer[..length]).into_owned();
                shared.lock().expect("readers do not panic").push_str(&read);
            }
        });
        Stream { text, reader }
    }

    fn said(&self) -> String {
        self.text.lock().expect("readers do not panic").clone()
    }

    /// Everything up to the stream's end. A daemon that inherited the pipe must not hold us up.
    fn end(&self) -> String {
        let deadline = Instant::now() + Duration::from_secs(3);
        while !self.reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.said()
    }
}

/// Runs `command` to its end, at most `limit`.
pub fn run(command: &mut Command, what: &str, limit: Duration) -> Finished {
    Running::start(command, what).finish(limit)
}
