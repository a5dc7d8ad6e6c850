//! The keys of a connection, given to the kernel: it encrypts and decrypts from then on, for any process that has the
//! socket.
//!
//! The handshake is rustls'. It reads [no more](super::Records) than that, and a keeper says nothing before it is asked:
//! so the kernel begins with the first record of each direction. After that:
//!
//! * A record that is no data is an error of the socket: an alert, or new keys. That connection is at its end, and another
//!   one is made.
//! * The kernel counts no records. Whoever uses the connection makes another one [before](crate::wire::Wire::wears) its
//!   keys are used up.
//! * A kernel without TLS, or without such keys, is asked once in a process. Then this process encrypts.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::errno::Errno;
use nix::libc::{
    TLS_1_3_VERSION, TLS_CIPHER_AES_GCM_128, TLS_CIPHER_AES_GCM_256, TLS_CIPHER_CHACHA20_POLY1305,
    tls_crypto_info, tls12_crypto_info_aes_gcm_128, tls12_crypto_info_aes_gcm_256,
    tls12_crypto_info_chacha20_poly1305,
};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{TcpTlsRx, TcpTlsTx, TcpUlp, TlsCryptoInfo};
use rustls::{ConnectionTrafficSecrets, ExtractedSecrets};

use super::error::TlsError;

/// False once this kernel did not do it.
static MAY_BE: AtomicBool = AtomicBool::new(true);

/// True until the kernel was asked, and has no TLS or does not take such keys.
pub(crate) fn may_be() -> bool {
    MAY_BE.load(Relaxed)
}

/// Has a connection be one of the kernel's, once it [has the keys](take): until then nothing is different. False: this
/// process is to encrypt.
pub(super) fn is_asked_for(socket: &TcpStream) -> bool {
    if !may_be() {
        return false;
    }
    let asked = setsockopt(socket, TcpUlp::default(), b"tls");
    // A connection that ended meanwhile says nothing of the kernel.
    if asked.is_err_and(|error| error != Errno::ENOTCONN) {
        MAY_BE.store(false, Relaxed);
    }
    asked.is_ok()
}

/// Gives the kernel the keys of both directions.
///
/// # Errors
/// [`TlsError::Kernel`] within: it does not know the cipher, and is not asked again.
pub(crate) fn take(socket: &TcpStream, secrets: ExtractedSecrets) -> io::Result<()> {
    let (tx, rx) = (keys(secrets.tx), keys(secrets.rx));
    let taken = tx.zip(rx).ok_or(Errno::EINVAL).and_then(|(tx, rx)| {
        setsockopt(socket, TcpTlsTx, &tx)?;
        setsockopt(socket, TcpTlsRx, &rx)
    });
    taken.map_err(|error| {
        MAY_BE.store(false, Relaxed);
        TlsError::Kernel(error.into()).into()
    })
}

/// True if this is what [`take`] said.
pub(crate) fn has_refused(error: &io::Error) -> bool {
    let why = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(why, Some(TlsError::Kernel(_)))
}

/// As the kernel takes them, from this record on. `None`: a cipher that it does not know.
fn keys((record, secrets): (u64, ConnectionTrafficSecrets)) -> Option<TlsCryptoInfo> {
    let info = |cipher_type| tls_crypto_info { version: TLS_1_3_VERSION, cipher_type };
    let rec_seq = record.to_be_bytes();
    match &secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
            let (salt, iv) = halves(iv.as_ref())?;
            let (info, key) = (info(TLS_CIPHER_AES_GCM_128), bytes(key.as_ref())?);
            Some(TlsCryptoInfo::Aes128Gcm(tls12_crypto_info_aes_gcm_128 { info, iv, key, salt, rec_seq }))
        }
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => {
            let (salt, iv) = halves(iv.as_ref())?;
            let (info, key) = (info(TLS_CIPHER_AES_GCM_256), bytes(key.as_ref())?);
            Some(TlsCryptoInfo::Aes256Gcm(tls12_crypto_info_aes_gcm_256 { info, iv, key, salt, rec_seq }))
        }
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            let (info, iv) = (info(TLS_CIPHER_CHACHA20_POLY1305), bytes(iv.as_ref())?);
            let (key, salt) = (bytes(key.as_ref())?, []);
            let keys = tls12_crypto_info_chacha20_poly1305 { info, iv, key, salt, rec_seq };
            Some(TlsCryptoInfo::Chacha20Poly1305(keys))
        }
        _ => None,
    }
}

/// An initialization vector for AES: the kernel's names for its parts are those of TLS 1.2.
fn halves(iv: &[u8]) -> Option<([u8; 4], [u8; 8])> {
    let (salt, rest) = iv.split_first_chunk()?;
    Some((*salt, bytes(rest)?))
}

fn bytes<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// What the kernel's word for the end of a connection means.
pub(crate) fn in_words(error: io::Error) -> io::Error {
    let text = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EIO | Errno::EKEYEXPIRED) => "it ended the encrypted connection (an alert, or new keys)",
        Some(Errno::EBADMSG) => "the data that came from it was changed on the way",
        _ => return error,
    };
    io::Error::other(text)
}

#[cfg(test)]
mod tests {
    use rustls::crypto::cipher::{AeadKey, Iv};

    use super::*;

    fn iv() -> Iv {
        Iv::from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    }

    #[test]
    fn the_kernel_gets_what_rustls_had() {
        let key = AeadKey::from([7; 32]);
        let secrets = ConnectionTrafficSecrets::Aes256Gcm { key, iv: iv() };
        let Some(TlsCryptoInfo::Aes256Gcm(keys)) = keys((258, secrets)) else { panic!("another cipher") };
        assert_eq!((keys.info.version, keys.info.cipher_type), (0x0304, 52));
        assert_eq!((keys.salt, keys.iv), ([1, 2, 3, 4], [5, 6, 7, 8, 9, 10, 11, 12]));
        assert_eq!((keys.key, keys.rec_seq), ([7; 32], [0, 0, 0, 0, 0, 0, 1, 2]));
    }

    #[test]
    fn a_longer_or_shorter_key_than_the_ciphers_is_not_given_away() {
        let secrets = ConnectionTrafficSecrets::Aes128Gcm { key: AeadKey::from([7; 32]), iv: iv() };
        assert!(keys((0, secrets)).is_none());
        let secrets = ConnectionTrafficSecrets::Chacha20Poly1305 { key: AeadKey::from([7; 32]), iv: iv() };
        let Some(TlsCryptoInfo::Chacha20Poly1305(keys)) = keys((0, secrets)) else {
            panic!("another cipher")
        };
        assert_eq!((keys.info.cipher_type, keys.iv[0], keys.iv[11]), (54, 1, 12));
    }

    #[test]
    fn the_end_of_a_connection_is_said_in_words() {
        for (error, word) in [(Errno::EIO, "alert"), (Errno::EBADMSG, "changed"), (Errno::EPIPE, "pipe")] {
            let said = in_words(error.into()).to_string();
            assert!(said.contains(word), "{said}");
        }
    }
}
