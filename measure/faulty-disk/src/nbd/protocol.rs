//! The network block device protocol, as much of it as QEMU speaks: one client, one export.
//!
//! In: a connected socket, a [`Cache`]. Out: the requests are carried out until the client goes away. The
//! protocol: <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};
use std::time::Duration;

use crate::cache::{Cache, PAGE};

const OPTION: u64 = 0x4948_4156_454f_5054; // "IHAVEOPT"
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
/// Flags of the export: has flags, flush, FUA, write zeroes.
const EXPORT_FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 6;
/// The longest request we announce, and accept.
const LONGEST: u32 = 32 << 20;
const FUA: u16 = 1;
const EINVAL: u32 = 22;
const EIO: u32 = 5;

/// How a disk works.
#[derive(Clone)]
pub struct Drive {
    /// How long a flush takes that has something to do: this is not a memory.
    pub flush_time: Duration,
    /// The power has failed: what is still in the socket arrived too late, and a flush does not end well.
    pub off: Arc<AtomicBool>,
}

/// Serves until the client is gone.
///
/// # Errors
/// Of the protocol. A client that was killed is the end, not an error.
pub fn serve(mut stream: UnixStream, cache: &mut Cache, drive: &Drive) -> io::Result<()> {
    match negotiate(&mut stream, cache).and_then(|open| {
        while open && answer(&mut stream, cache, drive)? {}
        Ok(())
    }) {
        Err(e) if is_gone(&e) => Ok(()),
        ended => ended,
    }
}

fn is_gone(e: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(e.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

/// Fixed newstyle handshake. False if the client does not want to go on.
fn negotiate(stream: &mut UnixStream, cache: &Cache) -> io::Result<bool> {
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
    let _client_flags: [u8; 4] = take(stream)?;
    loop {
        if u64::from_be_bytes(take(stream)?) != OPTION {
            return Err(io::Error::other("not an NBD option"));
        }
        let option = u32::from_be_bytes(take(stream)?);
        let length = u32::from_be_bytes(take(stream)?);
        body(stream, length)?;
        match option {
            // ABORT
            2 => {
                option_reply(stream, option, 1, &[])?;
                return Ok(false);
            }
            // INFO and GO
            6 | 7 => {
                option_reply(stream, option, 3, &export(cache.size()))?;
                option_reply(stream, option, 3, &block_sizes())?;
                option_reply(stream, option, 1, &[])?;
                if option == 7 {
                    return Ok(true);
                }
            }
            // Unsupported
            _ => option_reply(stream, option, 1 << 31 | 1, &[])?,
        }
    }
}

fn export(size: u64) -> Vec<u8> {
    [&[0, 0][..], &size.to_be_bytes(), &EXPORT_FLAGS.to_be_bytes()].concat()
}

fn block_sizes() -> Vec<u8> {
    let sizes = [PAGE as u32, PAGE as u32, LONGEST].map(u32::to_be_bytes);
    [&[0, 3][..], sizes.as_flattened()].concat()
}

fn option_reply(stream: &mut UnixStream, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let head = [option, kind, data.len() as u32].map(u32::to_be_bytes);
    stream.write_all(&[&OPTION_REPLY.to_be_bytes()[..], head.as_flattened(), data].concat())
}

/// One request. False if it was the last.
fn answer(stream: &mut UnixStream, cache: &mut Cache, drive: &Drive) -> io::Result<bool> {
    if u32::from_be_bytes(take(stream)?) != REQUEST {
        return Err(io::Error::other("not an NBD request"));
    }
    let flags = u16::from_be_bytes(take(stream)?);
    let command = u16::from_be_bytes(take(stream)?);
    let cookie: [u8; 8] = take(stream)?;
    let offset = u64::from_be_bytes(take(stream)?);
    let length = u32::from_be_bytes(take(stream)?);
    let written = if command == 1 { body(stream, length)? } else { Vec::new() };
    let inside = offset.checked_add(length.into()).is_some_and(|end| end <= cache.size());
    let whole = offset.is_multiple_of(PAGE as u64) && (length as usize).is_multiple_of(PAGE);
    let mut data = Vec::new();
    let done = match command {
        2 => return Ok(false),
        0 | 1 | 6 if !inside || !whole || length > LONGEST => Err(EINVAL),
        0 => {
            data = cache.read(offset, length as usize);
            Ok(())
        }
        1 | 6 => {
            let zeros = if command == 6 { vec![0; length as usize] } else { Vec::new() };
            cache.write(offset, if command == 6 { &zeros } else { &written });
            // Stronger than asked for: FUA is about this write only.
            if flags & FUA != 0 { flush(cache, drive) } else { Ok(()) }
        }
        3 => flush(cache, drive),
        _ => Err(EINVAL),
    };
    let error = done.err().unwrap_or(0);
    let head = [REPLY, error].map(u32::to_be_bytes);
    let data = if error == 0 { &data[..] } else { &[] };
    stream.write_all(&[head.as_flattened(), &cookie, data].concat())?;
    Ok(true)
}

fn flush(cache: &mut Cache, drive: &Drive) -> Result<(), u32> {
    if cache.pending_bytes() > 0 {
        std::thread::sleep(drive.flush_time);
    }
    if drive.off.load(Acquire) {
        return Err(EIO);
    }
    cache.flush();
    Ok(())
}

fn take<const N: usize>(stream: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn body(stream: &mut UnixStream, length: u32) -> io::Result<Vec<u8>> {
    if length > LONGEST {
        return Err(io::Error::other("an NBD message that is too long"));
    }
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
