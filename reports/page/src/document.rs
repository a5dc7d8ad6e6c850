//! A document: what both renderings show.

use crate::chart::Chart;

/// A report: a title, what it is about, sections.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// One line over the title.
    pub brand: String,
    /// The title.
    pub title: String,
    /// The honest label of the log's medium, if there is a log.
    pub medium: Option<String>,
    /// The header.
    pub facts: Vec<(String, String)>,
    /// The sections, in order.
    pub sections: Vec<Section>,
}

/// A section.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// What is in it.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Words(String),
    /// Something to act on, or to know.
    Note(Note),
    /// Lines to type, which no rendering breaks or joins.
    Commands(Vec<String>),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A picture: HTML only.
    Chart(Chart),
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Something is wrong.
    Bad,
    /// Something limits what the document says here.
    Warn,
    /// Good to know.
    Info,
    /// Something went well.
    Good,
}

/// Something to act on, or to know.
#[derive(Clone, Debug)]
pub struct Note {
    /// How much it matters.
    pub weight: Weight,
    /// In one line.
    pub title: String,
    /// The rest.
    pub lines: Vec<String>,
}

/// A table. Figures flush right; columns of words flush left.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// A line over it.
    pub caption: String,
    /// Column headings. One that begins with `<` is of words, one with `<<` of words that may be long.
    pub head: Vec<String>,
    /// As many cells as headings.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(caption: &str, head: &[&str]) -> Self {
        Self { caption: caption.into(), head: head.iter().map(|h| (*h).into()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of cells than the heading: a mistake of the program.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let row: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(row.len(), self.head.len(), "a row of {:?}", self.head);
        self.rows.push(row);
    }
}

impl Section {
    /// An empty section.
    pub fn new(title: &str) -> Self {
        Self { title: title.into(), blocks: Vec::new() }
    }

    /// Adds a table, if it has rows.
    pub fn table(&mut self, table: Table) -> &mut Self {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
        self
    }

    /// Adds a paragraph.
    pub fn words(&mut self, words: impl Into<String>) -> &mut Self {
        self.blocks.push(Block::Words(words.into()));
        self
    }

    /// Adds a chart, if there is something to draw.
    pub fn chart(&mut self, chart: Option<Chart>) -> &mut Self {
        self.blocks.extend(chart.map(Block::Chart));
        self
    }
}

/// A heading without its marks.
pub(crate) fn heading(head: &str) -> &str {
    head.trim_start_matches('<')
}
