//! The controller: starts workers, kills them, and compares what they left with the model.

use super::Options;
use super::model::{self, Bytes};
use super::plan::{REGION, Step};
use super::progress::Progress;
use super::worker::{Place, Worker};
use crate::context::{c_path, contents, open_quietly};
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// Files that several workers share.
const SHARED_FILES: usize = 4;
/// Between two kills.
const KILL_EVERY: Duration = Duration::from_millis(25);
/// How long workers may take to stop when told to.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Everything the controller knows.
pub struct Control<'a> {
    options: &'a Options,
    progress: &'static [Progress],
    places: Vec<Place>,
    /// Each worker's bytes when its present life began.
    models: Vec<Bytes>,
    /// Per process: its id and how often it was started.
    processes: Vec<(c_int, u64)>,
    kills: u64,
    steps: u64,
}

impl<'a> Control<'a> {
    /// Makes the files.
    pub fn prepare(options: &'a Options) -> Result<Control<'a>, String> {
        // SAFETY: orphans of killed workers become our children, so that none is out of reach.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        let places: Vec<Place> = (0..options.workers()).map(|worker| place(options, worker)).collect();
        for place in &places {
            let fd = open_quietly(&place.path, libc::O_RDWR | libc::O_CREAT);
            // SAFETY: plain calls on our own descriptor.
            let made = unsafe {
                let long_enough =
                    place.own_file || libc::lseek(fd, 0, libc::SEEK_END) >= (place.base + REGION) as i64;
                let grown = long_enough || libc::ftruncate(fd, (place.base + REGION) as i64) == 0;
                fd >= 0 && grown && libc::fsync(fd) == 0 && libc::close(fd) == 0
            };
            if !made {
                return Err(format!(
                    "cannot make {:?}: {}",
                    place.path,
                    crate::trace::errno_name(crate::call::errno())
                ));
            }
        }
        let models =
            places.iter().map(|place| vec![0; if place.own_file { 0 } else { REGION as usize }]).collect();
        Ok(Control {
            options,
            progress: Progress::share(options.workers()),
            places,
            models,
            processes: vec![(0, 0); options.processes],
            kills: 0,
            steps: 0,
        })
    }

    /// The whole run.
    pub fn work(&mut self) -> Result<(), String> {
        (0..self.options.processes).for_each(|process| self.start(process));
        let end = Instant::now() + Duration::from_secs(self.options.seconds);
        let mut dice = self.options.seed | 1;
        while Instant::now() < end {
            std::thread::sleep(KILL_EVERY);
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if !self.options.no_kills {
                self.replace((dice >> 33) as usize % self.options.processes)?;
            }
        }
        self.stop_all()?;
        (0..self.options.workers()).try_for_each(|worker| self.check(worker, false))?;
        println!(
            "smoke: {} processes, {} threads, {} operations, {} kills: contents equal the model",
            self.options.processes,
            self.options.workers(),
            self.steps,
            self.kills
        );
        Ok(())
    }

    /// Kills every process that is still there.
    pub fn kill_all(&mut self) {
        for process in 0..self.processes.len() {
            self.kill(process);
        }
    }

    fn start(&mut self, process: usize) {
        let life = self.processes[process].1;
        let workers = self.options.workers_of(process).map(|worker| Worker {
            place: self.places[worker].clone(),
            first: Step { seed: self.options.seed, worker, life, index: 0 },
            progress: &self.progress[worker],
            stop: &self.progress[self.options.workers()],
        });
        let workers: Vec<Worker> = workers.collect();
        for worker in &workers {
            worker.progress.reset();
        }
        let pid = crate::process::fork(|| live(&workers));
        // SAFETY: also done by the child; whoever comes first.
        unsafe { libc::setpgid(pid, pid) };
        self.processes[process] = (pid, life);
    }

    fn replace(&mut self, process: usize) -> Result<(), String> {
        self.kill(process);
        self.kills += 1;
        for worker in self.options.workers_of(process) {
            self.check(worker, true)?;
        }
        self.processes[process].1 += 1;
        self.start(process);
        Ok(())
    }

    /// Ends a process and everything it forked, and waits until all of them are gone.
    fn kill(&mut self, process: usize) {
        let (pid, life) = self.processes[process];
        if pid <= 0 {
            return;
        }
        self.processes[process] = (0, life);
        // SAFETY: the group is made of this worker process and its forked children.
        unsafe {
            libc::kill(-pid, libc::SIGKILL);
            while libc::waitpid(-pid, std::ptr::null_mut(), 0) > 0 {}
        }
    }

    fn stop_all(&mut self) -> Result<(), String> {
        self.progress[self.options.workers()].raise();
        let deadline = Instant::now() + STOP_LIMIT;
        for entry in &mut self.processes {
            let mut status = 0;
            // SAFETY: waits for our own child.
            while unsafe { libc::waitpid(entry.0, &raw mut status, libc::WNOHANG) } == 0 {
                if Instant::now() > deadline {
                    return Err(format!("process {} did not stop within {STOP_LIMIT:?}", entry.0));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let pid = std::mem::replace(&mut entry.0, 0);
            if status != 0 {
                return Err(format!("worker process {pid} ended with wait status {status:#x}"));
            }
        }
        Ok(())
    }

    /// Compares a worker's bytes with the model, then takes them as the model of its next life.
    fn check(&mut self, worker: usize, killed: bool) -> Result<(), String> {
        let own_file = self.places[worker].own_file;
        let process =
            (0..self.options.processes).find(|process| self.options.workers_of(*process).contains(&worker));
        let life = process.map_or(0, |process| self.processes[process].1);
        let (finished, interrupted) = self.progress[worker].read();
        self.steps += finished;
        let step = |index| Step { seed: self.options.seed, worker, life, index };
        let mut expected = std::mem::take(&mut self.models[worker]);
        for index in 0..finished {
            model::apply(&mut expected, step(index), step(index).operation(own_file));
        }
        let found = self.bytes_of(worker);
        let last = step(finished).operation(own_file);
        let right = found == expected
            || killed && interrupted && model::explains(&expected, step(finished), last, &found);
        if !right {
            return Err(self.describe(worker, life, finished, &format!("{last:?}"), &expected, &found));
        }
        self.models[worker] = found;
        Ok(())
    }

    fn bytes_of(&self, worker: usize) -> Bytes {
        let place = &self.places[worker];
        let fd = open_quietly(&place.path, libc::O_RDONLY);
        let bytes = if place.own_file {
            contents(fd)
        } else {
            let mut bytes = vec![0; REGION as usize];
            // SAFETY: the buffer is as long as said.
            unsafe { libc::pread(fd, bytes.as_mut_ptr().cast(), bytes.len(), place.base as i64) };
            bytes
        };
        // SAFETY: opened above.
        unsafe { libc::close(fd) };
        bytes
    }

    fn describe(
        &self,
        worker: usize,
        life: u64,
        finished: u64,
        last: &str,
        expected: &Bytes,
        found: &Bytes,
    ) -> String {
        let at = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
        format!(
            "worker {worker} life {life}, {:?} at {}: {} bytes expected, {} found, first difference at {at}, \
             after {finished} finished operations; the next one is {last}",
            self.places[worker].path,
            self.places[worker].base,
            expected.len(),
            found.len()
        )
    }
}

fn place(options: &Options, worker: usize) -> Place {
    // Threads of the first process and processes of their own both get some of each kind.
    let own_file = worker % 2 == 1;
    let name = if own_file {
        format!("own-{worker}-wal")
    } else {
        format!("shared-{}-wal", worker / 2 % SHARED_FILES)
    };
    let base = if own_file { 0 } else { (worker / 2 / SHARED_FILES) as u64 * REGION };
    Place { path: c_path(&options.directory.join(name)), base, own_file }
}

/// A worker process: one thread per worker.
fn live(workers: &[Worker]) -> c_int {
    // SAFETY: a group of our own, and no life after the controller's.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    let failures = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter().map(|worker| scope.spawn(|| worker.work())).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap_or_else(|_| Err("a panic".to_owned())).err())
            .collect::<Vec<_>>()
    });
    for failure in &failures {
        eprintln!("smoke: {failure}");
    }
    c_int::from(!failures.is_empty())
}
