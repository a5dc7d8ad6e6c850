//! What a sequence of calls does to names and files, and which of its states may be left by a power cut.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::op::Op;

/// What a name leads to: a file or a directory by the step in which it was made, a symbolic link by its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    File(usize),
    Directory(usize),
    Link(String),
}

/// The names in a directory.
pub type Names = BTreeMap<String, Node>;

/// What there is before the first step: a file `a` and a directory `B`, both durable.
pub const ROOT: usize = 0;
pub const A: usize = 61;
pub const B: usize = 62;
pub const FIRST: &str = "before";

/// Every directory's names, and every file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub directories: BTreeMap<usize, Names>,
    pub contents: BTreeMap<usize, Vec<u8>>,
}

impl State {
    fn first() -> Self {
        let root = [("a".to_owned(), Node::File(A)), ("B".to_owned(), Node::Directory(B))].into();
        let directories = [(ROOT, root), (B, Names::new())].into();
        Self { directories, contents: [(A, FIRST.into())].into() }
    }

    /// The directory and the name that a path leads to.
    fn parent<'p>(&self, path: &'p str) -> Option<(usize, &'p str)> {
        match path.split_once('/') {
            None => Some((ROOT, path)),
            Some((directory, name)) => match self.directories[&ROOT].get(directory)? {
                Node::Directory(id) => Some((*id, name)),
                _ => None,
            },
        }
    }

    fn at(&self, path: &str) -> Option<Node> {
        if path == "." {
            return Some(Node::Directory(ROOT));
        }
        let (directory, name) = self.parent(path)?;
        self.directories[&directory].get(name).cloned()
    }

    fn file(&self, path: &str) -> Option<usize> {
        match self.at(path)? {
            Node::File(id) => Some(id),
            _ => None,
        }
    }

    fn put(&mut self, path: &str, node: Option<Node>) -> Option<usize> {
        let (directory, name) = self.parent(path)?;
        let names = self.directories.get_mut(&directory)?;
        match node {
            Some(node) => names.insert(name.to_owned(), node),
            None => names.remove(name),
        };
        Some(directory)
    }

    /// A rename, or an exchange: the directories that it changes, and the one that it replaces. `None` if it fails.
    fn rename(&mut self, op: Op) -> Option<(usize, usize, Option<usize>)> {
        let (node, over) = (self.at(op.path)?, self.at(op.to));
        // Of two names of one file neither goes.
        if over.as_ref() == Some(&node) || (op.call == "exchange" && over.is_none()) {
            return None;
        }
        let is_directory = |node: &Node| matches!(node, Node::Directory(_));
        let replaced = match over.as_ref().filter(|_| op.call == "rename") {
            Some(over) if is_directory(over) != is_directory(&node) => return None,
            Some(Node::Directory(id)) if !self.directories[id].is_empty() => return None,
            Some(Node::Directory(id)) => Some(*id),
            _ => None,
        };
        self.parent(op.to)?;
        let from = self.put(op.path, over.filter(|_| op.call == "exchange"))?;
        let to = self.put(op.to, Some(node))?;
        replaced.iter().for_each(|id| drop(self.directories.remove(id)));
        Some((from, to, replaced))
    }

    fn has(&self, file: usize) -> bool {
        self.directories.values().any(|names| names.values().any(|node| *node == Node::File(file)))
    }
}

/// A sequence and what it does.
#[derive(Clone, Debug)]
pub struct History {
    pub ops: Vec<Op>,
    /// Before the first step, and after each one.
    pub states: Vec<State>,
    /// What a file had, in order, and after which step.
    versions: BTreeMap<usize, Vec<(usize, Vec<u8>)>>,
    /// The step in which a directory, and a file, was synced last.
    synced: BTreeMap<usize, usize>,
    synced_files: BTreeMap<usize, usize>,
    /// Steps that change two directories at once.
    across: Vec<(usize, usize, usize)>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            ops: Vec::new(),
            states: vec![State::first()],
            versions: [(A, vec![(0, FIRST.into())])].into(),
            synced: BTreeMap::new(),
            synced_files: BTreeMap::new(),
            across: Vec::new(),
        }
    }
}

impl History {
    pub fn parse(text: &str) -> Self {
        let then = |history: Self, op| history.then(Op::parse(op)).unwrap_or_else(|| panic!("{op} fails"));
        text.split(';').fold(Self::default(), then)
    }

    /// The same with one call more. `None` if that fails.
    pub fn then(&self, op: Op) -> Option<Self> {
        let mut next = self.clone();
        let step = self.ops.len() + 1;
        let mut now = self.states.last()?.clone();
        let free = |path| if now.at(path).is_none() { now.parent(path).map(drop) } else { None };
        match op.call {
            "creat" | "tmpfile" => {
                free(op.path)?;
                now.put(op.path, Some(Node::File(step)));
                now.contents.insert(step, Vec::new());
                next.versions.insert(step, vec![(step, Vec::new())]);
            }
            "symlink" => {
                free(op.path)?;
                now.put(op.path, Some(Node::Link(format!("to{step}"))));
            }
            "mkdir" => {
                free(op.path)?;
                now.put(op.path, Some(Node::Directory(step)));
                now.directories.insert(step, Names::new());
                next.across.push((step, ROOT, step));
            }
            "rmdir" => {
                let Node::Directory(id) = now.at(op.path)? else { return None };
                if !now.directories[&id].is_empty() {
                    return None;
                }
                now.put(op.path, None);
                now.directories.remove(&id);
                next.across.push((step, ROOT, id));
            }
            "write" | "append" | "truncate" | "fallocate" => {
                let file = now.file(op.path)?;
                let content = now.contents.get_mut(&file)?;
                op.change(content, step);
                next.versions.get_mut(&file)?.push((step, content.clone()));
            }
            "link" => {
                let file = now.file(op.path)?;
                free(op.to)?;
                now.put(op.to, Some(Node::File(file)));
            }
            "unlink" => {
                if matches!(now.at(op.path)?, Node::Directory(_)) {
                    return None;
                }
                now.put(op.path, None);
            }
            "rename" | "exchange" => {
                let (from, to, replaced) = now.rename(op)?;
                if from != to {
                    next.across.push((step, from, to));
                }
                next.across.extend(replaced.map(|replaced| (step, to, replaced)));
            }
            "fsync" => match now.at(op.path)? {
                Node::Directory(id) => drop(next.synced.insert(id, step)),
                Node::File(id) => drop(next.synced_files.insert(id, step)),
                Node::Link(_) => return None,
            },
            other => unreachable!("{other}"),
        }
        next.ops.push(op);
        next.states.push(now);
        Some(next)
    }

    /// Why a sequence cannot have left this.
    pub fn refuse(&self, found: &State) -> Option<String> {
        self.refuse_names(found).or_else(|| self.refuse_contents(found))
    }

    fn refuse_names(&self, found: &State) -> Option<String> {
        let known: BTreeSet<usize> =
            self.states.iter().flat_map(|state| state.directories.keys().copied()).collect();
        if let Some(strange) = found.directories.keys().find(|id| !known.contains(id)) {
            return Some(format!("nobody made directory {strange}"));
        }
        let mut choices: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new()];
        for id in &known {
            let due = self.synced.get(id).copied().unwrap_or(0);
            let like = (due..self.states.len())
                .filter(|i| self.states[*i].directories.get(id) == found.directories.get(id));
            let like: Vec<usize> = like.collect();
            if like.is_empty() {
                let what = found.directories.get(id);
                return Some(format!("directory {id} was never so since step {due}: {what:?}"));
            }
            let with = |choice: &BTreeMap<usize, usize>| {
                let choice = choice.clone();
                like.iter()
                    .map(move |i| choice.iter().map(|(k, v)| (*k, *v)).chain([(*id, *i)]).collect())
                    .collect::<Vec<_>>()
            };
            choices = choices.iter().flat_map(with).collect();
        }
        let is_whole = |choice: &BTreeMap<usize, usize>| {
            self.across.iter().all(|(step, from, to)| (choice[from] >= *step) == (choice[to] >= *step))
        };
        if !choices.iter().any(is_whole) {
            return Some(format!("a change of two directories is half there: {:?}", found.directories));
        }
        let lost = self.synced_files.iter().find(|(file, step)| {
            !found.has(**file) && self.states[**step..].iter().all(|state| state.has(**file))
        });
        lost.map(|(file, step)| format!("file {file}, synced in step {step}, is gone"))
    }

    fn refuse_contents(&self, found: &State) -> Option<String> {
        for (file, content) in &found.contents {
            let Some(versions) = self.versions.get(file) else {
                return Some(format!("nobody made file {file}"));
            };
            let due = self.synced_files.get(file).copied().unwrap_or(0);
            let last = versions.iter().rposition(|(step, _)| *step <= due).unwrap_or(0);
            if !could_be(&versions[last..], content) {
                let content = String::from_utf8_lossy(content);
                return Some(format!("file {file} never had {content:?} since step {due}"));
            }
        }
        None
    }
}

/// True if a file that was synced with the first of these, and then had the others, may have this. Of what was not synced each
/// byte may be there or not, and what was added may be zeros: so ext4 leaves it.
fn could_be(versions: &[(usize, Vec<u8>)], content: &[u8]) -> bool {
    let shortest = versions.iter().map(|(_, version)| version.len()).min().unwrap_or(0);
    let had = |i: usize, byte: u8| versions.iter().any(|(_, version)| version.get(i) == Some(&byte));
    versions.iter().any(|(_, version)| version.len() == content.len())
        && content.iter().enumerate().all(|(i, byte)| had(i, *byte) || *byte == 0 && i >= shortest)
}

impl Display for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ops: Vec<String> = self.ops.iter().map(ToString::to_string).collect();
        f.write_str(&ops.join("; "))
    }
}
