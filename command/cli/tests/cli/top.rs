//! `seawall top` on a terminal: it fits, says when the daemon has gone, and ends at a key.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::{Place, SEAWALL};

/// What each frame begins with.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// `top` on a terminal of its own, which `script` makes.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
    seen: String,
}

impl Terminal {
    fn start(place: &Place, columns: u32, rows: u32, environment: &str) -> Self {
        // The last line tells how top left the terminal.
        let shell = format!(
            "stty cols {columns} rows {rows}; {environment} TERM=xterm {SEAWALL} top --pool {}; echo ended $?; stty -a",
            place.pool()
        );
        let mut script = std::process::Command::new("script");
        script.args(["--quiet", "--command", &shell, "/dev/null"]).env_remove("NO_COLOR");
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = script.spawn().expect("script, of util-linux");
        let (keys, mut out) = (child.stdin.take().expect("keys"), child.stdout.take().expect("a screen"));
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(n @ 1..) = out.read(&mut part) {
                if send.send(part[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keys, output, bytes: Vec::new(), seen: String::new() }
    }

    #[track_caller]
    fn wait_for(&mut self, words: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.seen.contains(words) {
            assert!(Instant::now() < end, "no {words:?} in {}", self.seen);
            self.wait_for_more();
        }
    }

    #[track_caller]
    fn wait_for_more(&mut self) {
        let part = self.output.recv_timeout(Duration::from_secs(60)).expect("more");
        self.bytes.extend(part);
        // A letter may come in two parts.
        self.seen = String::from_utf8_lossy(&self.bytes).into_owned();
    }

    #[track_caller]
    fn end(mut self) {
        self.keys.write_all(b"q").expect("a key");
        self.wait_for("ended 0");
        self.wait_for("echonl");
        assert!(self.seen.contains("\x1b[?1049l"), "the page of before is back");
        let modes = self.seen.rsplit("ended 0").next().unwrap_or("");
        assert!(modes.contains(" icanon") && modes.contains(" echo "), "the keyboard is as it was: {modes}");
        let _ = self.child.wait();
    }
}

/// A place whose daemon runs for as long as a program does that has written something.
struct Served {
    place: Place,
    run: Child,
}

impl Served {
    fn new() -> Self {
        let place = Place::new();
        let program = "dd if=/dev/zero of=x-wal bs=4096 count=9 oflag=dsync status=none; exec sleep 300";
        let run =
            place.run_command(&["sh", "-c", program]).stdin(Stdio::null()).spawn().expect("seawall starts");
        let end = Instant::now() + Duration::from_secs(60);
        while !place.seawall(&["status", "--json", "--pool", place.pool()]).out.contains("x-wal") {
            assert!(Instant::now() < end, "nothing is written");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { place, run }
    }

    fn end(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.run.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.run.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn a_frame_fits_a_small_terminal_and_a_wide_one() {
    let served = Served::new();
    for (columns, rows) in [(80, 24), (160, 50)] {
        let mut terminal = Terminal::start(&served.place, columns, rows, "NO_COLOR=1");
        terminal.wait_for("log file sync");
        // The beginning of the third frame: the second one is whole.
        while terminal.seen.matches(CLEAR).count() < 3 {
            terminal.wait_for_more();
        }
        let frame = terminal.seen.split(CLEAR).nth(2).unwrap_or("").to_owned();
        assert!(frame.contains("emulated") && frame.contains("log file sync"), "{frame}");
        assert!(!frame.contains("\x1b["), "no colours were wanted: {frame:?}");
        for line in frame.lines() {
            assert!(line.trim_end().chars().count() <= columns as usize, "{line}");
        }
        assert!(frame.lines().count() < rows as usize, "{frame}");
        assert_eq!(frame.contains("longest"), columns > 100, "{frame}");
        terminal.end();
    }
}

#[test]
fn a_daemon_that_goes_is_told_and_a_key_ends_it() {
    let mut served = Served::new();
    let mut terminal = Terminal::start(&served.place, 80, 24, "");
    terminal.wait_for("log file sync");
    assert!(terminal.seen.contains("\x1b[33m"), "emulated memory stands out: {}", terminal.seen);
    served.end();
    terminal.wait_for("no daemon serves");
    terminal.wait_for("Trying again");
    terminal.end();
}
