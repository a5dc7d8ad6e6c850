//! A page of a terminal: lines that are not longer than it is wide, and not more than it is high.

/// How a terminal is.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// It may be coloured.
    pub colour: bool,
}

impl Screen {
    /// No terminal: as long as it takes, without colour.
    pub const FILE: Self = Self { width: 132, height: usize::MAX, colour: false };

    pub(super) fn page(self) -> Page {
        Page { screen: self, lines: Vec::new() }
    }
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Text.
    Plain,
    /// What is most important.
    Head,
    /// Headings, and what is zero.
    Dim,
    /// All is well.
    Good,
    /// To be noticed.
    Warn,
    /// Wrong.
    Bad,
}

impl Paint {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Head => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Warn => "\x1b[33m",
            Self::Bad => "\x1b[1;31m",
        }
    }
}

/// The beginning of a name, for so many columns.
pub(super) fn head(name: &str, room: usize) -> String {
    if name.chars().count() <= room {
        return name.into();
    }
    name.chars().take(room - 1).chain(['…']).collect()
}

/// A page that is being written.
pub(super) struct Page {
    screen: Screen,
    lines: Vec<(Paint, String)>,
}

impl Page {
    pub fn width(&self) -> usize {
        self.screen.width
    }

    /// Adds a line, cut off where the screen ends.
    pub fn line(&mut self, paint: Paint, text: &str) {
        self.lines.push((paint, text.chars().take(self.screen.width).collect()));
    }

    /// The end of a path, for a place that begins at this column: it tells more than the beginning.
    pub fn tail(&self, path: &str, column: usize) -> String {
        let (room, length) = (self.screen.width.saturating_sub(column), path.chars().count());
        if length <= room || room == 0 {
            return path.into();
        }
        std::iter::once('…').chain(path.chars().skip(length - room + 1)).collect()
    }

    /// The page.
    pub fn text(&self) -> String {
        let painted = |(paint, text): &(Paint, String)| match paint.code() {
            code if self.screen.colour && !code.is_empty() => format!("{code}{}\x1b[0m\n", text.trim_end()),
            _ => format!("{}\n", text.trim_end()),
        };
        // The last row stays empty: a line break there would move everything up.
        self.lines.iter().take(self.screen.height.saturating_sub(1)).map(painted).collect()
    }
}
