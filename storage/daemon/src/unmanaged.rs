//! Why a file is not managed, or not cached.

use seawall_wire::message::Status;

/// Why not, as the client hears it.
pub(crate) struct Unmanaged(pub Status);

/// The file is nothing to us.
pub(crate) const BYPASS: Unmanaged = Unmanaged(Status::Bypass);
/// The client asks again later.
pub(crate) const LATER: Unmanaged = Unmanaged(Status::Later);
/// The client asks again in a moment, and changes nothing before.
pub(crate) const SUSPENDED: Unmanaged = Unmanaged(Status::Suspended);
/// The file could be managed, and is not now.
pub(crate) const REFUSED: Unmanaged = Unmanaged(Status::Refused);
