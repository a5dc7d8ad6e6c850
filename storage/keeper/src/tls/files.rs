//! The files of a host: read, and looked at, so that the host on which one is wrong says so itself.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::error::{TlsError, now};

/// Whom a host believes.
pub const CA: &str = "ca.crt";
/// Who a host is.
pub const CERTIFICATE: &str = "tls.crt";
/// What proves that.
pub const KEY: &str = "tls.key";
/// The most bytes of one of them that are read.
const LONGEST: u64 = 1 << 20;

/// The organizational unit of a keeper's certificate: it owns no log.
pub(super) const KEEPERS: &str = "Seawall keeper";
/// That of an owner's, in certificates made here. Others need not have it.
pub(super) const OWNERS: &str = "Seawall owner";

/// Whom a certificate names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Owns logs: the certificate's common name, which stays when it is renewed.
    Owner(String),
    /// A keeper: it looks, and owns nothing.
    Keeper(String),
}

/// What a certificate says.
#[derive(Clone, Debug)]
pub struct Said {
    /// Whose it is.
    pub who: Who,
    /// Seconds since 1970.
    pub valid_from: i64,
    /// Seconds since 1970.
    pub valid_until: i64,
}

/// The files of a directory.
pub(super) struct Files {
    pub roots: RootCertStore,
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

/// Reads a directory's files.
///
/// # Errors
/// [`TlsError`].
pub(super) fn read(directory: &Path) -> Result<Files, TlsError> {
    let (ca, certificate) = (directory.join(CA), directory.join(CERTIFICATE));
    let mut roots = RootCertStore::empty();
    for root in certificates(&ca)? {
        check_validity(&ca, &root)?;
        roots.add(root).map_err(|error| damaged(&ca, error))?;
    }
    let chain = certificates(&certificate)?;
    check_validity(&certificate, &chain[0])?;
    let path = directory.join(KEY);
    let mode = fs::metadata(&path).map_err(failed(&path))?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(TlsError::Open(path));
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes(&path)?).map_err(|error| damaged(&path, error))?;
    Ok(Files { roots, chain, key })
}

/// Looks whether a directory's files can be used, and says what its certificate does.
///
/// # Errors
/// [`TlsError`].
pub fn look(directory: &Path) -> Result<Said, TlsError> {
    let files = read(directory)?;
    said(&files.chain[0]).map_err(|what| TlsError::Damaged { path: directory.join(CERTIFICATE), what })
}

/// What a certificate says.
///
/// # Errors
/// In words.
pub fn said(certificate: &[u8]) -> Result<Said, String> {
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
    let names = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let name = names.last().filter(|name| !name.is_empty()).ok_or("it has no common name")?.to_owned();
    let mut units = certificate.subject().iter_organizational_unit().filter_map(|unit| unit.as_str().ok());
    let who = if units.any(|unit| unit == KEEPERS) { Who::Keeper(name) } else { Who::Owner(name) };
    let validity = certificate.validity();
    let (valid_from, valid_until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    Ok(Said { who, valid_from, valid_until })
}

/// All certificates of a file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(path)?).collect();
    let read = read.map_err(|error| damaged(path, error))?;
    if read.is_empty() { Err(damaged(path, "it contains no certificate")) } else { Ok(read) }
}

/// An error if a certificate of this host is not valid now.
pub(super) fn check_validity(path: &Path, certificate: &[u8]) -> Result<(), TlsError> {
    let (_, read) = X509Certificate::from_der(certificate).map_err(|error| damaged(path, error))?;
    let validity = read.validity();
    let (valid_from, valid_until, now) =
        (validity.not_before.timestamp(), validity.not_after.timestamp(), now());
    if (valid_from..=valid_until).contains(&now) {
        return Ok(());
    }
    Err(TlsError::OutOfDate { path: path.into(), valid_from, valid_until, now })
}

pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(failed(path))
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> TlsError {
    let path: PathBuf = path.into();
    move |error| TlsError::File { path, error }
}

pub(super) fn damaged(path: &Path, what: impl ToString) -> TlsError {
    TlsError::Damaged { path: path.into(), what: what.to_string() }
}
