//! A queue from whose middle can be taken: what most of the algorithms are made of.

use std::collections::HashMap;

use seawall_cache::key::Block;

const NONE: usize = usize::MAX;

/// Blocks in an order, each with something noted about it.
pub struct List<T> {
    nodes: Vec<Node<T>>,
    free: Vec<usize>,
    places: HashMap<Block, usize>,
    newest: usize,
    oldest: usize,
}

struct Node<T> {
    block: Block,
    note: T,
    newer: usize,
    older: usize,
}

impl<T> List<T> {
    pub fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), places: HashMap::new(), newest: NONE, oldest: NONE }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn contains(&self, block: Block) -> bool {
        self.places.contains_key(&block)
    }

    /// What is noted about a block that is in the list.
    pub fn note(&mut self, block: Block) -> Option<&mut T> {
        self.places.get(&block).map(|at| &mut self.nodes[*at].note)
    }

    /// Enters a block that is not in the list, as the newest.
    pub fn push(&mut self, block: Block, note: T) {
        let node = Node { block, note, newer: NONE, older: self.newest };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        match self.newest {
            NONE => self.oldest = at,
            newest => self.nodes[newest].newer = at,
        }
        self.newest = at;
        let before = self.places.insert(block, at);
        assert!(before.is_none(), "{block:?} is in the list");
    }

    /// Takes a block out.
    pub fn remove(&mut self, block: Block) -> bool {
        let Some(at) = self.places.remove(&block) else { return false };
        let (newer, older) = (self.nodes[at].newer, self.nodes[at].older);
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older].newer = newer,
        }
        self.free.push(at);
        true
    }

    /// The block that was entered before all others.
    pub fn oldest(&self) -> Option<Block> {
        (self.oldest != NONE).then(|| self.nodes[self.oldest].block)
    }

    /// The one entered after `block`.
    pub fn newer(&self, block: Block) -> Option<Block> {
        let newer = self.nodes[*self.places.get(&block)?].newer;
        (newer != NONE).then(|| self.nodes[newer].block)
    }

    /// Takes out the oldest.
    pub fn pop(&mut self) -> Option<Block> {
        let block = self.oldest()?;
        self.remove(block);
        Some(block)
    }
}
