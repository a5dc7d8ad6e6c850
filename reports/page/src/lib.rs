//! Documents of tables and charts, as text, as Markdown, and as one self-contained HTML file.
//!
//! Input: a [`Document`]: facts, sections, tables, charts. Output: text for a terminal, Markdown, or HTML that needs no
//! network, is light or dark as the reader's system is, and prints. Nothing is computed here but geometry.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

pub mod chart;
mod document;
mod html;
mod markdown;
pub mod regions;
pub mod scale;
mod shell;
mod sure;
mod text;

pub use document::{Block, Document, Note, Section, Table, Weight};
pub use html::html;
pub use markdown::markdown;
pub use shell::{STYLE, escape, shell};
pub use sure::Sure;
pub use text::text;
