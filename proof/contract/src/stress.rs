//! The same random operations in two directories at once, the bare file system being the reference: every result,
//! and every tree at the end, must be the same.
//!
//! * **Inputs.** Two directories, for example one bare and one on a mount; how many threads, how long, a seed.
//! * **Outputs.** Exit status 0, or the first difference with the thread's last operations.
//! * **Not verified.** Times, directories' sizes and links, what a crash leaves. Threads have trees of their own, since two
//!   file systems would not order the same race in the same way; the file system under test has all at once.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_int};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::call::errno;
use crate::context::{c_path, contents};
use crate::trace;
use fastrand::Rng;

/// How many of the last operations the report of a difference has.
const TOLD: usize = 12;
const OPEN_FILES: usize = 6;
/// Trees are compared this often, in operations, and at the end.
const COMPARE_EVERY: u64 = 2000;

/// What `contract stress` was asked to do.
#[derive(clap::Args)]
pub struct Options {
    /// The reference
    left: PathBuf,
    /// What is tested
    right: PathBuf,
    /// Each with a tree of its own
    #[arg(long, default_value_t = 4)]
    threads: u64,
    /// How long
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// What is done follows from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs it.
pub fn run(options: &Options) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let done = AtomicU64::new(0);
    let differences: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads)
            .map(|i| {
                let done = &done;
                scope.spawn(move || Worker::new(options, i).and_then(|worker| worker.work(end, done)))
            })
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("no worker panics"));
        ends.filter_map(Result::err).collect()
    });
    if differences.is_empty() {
        println!("{} operations agreed", done.load(Relaxed));
        return Ok(());
    }
    Err(differences.join("\n\n"))
}

struct Worker {
    roots: [PathBuf; 2],
    random: Rng,
    /// Open on both sides, perhaps without a name by now.
    open: Vec<[c_int; 2]>,
    last: VecDeque<String>,
}

/// One call of libc's.
macro_rules! c {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: descriptors are ours, paths NUL-terminated, and buffers outlive the call.
        unsafe { libc::$name($($argument),*) }
    }};
}

type Answer = (i64, c_int, String);

impl Worker {
    fn new(options: &Options, i: u64) -> Result<Worker, String> {
        let roots =
            [&options.left, &options.right].map(|side| side.join(format!("stress-{}-{i}", options.seed)));
        for root in &roots {
            std::fs::create_dir(root).map_err(|error| format!("{}: {error}", root.display()))?;
        }
        Ok(Worker {
            roots,
            random: Rng::with_seed(options.seed << 20 | i),
            open: Vec::new(),
            last: VecDeque::new(),
        })
    }

    fn work(mut self, end: Instant, done: &AtomicU64) -> Result<(), String> {
        let mut count = 0_u64;
        while Instant::now() < end {
            self.step()?;
            count += 1;
            if count.is_multiple_of(COMPARE_EVERY) {
                self.compare_trees()?;
            }
        }
        self.compare_trees()?;
        done.fetch_add(count, Relaxed);
        for root in &self.roots {
            // What is left is removed with the directory that the caller gave us.
            let _ = std::fs::remove_dir_all(root);
        }
        Ok(())
    }

    /// A path below the root: few names, so that operations meet, and names that are managed at every depth.
    fn name(&mut self) -> String {
        const NAMES: [&str; 7] = ["a", "b-wal", "c", "d.db", "e-wal", "f", "g-journal"];
        let depth = 1 + self.random.u64(..3);
        let parts: Vec<&str> = (0..depth).map(|_| NAMES[self.random.usize(..7)]).collect();
        parts.join("/")
    }

    fn both(&mut self, what: String, op: impl Fn(usize, &Path) -> Answer) -> Result<i64, String> {
        self.last.push_back(what);
        if self.last.len() > TOLD {
            self.last.pop_front();
        }
        let answers = [0, 1].map(|side| op(side, &self.roots[side]));
        if answers[0] == answers[1] {
            return Ok(answers[0].0);
        }
        let told = |(result, error, more): &Answer| format!("{result} {} {more}", trace::errno_name(*error));
        Err(self.difference(&format!("reference: {}\nunder test: {}", told(&answers[0]), told(&answers[1]))))
    }

    fn difference(&self, what: &str) -> String {
        let last: Vec<_> = self.last.iter().map(String::as_str).collect();
        format!("{}:\n{what}\nafter:\n  {}", self.roots[1].display(), last.join("\n  "))
    }

    fn step(&mut self) -> Result<(), String> {
        let name = self.name();
        let at = |root: &Path, name: &str| c_path(&root.join(name));
        let plain = |result: c_int| answer(result.into());
        match self.random.u64(..20) {
            0..=3 => self.open_file(&name)?,
            4..=7 => self.use_open_file()?,
            8 => drop(self.both(format!("mkdir {name}"), |_, root| {
                plain(c!(mkdir(at(root, &name).as_ptr(), 0o755)))
            })?),
            9 => drop(
                self.both(format!("rmdir {name}"), |_, root| plain(c!(rmdir(at(root, &name).as_ptr()))))?,
            ),
            10 | 11 => drop(
                self.both(format!("unlink {name}"), |_, root| plain(c!(unlink(at(root, &name).as_ptr()))))?,
            ),
            12 | 13 => {
                let (to, flags) = (self.name(), [0, 0, 0, 1, 2][self.random.usize(..5)]);
                self.both(format!("rename {name} {to} {flags}"), |_, root| {
                    let (from, to) = (at(root, &name), at(root, &to));
                    let here = libc::AT_FDCWD;
                    plain(c!(renameat2(here, from.as_ptr(), here, to.as_ptr(), flags)))
                })?;
            }
            14 => {
                let to = self.name();
                self.both(format!("link {name} {to}"), |_, root| {
                    plain(c!(link(at(root, &name).as_ptr(), at(root, &to).as_ptr())))
                })?;
            }
            15 => {
                let to = self.name();
                self.both(format!("symlink {to} {name}"), |_, root| {
                    let target = CString::new(to.as_str()).expect("no NUL");
                    plain(c!(symlink(target.as_ptr(), at(root, &name).as_ptr())))
                })?;
            }
            16 => {
                let mode = 0o600 | self.random.u64(..0o200) as libc::mode_t;
                self.both(format!("chmod {name} {mode:o}"), |_, root| {
                    plain(c!(chmod(at(root, &name).as_ptr(), mode)))
                })?;
            }
            17 => {
                let size = self.random.u64(..100_000) as i64;
                self.both(format!("truncate {name} {size}"), |_, root| {
                    plain(c!(truncate(at(root, &name).as_ptr(), size)))
                })?;
            }
            18 => drop(self.both(format!("setxattr {name}"), |_, root| {
                let (path, value) = (at(root, &name), b"value");
                plain(c!(lsetxattr(path.as_ptr(), c"user.x".as_ptr(), value.as_ptr().cast(), 5, 0)))
            })?),
            _ => drop(self.both(format!("stat {name}"), |_, root| status(&at(root, &name)))?),
        }
        Ok(())
    }

    fn open_file(&mut self, name: &str) -> Result<(), String> {
        const FLAGS: [c_int; 5] = [
            libc::O_RDWR,
            libc::O_RDWR | libc::O_CREAT,
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL,
            libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC,
            libc::O_RDWR | libc::O_CREAT | libc::O_APPEND,
        ];
        let flags = FLAGS[self.random.usize(..5)];
        let fds = std::cell::Cell::new([-1; 2]);
        let result = self.both(format!("open {name} {flags:o}"), |side, root| {
            let path = c_path(&root.join(name));
            let fd = c!(open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o640));
            let (result, error, more) = answer(fd.into());
            let mut both = fds.get();
            both[side] = fd;
            fds.set(both);
            (result.min(0), error, more)
        })?;
        if result < 0 {
            return Ok(());
        }
        self.open.push(fds.get());
        if self.open.len() > OPEN_FILES {
            let victim = self.random.usize(..self.open.len());
            for fd in self.open.swap_remove(victim) {
                c!(close(fd));
            }
        }
        Ok(())
    }

    fn use_open_file(&mut self) -> Result<(), String> {
        if self.open.is_empty() {
            return Ok(());
        }
        let fds = self.open[self.random.usize(..self.open.len())];
        let (offset, length) = (self.random.u64(..60_000) as i64, self.random.usize(..9000));
        let data = vec![self.random.u64(..255) as u8 + 1; length];
        match self.random.u64(..9) {
            0..=2 => self.both(format!("pwrite {length}@{offset}"), |side, _| {
                answer(c!(pwrite(fds[side], data.as_ptr().cast(), length, offset)) as i64)
            }),
            3 => self.both(format!("write {length}"), |side, _| {
                answer(c!(write(fds[side], data.as_ptr().cast(), length)) as i64)
            }),
            4 => self.both("fsync".into(), |side, _| answer(c!(fsync(fds[side])).into())),
            5 => self.both(format!("ftruncate {offset}"), |side, _| {
                answer(c!(ftruncate(fds[side], offset)).into())
            }),
            6 => {
                let modes =
                    [0, libc::FALLOC_FL_KEEP_SIZE, libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE];
                let mode = modes[self.random.usize(..3)];
                self.both(format!("fallocate {mode} {length}@{offset}"), |side, _| {
                    answer(c!(fallocate(fds[side], mode, offset, length as i64 + 1)).into())
                })
            }
            7 => {
                let from = self.open[self.random.usize(..self.open.len())];
                self.both(format!("copy_file_range {length} to {offset}"), |side, _| {
                    let (mut at, mut to) = (0_i64, offset + 10_000);
                    answer(c!(copy_file_range(from[side], &mut at, fds[side], &mut to, length, 0)) as i64)
                })
            }
            _ => self.both("fstat and content".into(), |side, _| {
                // SAFETY: a zeroed stat is a valid out parameter.
                let mut stat: libc::stat = unsafe { std::mem::zeroed() };
                let result = c!(fstat(fds[side], &mut stat));
                (result.into(), 0, format!("{} {}", described(&stat), trace::summary(&contents(fds[side]))))
            }),
        }
        .map(drop)
    }

    fn compare_trees(&mut self) -> Result<(), String> {
        let [left, right] = [0, 1].map(|side| {
            let mut lines = Vec::new();
            walk(&self.roots[side], Path::new(""), &mut lines);
            lines
        });
        if left == right {
            return Ok(());
        }
        let same = left.iter().zip(&right).take_while(|(one, other)| one == other).count();
        let line = |lines: &[String]| lines.get(same).cloned().unwrap_or_default();
        Err(self.difference(&format!("reference: {}\nunder test: {}", line(&left), line(&right))))
    }
}

/// A call's result, and its error if it has one.
fn answer(result: i64) -> Answer {
    (result, if result < 0 { errno() } else { 0 }, String::new())
}

fn status(path: &CStr) -> Answer {
    // SAFETY: a zeroed stat is a valid out parameter, the path is NUL-terminated.
    let (result, stat) = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::lstat(path.as_ptr(), &mut stat), stat)
    };
    let (result, error, _) = answer(result.into());
    (result, error, if result == 0 { described(&stat) } else { String::new() })
}

fn described(stat: &libc::stat) -> String {
    // A directory's size and links may count a guard that stands in it.
    let is_dir = stat.st_mode & libc::S_IFMT == libc::S_IFDIR;
    let (size, links) = if is_dir { (0, 0) } else { (stat.st_size, stat.st_nlink) };
    format!("{:o} {links} {} {} {size}", stat.st_mode, stat.st_uid, stat.st_gid)
}

fn walk(root: &Path, below: &Path, lines: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(root.join(below)) else { return };
    let mut names: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let path = below.join(name);
        let full = root.join(&path);
        let (_, _, stat) = status(&c_path(&full));
        let Ok(kind) = std::fs::symlink_metadata(&full).map(|meta| meta.file_type()) else { continue };
        let content = if kind.is_file() {
            std::fs::read(&full).map_or_else(|error| error.to_string(), |bytes| trace::summary(&bytes))
        } else if kind.is_symlink() {
            std::fs::read_link(&full).map_or_else(|error| error.to_string(), |to| to.display().to_string())
        } else {
            String::new()
        };
        lines.push(format!("{} {stat} {content}", path.display()));
        if kind.is_dir() {
            walk(root, &path, lines);
        }
    }
}
