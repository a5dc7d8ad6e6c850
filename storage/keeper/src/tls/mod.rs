//! TLS 1.3 between a log's writer and its keepers: both show a certificate of one CA, and nothing else is spoken.
//!
//! | file of a host's directory | what |
//! |---|---|
//! | `ca.crt` | whom this host believes: the CA's certificate |
//! | `tls.crt` | who this host is: its certificate, and what stands between that and the CA's |
//! | `tls.key` | the private key that belongs to it |
//!
//! They are read for each connection, so that a new certificate counts from the next one on.

mod ends;
mod error;
pub mod files;
pub(crate) mod in_kernel;
pub mod making;
mod records;

pub(crate) use ends::{Client, Named, Server};
pub(crate) use error::End;
pub use error::{TlsError, utc};
pub(crate) use records::Records;
