//! Nobody waits for one who is busy, or stands still.

mod common;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Place, Writer, has, wait_for_end};

/// Processes that run now and then and have much open: to look at each of them takes long.
struct Busy(Vec<Child>);

impl Busy {
    /// `None` without Perl.
    fn start(processes: usize) -> Option<Self> {
        let body = "my @open; while (@open < 3000 && open(my $one, '<', '/dev/null')) { push @open, $one } \
                    $| = 1; print '.'; select(undef, undef, undef, 0.3) while 1;";
        let one = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "ulimit -n $(ulimit -Hn); exec perl -e \"$0\"", body]);
            shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("perl starts")
        };
        let mut all = Self(has("perl").then(|| (0..processes).map(one).collect())?);
        for child in &mut all.0 {
            child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("it has opened them");
        }
        Some(all)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A look at them all takes seconds, and after it the thread that looks pauses for some times as long.
#[test]
fn a_daemon_beside_busy_processes_ends_at_once_and_the_next_starts_at_once() {
    let Some(_busy) = Busy::start(250) else { return eprintln!("skipped: needs perl") };
    let place = Place::new();
    let mut writer = Writer::start_less_privileged(&place);
    writer.write(5);
    let status = place.status();
    assert_eq!(status["watch"].as_str(), Some("inotify"), "{status}");
    let daemon = status["daemon_pid"].as_u64().expect("a daemon");
    // An open, so that it looks. It has to be at it.
    drop(std::fs::File::open(place.file("x-wal")).expect("open"));
    std::thread::sleep(Duration::from_millis(100));
    let begin = Instant::now();
    writer.finish().succeeds();
    wait_for_end(daemon);
    println!("ended after {:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(1), "the daemon ended after {:?}", begin.elapsed());
    let begin = Instant::now();
    place.run(&["true"]).succeeds();
    assert!(begin.elapsed() < Duration::from_secs(2), "the next one ran after {:?}", begin.elapsed());
}
