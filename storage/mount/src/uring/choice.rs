//! Whether requests come by io_uring.

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FuseUring {
    /// Where the kernel allows it.
    #[default]
    Auto,
    /// Or nothing is mounted.
    On,
    /// Never.
    Off,
}

impl FuseUring {
    /// All.
    pub const ALL: [Self; 3] = [Self::Auto, Self::On, Self::Off];

    /// As the command line writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}
