//! Runs sequences side by side under Seawall, on a disk whose power is cut, and looks at what is left.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::model::{A, B, FIRST, History, Names, Node, ROOT, State};
use super::op::mode;
use crate::common::Place;
use crate::common::volume::{Running, Volume};

/// How calls come to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    Preload,
    Mount,
    /// The preload, with a log on a disk: what no sync came after is not in it.
    OnDisk,
}

/// A disk, and the program on it.
pub struct Disk {
    volume: Volume,
    running: Option<Running>,
}

impl Disk {
    /// `None` where there are no loop devices, or no FUSE for a mount.
    pub fn new(kind: &str, front: Front) -> Option<Self> {
        if front == Front::Mount && !Path::new("/dev/fuse").exists() {
            return None;
        }
        let place = if front == Front::OnDisk { Place::on_disk("64M") } else { Place::with_pool("256M") };
        let mut volume = Volume::of(place, kind, &[], ("steps", include_str!("../programs/steps.c")))?;
        if front == Front::Mount {
            volume.serve();
        }
        let stat = format!("/sys/block/{}/stat", volume.device());
        let running = Some(volume.run(&[&stat]));
        Some(Self { volume, running })
    }

    /// Has all of them done, a step at a time; the file system keeps everything up to step `kept`. In which step each one's
    /// last real sync was, as far as it shows.
    pub fn run(&mut self, histories: &[&History], kept: usize) -> Vec<usize> {
        let mut setup = Vec::new();
        for i in 0..histories.len() {
            let at = self.directory(i);
            let (a, b) = (mode(A, false), mode(B, true));
            setup.push(format!("mkdir {at} {:o}\nmkdir {at}/B {b:o}\n", mode(ROOT, true)));
            setup.push(format!("creat {at}/a {a:o}\nwrite {at}/a {FIRST}\nfsync {at}/a\n"));
            setup.push(format!("fsync {at}\nfsync {at}/B\nfsync {at}\nfsync {at}/B\n"));
        }
        self.does(&setup, &|_| String::new());
        self.volume.sync();
        let mut last_real = vec![0; histories.len()];
        let longest = histories.iter().map(|history| history.ops.len()).max().unwrap_or(0);
        for step in 1..=longest {
            let due = histories.iter().enumerate().filter_map(|(i, history)| {
                Some((i, history.ops.get(step - 1)?.line(&self.directory(i), step)))
            });
            let (who, lines): (Vec<usize>, Vec<String>) = due.unzip();
            let writes = self.does(&lines, &|at| histories[who[at]].to_string());
            for (i, pair) in who.iter().zip(writes.windows(2)) {
                if pair[1] > pair[0] {
                    last_real[*i] = step;
                }
            }
            if step == kept {
                self.volume.sync();
            }
        }
        last_real
    }

    fn directory(&self, i: usize) -> String {
        format!("{}/s{i}", self.volume.at().display())
    }

    /// The same on the disk.
    fn behind(&self, i: usize) -> String {
        format!("{}/s{i}", self.volume.data.display())
    }

    /// How many writes the disk had had before the first of these lines, and after each.
    fn does(&mut self, lines: &[String], whose: &dyn Fn(usize) -> String) -> Vec<u64> {
        let running = self.running.as_mut().expect("it runs");
        let count: usize = lines.iter().map(|line| line.lines().count()).sum();
        let mut to = running.to.take().expect("a pipe");
        let said = std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                // A path that is not there, to begin with the counter.
                to.write_all(b"fsync /nowhere\n").expect("said");
                to.write_all(lines.concat().as_bytes()).expect("said");
                to.write_all(b".\n").expect("said");
                to.flush().expect("said");
                to
            });
            let said: Vec<String> = (0..=count + 1).map(|_| line(&mut running.out)).collect();
            running.to = Some(writer.join().expect("no panic"));
            said
        });
        let answers: Vec<(i32, u64)> = said[..=count]
            .iter()
            .map(|said| {
                let (error, writes) = said.split_once(' ').unwrap_or_else(|| panic!("{said}"));
                (error.parse().expect("errno"), writes.parse().expect("a count"))
            })
            .collect();
        let each = lines.iter().enumerate().flat_map(|(at, lines)| lines.lines().map(move |line| (at, line)));
        for ((error, _), (at, line)) in answers[1..].iter().zip(each) {
            assert_eq!(*error, 0, "{line}: {}", whose(at));
        }
        answers.into_iter().map(|(_, writes)| writes).collect()
    }

    /// Cuts the power, replays the log, and looks at what there is. Returns what is wrong of which sequence.
    pub fn cut(&mut self, histories: &[&History]) -> Vec<String> {
        let running = self.running.take().expect("it runs");
        self.volume.cut(running);
        let said = self.volume.place.seawall(&["recover", "--replay", "--pool", self.volume.place.pool()]);
        if said.code != Some(0) {
            return self.named_in(&said.err, histories);
        }
        let all = histories.iter().enumerate();
        let wrong = all.filter_map(|(i, history)| {
            let found = match found(Path::new(&self.behind(i))) {
                Ok(found) => found,
                Err(why) => return Some(format!("{history}: {why}")),
            };
            history.refuse(&found).map(|why| format!("{history}: {why}"))
        });
        wrong.collect()
    }

    /// Whose directories a refusal names.
    fn named_in(&self, error: &str, histories: &[&History]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (i, history) in histories.iter().enumerate() {
            let (inside, itself) = (format!("/s{i}/"), format!("/s{i}:"));
            let is_it = |line: &&str| line.contains(&inside) || line.contains(&itself);
            wrong.extend(error.lines().find(is_it).map(|line| format!("{history}: {line}")));
        }
        if wrong.is_empty() { vec![format!("recovery: {error}")] } else { wrong }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.volume.cut(running);
        }
    }
}

fn line(out: &mut impl BufRead) -> String {
    let mut line = String::new();
    assert!(out.read_line(&mut line).expect("read") > 0, "it ended");
    line.trim().to_owned()
}

/// What is in a sequence's directory.
fn found(root: &Path) -> Result<State, String> {
    let (mut state, mut inodes) = (State::default(), BTreeMap::new());
    look(root, ROOT, &mut state, &mut inodes)?;
    Ok(state)
}

fn look(
    path: &Path,
    directory: usize,
    state: &mut State,
    inodes: &mut BTreeMap<usize, u64>,
) -> Result<(), String> {
    let mut names = Names::new();
    for entry in fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))? {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("SEAWALL") {
            continue;
        }
        let meta = fs::symlink_metadata(&path).expect("there");
        let id = (meta.mode() & 0o77) as usize;
        let node = if meta.is_dir() {
            look(&path, id, state, inodes)?;
            Node::Directory(id)
        } else if meta.is_symlink() {
            Node::Link(fs::read_link(&path).expect("read").display().to_string())
        } else {
            if *inodes.entry(id).or_insert(meta.ino()) != meta.ino() {
                return Err(format!("file {id} is two"));
            }
            state.contents.insert(id, fs::read(&path).expect("read"));
            Node::File(id)
        };
        names.insert(name, node);
    }
    if state.directories.insert(directory, names).is_some() {
        return Err(format!("directory {directory} is there twice"));
    }
    Ok(())
}
