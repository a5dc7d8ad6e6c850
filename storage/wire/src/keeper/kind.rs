//! What a frame may be, and why a keeper may refuse one.

/// An enum whose values travel as numbers.
macro_rules! numbered {
    ($(#[$of:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $number:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$each])* $variant = $number,)+
        }

        impl $name {
            /// The one with this number.
            pub const fn from_word(word: u32) -> Option<Self> {
                match word {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// What a frame is.
    #[allow(missing_docs, reason = "the table in the module above")]
    Kind {
        Hello = 1,
        Promise = 2,
        Adopt = 3,
        Batch = 4,
        Begin = 5,
        Piece = 6,
        Complete = 7,
        Ask = 8,
        Fetch = 9,
        Forget = 10,
        Report = 11,
        Welcome = 33,
        Promised = 34,
        Ack = 35,
        Refused = 36,
        Reported = 37,
    }
}

impl Kind {
    /// True for a frame that changes a copy: a keeper's own file has these.
    pub const fn changes(self) -> bool {
        matches!(self, Self::Adopt | Self::Batch | Self::Begin | Self::Piece | Self::Complete)
    }
}

numbered! {
    /// Why a keeper does not do what it was asked to.
    Refusal {
        /// A newer writer has its promise. Behind the frame: that epoch's text.
        Fenced = 1,
        /// The copy is not where the batch begins: it has to be brought there first.
        Behind = 2,
        /// The log is not here, and was not to be made.
        Unknown = 3,
        /// There is no room for it.
        Quota = 4,
        /// Whoever asks may not.
        Forbidden = 5,
        /// Another version.
        Version = 6,
        /// Nothing that makes sense.
        Malformed = 7,
        /// Its own disk failed.
        Disk = 8,
        /// A witness has no data.
        Witness = 9,
        /// It is here already, and is another one.
        Differs = 10,
        /// Somebody else took the log over since whoever asks for the promise has looked.
        Taken = 11,
    }
}
