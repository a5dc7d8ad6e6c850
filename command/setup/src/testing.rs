//! A directory that stands for a machine, whose programs do nothing but be noted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use seawall_doctor::machine::Machine;
use seawall_doctor::{Answer, Kernel, Root};

use crate::host::Host;
use crate::shell;

pub struct Bench {
    dir: tempfile::TempDir,
    root: Root,
    /// What was run.
    pub ran: RefCell<Vec<String>>,
    /// What a command whose line begins so says.
    answers: RefCell<BTreeMap<String, Result<String, String>>>,
    /// Files that a command whose line begins so makes, with their contents.
    effects: RefCell<Vec<(String, String, String)>>,
    /// Programs that are missing.
    pub missing: RefCell<Vec<&'static str>>,
    /// The command of this number fails.
    pub fails_at: Cell<Option<usize>>,
    kernel: Granting,
}

/// A kernel that grants MAP_SYNC, or does not.
pub struct Granting(pub Cell<bool>);

impl Kernel for Granting {
    fn about(&self, _: &Path) -> io::Result<Answer> {
        Ok(Answer::default())
    }

    fn grants_map_sync(&self, _: &Path) -> io::Result<bool> {
        Ok(self.0.get())
    }
}

impl Bench {
    /// A machine with these files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let bench = Self {
            root: Root::at(dir.path()),
            dir,
            ran: RefCell::default(),
            answers: RefCell::default(),
            effects: RefCell::default(),
            missing: RefCell::default(),
            fails_at: Cell::default(),
            kernel: Granting(Cell::new(true)),
        };
        bench.write("/etc/passwd", "root:x:0:0::/:/bin/sh\npostgres:x:70:71::/:/bin/sh\n");
        bench.write("/etc/group", "root:x:0:\npostgres:x:71:\n");
        bench.says("blkid", Err("nothing".into()));
        files.iter().for_each(|(path, text)| bench.write(path, text));
        bench
    }

    pub fn write(&self, path: &str, text: &str) {
        let at = self.root.host_path(Path::new(path));
        fs::create_dir_all(at.parent().expect("a parent")).expect("made");
        fs::write(at, text).expect("written");
    }

    pub fn link(&self, path: &str, target: &str) {
        let at = self.root.host_path(Path::new(path));
        fs::create_dir_all(at.parent().expect("a parent")).expect("made");
        std::os::unix::fs::symlink(target, at).expect("a link");
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.root.host_path(Path::new(path))).expect("removed");
    }

    pub fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.host_path(Path::new(path))).ok()
    }

    /// A device of zeros.
    pub fn device(&self, name: &str) {
        self.write(&format!("/dev/{name}"), &"\0".repeat(8192));
    }

    pub fn says(&self, begin: &str, what: Result<String, String>) {
        self.answers.borrow_mut().insert(begin.into(), what);
    }

    pub fn makes(&self, begin: &str, path: &str, text: &str) {
        self.effects.borrow_mut().push((begin.into(), path.into(), text.into()));
    }

    pub fn grants(&self, granted: bool) {
        self.kernel.0.set(granted);
    }

    pub fn machine(&self) -> Machine {
        Machine::read(&self.root)
    }

    /// Every file but the machine's own, with its text.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.dir.path().to_owned()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).expect("a directory").flatten() {
                let path = entry.path();
                let name = path.strip_prefix(self.dir.path()).expect("inside").display().to_string();
                if entry.file_type().expect("a type").is_dir() {
                    open.push(path);
                } else if !["sys", "dev", "proc", "run"].iter().any(|top| name.starts_with(top)) {
                    found.insert(name, fs::read_to_string(&path).unwrap_or_default());
                }
            }
        }
        found
    }
}

impl Host for Bench {
    fn root(&self) -> &Root {
        &self.root
    }

    fn run(&self, words: &[String], input: &str) -> Result<String, String> {
        let line = shell::line(words);
        let is_look = line.starts_with("blkid");
        if !is_look && self.fails_at.get() == Some(self.ran.borrow().len()) {
            self.fails_at.set(None);
            return Err("it was to fail".into());
        }
        if !is_look {
            let with = if input.is_empty() { String::new() } else { format!(" << {}", input.trim_end()) };
            self.ran.borrow_mut().push(line.clone() + &with);
        }
        for (_, path, text) in self.effects.borrow().iter().filter(|(begin, ..)| line.starts_with(begin)) {
            self.write(path, text);
        }
        let answers = self.answers.borrow();
        // The longest one that fits.
        let known = answers.iter().rev().find(|(begin, _)| line.starts_with(begin.as_str()));
        known.map_or(Ok(String::new()), |(_, said)| said.clone())
    }

    fn has_program(&self, name: &str) -> bool {
        !self.missing.borrow().contains(&name)
    }

    fn kernel(&self) -> &dyn Kernel {
        &self.kernel
    }

    fn pause(&self, _: Duration) {}
}
