//! Shared words by name.

/// Defines accessors for shared words at fixed offsets of a view.
macro_rules! words {
    ($view:ident { $($(#[$doc:meta])* $name:ident : $kind:ident @ $at:expr),* $(,)? }) => {
        impl<'a> $view<'a> {
            $($(#[$doc])* #[inline]
            pub fn $name(&self) -> &'a words!(@atomic $kind) { self.region.$kind(self.at + $at) })*
        }
    };
    (@atomic u32) => { core::sync::atomic::AtomicU32 };
    (@atomic u64) => { core::sync::atomic::AtomicU64 };
}
pub(crate) use words;
