//! What is wrong with certificates, in words, with what to do.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use rustls::{AlertDescription, CertificateError, Error};
use thiserror::Error;

/// Why there is no encrypted connection.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file of this host.
    #[error("{}: {error}. `seawall keeper cert` makes it", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A file of this host makes no sense.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Everybody reads a private key.
    #[error("{}: every user of this host can read this private key: chmod 600", .0.display())]
    Open(PathBuf),
    /// A certificate of this host is not valid now.
    #[error(
        "{}: it is valid from {} until {}, and by this host's clock it is {}. Renew it (`seawall keeper cert … --renew`), \
         or set the clock",
        path.display(), utc(*valid_from), utc(*valid_until), utc(*now)
    )]
    OutOfDate {
        /// Which.
        path: PathBuf,
        /// Seconds since 1970.
        valid_from: i64,
        /// Seconds since 1970.
        valid_until: i64,
        /// Seconds since 1970.
        now: i64,
    },
    /// The other end's certificate, or what it says of this host's.
    #[error("{0}")]
    Refused(String),
    /// The other end speaks something else.
    #[error("{0}")]
    NoTls(&'static str),
    /// It was to be the kernel that encrypts.
    #[error("the kernel does not accept this connection's keys: {0}")]
    Kernel(io::Error),
    /// The other end hung up in the middle.
    #[error("it hung up before the keys were agreed on: its log says why")]
    HungUp,
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        Self::other(error)
    }
}

/// Whose end of a connection this is.
pub(crate) enum End {
    /// A writer's, with the files of this directory, at the keeper of this name.
    Writer { files: PathBuf, keeper: String },
    /// A keeper's, with the files of this directory.
    Keeper { files: PathBuf },
}

impl End {
    fn files(&self) -> &PathBuf {
        match self {
            Self::Writer { files, .. } | Self::Keeper { files } => files,
        }
    }

    /// Whose certificate the other end shows, and how it is renewed.
    fn other(&self) -> &'static str {
        match self {
            Self::Writer { .. } => "the keeper's certificate",
            Self::Keeper { .. } => "the client's certificate",
        }
    }
}

impl TlsError {
    /// What rustls says, in words for whoever has to do something about it.
    pub(crate) fn of(error: Error, end: &End) -> Self {
        match error {
            Error::InvalidCertificate(why) => Self::Refused(certificate(&why, end)),
            Error::NoCertificatesPresented => {
                Self::Refused(format!("{} is missing: it shows none", end.other()))
            }
            Error::AlertReceived(alert) => Self::Refused(alert_text(alert, end)),
            Error::InvalidMessage(_) | Error::InappropriateHandshakeMessage { .. } => {
                Self::NoTls(match end {
                    End::Writer { .. } => {
                        "the program that answers there does not speak TLS: was that keeper started without \
                         --tls? Is it a keeper at all?"
                    }
                    End::Keeper { .. } => "the client does not speak TLS",
                })
            }
            other => Self::Refused(format!("no encrypted connection: {other}")),
        }
    }
}

fn certificate(why: &CertificateError, end: &End) -> String {
    let (other, files) = (end.other(), end.files().display());
    let clocks = "Renew it (`seawall keeper cert … --renew`), unless the clocks of the two hosts differ";
    match why {
        CertificateError::ExpiredContext { time, not_after } => format!(
            "{other} expired at {}, and by this host's clock it is {}. {clocks}",
            utc(not_after.as_secs() as i64),
            utc(time.as_secs() as i64)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "{other} is valid from {} on, and by this host's clock it is {}. {clocks}",
            utc(not_before.as_secs() as i64),
            utc(time.as_secs() as i64)
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| plain(name)).collect();
            format!(
                "{other} is for {}, not for {}: use one of its names, or make a certificate with that name \
                 (`seawall keeper cert keeper`)",
                if names.is_empty() { "no name at all".to_owned() } else { names.join(" and ") },
                expected.to_str()
            )
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "{other} was not signed by the CA that this host trusts, {files}/ca.crt: both hosts need \
             certificates of one CA"
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!(
                "{other} was made for another purpose (`seawall keeper cert keeper` and `… owner` differ)"
            )
        }
        other_why => format!("{other} is not accepted: {other_why}"),
    }
}

/// What is between the parentheses of `DnsName("…")` and `IpAddress(…)`.
fn plain(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')'));
    inner.trim_matches('"')
}

fn alert_text(alert: AlertDescription, end: &End) -> String {
    let (mine, who) = (
        format!("{}/tls.crt", end.files().display()),
        match end {
            End::Writer { keeper, .. } => format!("keeper {keeper}"),
            End::Keeper { .. } => "the client".to_owned(),
        },
    );
    match alert {
        AlertDescription::CertificateExpired => format!(
            "{who} considers this host's certificate, {mine}, expired or not valid yet. Renew it \
             (`seawall keeper cert … --renew`), unless the clocks differ: by this one it is {}",
            utc(now())
        ),
        AlertDescription::UnknownCA | AlertDescription::DecryptError => format!(
            "{who} does not trust the CA that signed this host's certificate, {mine}: both hosts need \
             certificates of one CA"
        ),
        AlertDescription::CertificateRequired => {
            format!("{who} requires a certificate, and this host shows none")
        }
        AlertDescription::UnsupportedCertificate => format!(
            "{who} refuses this host's certificate, {mine}: it was made for another purpose \
             (`seawall keeper cert owner`)"
        ),
        AlertDescription::BadCertificate => match end {
            End::Writer { .. } => format!("{who} refuses this host's certificate, {mine}: its log says why"),
            End::Keeper { .. } => format!(
                "{who} refuses this host's certificate, {mine}: most likely it does not have the name by \
                 which this host was called"
            ),
        },
        AlertDescription::ProtocolVersion => format!("{who} does not speak TLS 1.3"),
        other => format!("{who} ended the connection: {other:?}"),
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs() as i64)
}

/// Seconds since 1970 as people read them.
pub fn utc(seconds: i64) -> String {
    seawall_media::utc(UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::UnixTime;

    use super::*;

    /// Only hosts whose clocks differ get there: each looks at its own certificate first.
    #[test]
    fn who_is_out_of_date_for_the_other_end_reads_both_times_and_that_clocks_may_differ() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let files = PathBuf::from("/files");
        let ends = [End::Writer { files: files.clone(), keeper: "k1".into() }, End::Keeper { files }];
        for end in &ends {
            let (time, bound) = (at(86_400), at(951_782_400));
            for why in [
                CertificateError::ExpiredContext { time, not_after: bound },
                CertificateError::NotValidYetContext { time, not_before: bound },
            ] {
                let text = TlsError::of(Error::InvalidCertificate(why), end).to_string();
                for words in ["1970-01-02T00:00:00Z", "2000-02-29", "clocks", "--renew"] {
                    assert!(text.contains(words), "{words}: {text}");
                }
            }
            let told =
                TlsError::of(Error::AlertReceived(AlertDescription::CertificateExpired), end).to_string();
            assert!(
                told.contains("/files/tls.crt")
                    && told.contains("clocks differ")
                    && told.contains("by this one it is 20"),
                "{told}"
            );
        }
    }
}
