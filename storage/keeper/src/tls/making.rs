//! A small CA, and certificates of keepers and of logs' owners.
//!
//! A certificate is renewed with the key that it had: one file that is no secret is copied to its host. Its subject stays
//! too.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::ServerName;
use seawall_media::{durable, random_uuid};
use thiserror::Error;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::error::{TlsError, now, utc};
use super::files::{self, CA, CERTIFICATE, KEEPERS, KEY, OWNERS};
use crate::meta::replace;
use crate::uuid::uuid_text;

/// The CA's private key, beside its certificate. It belongs on no keeper and on no database's host.
pub const CA_KEY: &str = "ca.key";
/// The longest name.
const NAME_MAX: usize = 64;
const DAY: i64 = 86_400;

/// Why nothing was made.
#[derive(Debug, Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum MakeError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("{} already exists. Renew it with --renew; nothing was changed", .0.display())]
    Exists(PathBuf),
    #[error("{} does not exist: make it first, without --renew", .0.display())]
    Nothing(PathBuf),
    #[error("{}: there is no CA: `seawall keeper cert ca {}` makes one", .0.display(), .0.display())]
    NoCa(PathBuf),
    #[error(
        "{0:?} is not a name for a keeper: use the host's name or IP address, as others call it, without the \
         port"
    )]
    Host(String),
    #[error(
        "{0:?} is not a name for an owner: use 1 to {NAME_MAX} letters, digits, dots, dashes and underscores"
    )]
    Owner(String),
    #[error(
        "the CA's certificate ends on {}, before a certificate of {days} days would: ask for fewer days \
         (--days), or renew the CA first (`seawall keeper cert ca {} --renew`)",
        utc(*until), directory.display()
    )]
    Outlives { directory: PathBuf, until: i64, days: i64 },
    #[error("{}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot make a certificate: {0}")]
    Making(#[from] rcgen::Error),
}

/// From when until when a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// The first second.
    pub from: i64,
    /// The last one.
    pub until: i64,
}

impl Validity {
    /// For so many days from now. It began yesterday: a clock that is late makes no difference at first.
    pub fn days(days: i64) -> Self {
        Self { from: now() - DAY, until: now() + days * DAY }
    }
}

/// What a certificate is for.
#[derive(Clone, Debug)]
pub enum For {
    /// A keeper, by the names and addresses at which it is reached.
    Keeper(Vec<String>),
    /// An owner of logs.
    Owner(String),
}

impl For {
    fn check(&self) -> Result<(), MakeError> {
        match self {
            Self::Keeper(names) => names
                .iter()
                .find(|name| !is_host(name))
                .map_or(Ok(()), |name| Err(MakeError::Host(name.clone()))),
            Self::Owner(name) if is_plain(name) => Ok(()),
            Self::Owner(name) => Err(MakeError::Owner(name.clone())),
        }
    }

    /// Its name.
    fn name(&self) -> &str {
        match self {
            Self::Keeper(names) => names.first().map_or("", String::as_str),
            Self::Owner(name) => name,
        }
    }

    /// Its directory below the CA's. A colon would be a host's name to `scp`.
    fn directory(&self) -> String {
        match self {
            Self::Keeper(_) => format!("keeper-{}", self.name().replace(':', "_")),
            Self::Owner(name) => format!("owner-{name}"),
        }
    }

    fn parameters(&self) -> Result<CertificateParams, MakeError> {
        let (names, unit) = match self {
            Self::Keeper(names) => (names.clone(), KEEPERS),
            Self::Owner(_) => (Vec::new(), OWNERS),
        };
        let mut made = CertificateParams::new(names)?;
        // A keeper's is also what its administrator asks it with.
        made.extended_key_usages = match self {
            Self::Keeper(_) => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
            Self::Owner(_) => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        made.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        made.distinguished_name = DistinguishedName::new();
        made.distinguished_name.push(DnType::OrganizationalUnitName, unit);
        made.distinguished_name.push(DnType::CommonName, shortened(self.name()));
        Ok(made)
    }
}

/// Makes a CA in a directory, or a new certificate for the one that is there. Its certificate.
///
/// # Errors
/// [`MakeError`]; nothing that was there is changed.
pub fn ca(directory: &Path, validity: Validity, renew: bool) -> Result<PathBuf, MakeError> {
    let (certificate, key) = (directory.join(CA), directory.join(CA_KEY));
    let (key_pair, name) = if renew {
        (read_key(&key)?, subject(&certificate)?)
    } else {
        for path in [&certificate, &key] {
            absent(path)?;
        }
        make_directory(directory)?;
        let name = random_uuid().map_err(|error| MakeError::Write { path: key.clone(), error })?;
        (new_key(&key)?, format!("Seawall CA {}", &uuid_text(name)[..8]))
    };
    let mut made = CertificateParams::new(Vec::new())?;
    made.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    made.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    made.distinguished_name = DistinguishedName::new();
    made.distinguished_name.push(DnType::CommonName, name);
    lasts(&mut made, validity);
    let made = made.self_signed(&key_pair)?;
    put(&certificate, made.pem().as_bytes())?;
    Ok(certificate)
}

/// Makes a certificate, or renews the one that is there, by the CA in a directory. The directory that goes to its host.
///
/// # Errors
/// [`MakeError`]; nothing that was there is changed.
pub fn certificate(ca: &Path, whose: &For, validity: Validity, renew: bool) -> Result<PathBuf, MakeError> {
    whose.check()?;
    let authority = ca.join(CA);
    if !authority.exists() || !ca.join(CA_KEY).exists() {
        return Err(MakeError::NoCa(ca.into()));
    }
    let root = files::certificates(&authority)?.swap_remove(0);
    files::check_validity(&authority, &root)?;
    let until = files::said(&root).map_err(|what| files::damaged(&authority, what))?.valid_until;
    if validity.until > until {
        return Err(MakeError::Outlives {
            directory: ca.into(),
            until,
            days: (validity.until - now()) / DAY,
        });
    }
    let directory = ca.join(whose.directory());
    let (path, key) = (directory.join(CERTIFICATE), directory.join(KEY));
    let (key_pair, whose) = if renew {
        (read_key(&key)?, renewed(&path, whose)?)
    } else {
        for path in [&path, &key] {
            absent(path)?;
        }
        make_directory(&directory)?;
        (new_key(&key)?, whose.clone())
    };
    let mut made = whose.parameters()?;
    lasts(&mut made, validity);
    let issuer = Issuer::from_ca_cert_der(&root, read_key(&ca.join(CA_KEY))?)?;
    let made = made.signed_by(&key_pair, &issuer)?;
    put(&directory.join(CA), &files::bytes(&authority)?)?;
    put(&path, made.pem().as_bytes())?;
    Ok(directory)
}

/// Whom a certificate that is renewed is for: a keeper that was named once only keeps its other names.
fn renewed(path: &Path, whose: &For) -> Result<For, MakeError> {
    if !path.exists() {
        return Err(MakeError::Nothing(path.into()));
    }
    let For::Keeper(names) = whose else { return Ok(whose.clone()) };
    if names.len() > 1 {
        return Ok(whose.clone());
    }
    let former = files::certificates(path)?.swap_remove(0);
    let (_, read) = X509Certificate::from_der(&former).map_err(|error| files::damaged(path, error))?;
    let alternatives = read.subject_alternative_name().map_err(|error| files::damaged(path, error))?;
    let found = alternatives.into_iter().flat_map(|found| &found.value.general_names);
    let names = found.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| std::net::Ipv4Addr::from(bytes).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_string()),
        },
        _ => None,
    });
    Ok(For::Keeper(names.collect()))
}

fn lasts(made: &mut CertificateParams, validity: Validity) {
    let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    (made.not_before, made.not_after) = (at(validity.from), at(validity.until));
}

fn subject(path: &Path) -> Result<String, MakeError> {
    if !path.exists() {
        return Err(MakeError::Nothing(path.into()));
    }
    let read = files::certificates(path)?.swap_remove(0);
    let (_, read) = X509Certificate::from_der(&read).map_err(|error| files::damaged(path, error))?;
    let mut names = read.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    Ok(names.next().ok_or_else(|| files::damaged(path, "it has no common name"))?.to_owned())
}

fn read_key(path: &Path) -> Result<KeyPair, MakeError> {
    if !path.exists() {
        return Err(MakeError::Nothing(path.into()));
    }
    let text = String::from_utf8(files::bytes(path)?).map_err(|error| files::damaged(path, error))?;
    KeyPair::from_pem(&text).map_err(|error| files::damaged(path, error).into())
}

/// A new key, on the disk: nobody but its owner reads it at any time, and none is replaced.
fn new_key(path: &Path) -> Result<KeyPair, MakeError> {
    let key = KeyPair::generate()?;
    let made = durable::create(path, 0o600, key.serialize_pem().as_bytes());
    made.map_err(|error| MakeError::Write { path: path.into(), error })?;
    Ok(key)
}

fn make_directory(path: &Path) -> Result<(), MakeError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| MakeError::Write { path: path.into(), error })
}

fn absent(path: &Path) -> Result<(), MakeError> {
    // A link to nowhere is in the way too.
    if path.symlink_metadata().is_ok() { Err(MakeError::Exists(path.into())) } else { Ok(()) }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), MakeError> {
    replace(path, bytes).map_err(|error| MakeError::Write { path: path.into(), error })
}

/// A subject's name has an end; the names that count stand elsewhere.
fn shortened(name: &str) -> &str {
    &name[..name.len().min(NAME_MAX)]
}

fn is_plain(name: &str) -> bool {
    let may = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(may) && !name.starts_with('.')
}

fn is_host(name: &str) -> bool {
    name.is_ascii() && !name.ends_with('.') && ServerName::try_from(name).is_ok()
}
