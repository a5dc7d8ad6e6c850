//! Recorded machines: one text file each, unpacked into a directory that stands for `/`.
//!
//! | line | means |
//! |---|---|
//! | `# …` | a comment; the first one says what kind of machine it is |
//! | `[sys/kernel]` | paths of the following lines are below this |
//! | `[sys/block/sda => ../devices/…/sda]` | the same, and it is a link to there |
//! | `path: content` | a file; `\n` is a line's end |
//! | `path -> target` | a link |
//! | `+ queue \| fua=1 \| …` | several files in one directory |
//! | `@cpus 8 hypervisor` | /proc/cpuinfo |
//! | `@control path 1300 1` | PostgreSQL's control file: its version, and that of its checksums |
//! | `@sqlite path 4096 wal` | an SQLite file |
//! | `== ask PATH mount=36 dax=yes map_sync=no` | what the kernel answers |
//! | `== look [PATH]` | then a line for each finding: `kind id subject`, exactly these |
//! | `== plant [PATH]` | then lines that spoil the machine … |
//! | `== names` | … and findings that must then be named, looking at that path |

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use seawall_doctor::{Answer, Kernel, Report, Root, examine};

/// One recorded machine.
#[derive(Default)]
pub struct Recorded {
    /// The file's name.
    pub name: String,
    /// Its first line.
    pub title: String,
    /// What it is made of.
    pub lines: Vec<String>,
    /// What the kernel answers, by path.
    pub answers: BTreeMap<PathBuf, (Answer, Option<bool>)>,
    /// Where to look, and what is found there.
    pub looks: Vec<Look>,
    /// What spoils it.
    pub plants: Vec<(Vec<String>, Look)>,
}

/// A path, and the findings there.
#[derive(Default)]
pub struct Look {
    pub path: Option<PathBuf>,
    pub findings: Vec<String>,
}

impl Recorded {
    /// Every recorded machine.
    pub fn all() -> Vec<Self> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
        let mut paths: Vec<_> =
            fs::read_dir(dir).expect("machines").map(|e| e.expect("one").path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::parse(path)).collect()
    }

    fn parse(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a machine");
        let mut found =
            Self { name: path.file_stem().expect("a name").to_string_lossy().into(), ..Self::default() };
        found.title = text.lines().next().unwrap_or_default().trim_start_matches("# ").into();
        let mut part = "tree";
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let Some(head) = line.strip_prefix("== ") else {
                found.take(part, line);
                continue;
            };
            let mut words = head.split(' ');
            let word = words.next().expect("a word");
            let path = words.next().map(PathBuf::from);
            let look = Look { path: path.clone(), findings: Vec::new() };
            match word {
                "ask" => drop(found.answers.insert(path.expect("a path"), answer(words))),
                "look" => (part, _) = ("look", found.looks.push(look)),
                "plant" => (part, _) = ("plant", found.plants.push((Vec::new(), look))),
                "names" => part = "names",
                other => panic!("{}: {other}", found.name),
            }
        }
        found
    }

    fn take(&mut self, part: &str, line: &str) {
        let line = line.to_owned();
        match part {
            "look" => self.looks.last_mut().expect("a look").findings.push(line),
            "plant" => self.plants.last_mut().expect("a plant").0.push(line),
            "names" => self.plants.last_mut().expect("a plant").1.findings.push(line),
            _ => self.lines.push(line),
        }
    }

    /// Looks at a path of the machine, spoiled by these lines.
    pub fn examine(&self, spoiled: &[String], path: Option<&Path>) -> Report {
        let dir = tempfile::tempdir().expect("a directory");
        unpack(dir.path(), &self.lines);
        unpack(dir.path(), spoiled);
        let kernel = Answers { root: dir.path().to_owned(), answers: &self.answers };
        let found = examine(&Root::at(dir.path()), &kernel, path);
        found.unwrap_or_else(|e| panic!("{}: {path:?}: {e}", self.name))
    }
}

fn answer<'w>(words: impl Iterator<Item = &'w str>) -> (Answer, Option<bool>) {
    let mut found = (Answer::default(), None);
    for word in words {
        match word.split_once('=').expect("a pair") {
            ("mount", id) => found.0.mount = id.parse().ok(),
            ("dax", is) => found.0.dax = Some(is == "yes"),
            ("map_sync", is) => found.1 = Some(is == "yes"),
            (other, _) => panic!("{other}"),
        }
    }
    found
}

/// A kernel that says what was recorded.
struct Answers<'r> {
    root: PathBuf,
    answers: &'r BTreeMap<PathBuf, (Answer, Option<bool>)>,
}

impl Answers<'_> {
    /// The answer for a path, or for the nearest one above it.
    fn of(&self, path: &Path) -> io::Result<(Answer, Option<bool>)> {
        let inside = Path::new("/").join(path.strip_prefix(&self.root).expect("inside"));
        let found = inside.ancestors().find_map(|path| self.answers.get(path));
        found.copied().ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

impl Kernel for Answers<'_> {
    fn about(&self, path: &Path) -> io::Result<Answer> {
        self.of(path).map(|(answer, _)| answer)
    }

    fn grants_map_sync(&self, file: &Path) -> io::Result<bool> {
        self.of(file)?.1.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

fn unpack(root: &Path, lines: &[String]) {
    let mut base = String::new();
    for line in lines {
        if let Some(inside) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (here, target) =
                inside.split_once(" => ").map_or((inside, None), |(here, there)| (here, Some(there)));
            target.into_iter().for_each(|target| link(root, here, target));
            base = here.to_owned();
        } else if let Some(words) = line.strip_prefix('@') {
            directive(root, words);
        } else if let Some(several) = line.strip_prefix("+ ") {
            let mut parts = several.split(" | ");
            let dir = format!("{base}/{}", parts.next().expect("a directory"));
            for (name, content) in parts.map(|part| part.split_once('=').expect("a pair")) {
                write(root, &format!("{dir}/{name}"), content.as_bytes());
            }
        } else if let Some((path, target)) = line.split_once(" -> ") {
            link(root, &format!("{base}/{path}"), target);
        } else {
            let (path, content) = line.split_once(':').unwrap_or_else(|| panic!("{line}"));
            write(root, &format!("{base}/{path}"), content.trim_start().replace("\\n", "\n").as_bytes());
        }
    }
}

fn inside(root: &Path, path: &str) -> PathBuf {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    path
}

fn write(root: &Path, path: &str, content: &[u8]) {
    fs::write(inside(root, path), content).unwrap_or_else(|e| panic!("{path}: {e}"));
}

/// The target is made too, so that files can be put below it.
fn link(root: &Path, path: &str, target: &str) {
    let at = inside(root, path);
    let _ = fs::remove_file(&at);
    let there = match target.strip_prefix('/') {
        Some(inside) => root.join(inside),
        None => at.parent().expect("one").join(target),
    };
    fs::create_dir_all(there).expect("made");
    symlink(target, at).unwrap_or_else(|e| panic!("{path}: {e}"));
}

fn directive(root: &Path, words: &str) {
    match words.split(' ').collect::<Vec<_>>()[..] {
        ["cpus", count, ref flags @ ..] => {
            let one = |i| format!("processor\t: {i}\nflags\t\t: fpu sse2 {}\n\n", flags.join(" "));
            let all: String = (0..count.parse::<u32>().expect("a number")).map(one).collect();
            write(root, "proc/cpuinfo", all.as_bytes());
        }
        ["control", path, version, checksums] => {
            let mut bytes = vec![0; 8192];
            bytes[8..12].copy_from_slice(&version.parse::<u32>().expect("a number").to_le_bytes());
            bytes[252..256].copy_from_slice(&checksums.parse::<u32>().expect("a number").to_le_bytes());
            write(root, path, &bytes);
        }
        ["sqlite", path, page, mode] => {
            let mut bytes = [b"SQLite format 3\0".as_slice(), &[0; 8192]].concat();
            bytes[16..18].copy_from_slice(&page.parse::<u16>().expect("a number").to_be_bytes());
            bytes[18] = if mode == "wal" { 2 } else { 1 };
            write(root, path, &bytes);
        }
        _ => panic!("{words}"),
    }
}
