//! What goes back to a client.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use seawall_wire::message::{MESSAGE_MAX, Reply, Status};
use serde::Serialize;
use zerocopy::IntoBytes;

use crate::{control, net};

/// JSON longer than this travels in a file instead.
const INLINE_MAX: usize = MESSAGE_MAX / 2;

/// What goes back.
pub(super) struct Answer<'a> {
    pub(super) reply: Reply,
    pub(super) body: Vec<u8>,
    pub(super) descriptors: Vec<BorrowedFd<'a>>,
    /// Behind those: duplicates made for this answer.
    pub(super) duplicates: Vec<OwnedFd>,
}

impl<'a> Answer<'a> {
    pub(super) fn of(reply: Reply, descriptors: Vec<BorrowedFd<'a>>) -> Self {
        Self { reply, body: Vec::new(), descriptors, duplicates: Vec::new() }
    }

    pub(super) fn status(status: Status) -> Self {
        Self::of(Reply::new(status), Vec::new())
    }

    pub(super) fn json(status: Status, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => Self { body, ..Self::status(status) },
            Err(e) => Self::failed(format!("cannot encode the answer as JSON: {e}")),
        }
    }

    pub(super) fn failed(error: impl ToString) -> Self {
        Self::json(Status::Failed, &control::Failure { error: error.to_string() })
    }
}

/// What was done, or why it failed.
pub(super) fn answered<'d>(done: Result<impl Serialize, impl ToString>) -> Answer<'d> {
    match done {
        Ok(body) => Answer::json(Status::Ok, &body),
        Err(error) => Answer::failed(error),
    }
}

/// Sends it.
pub(super) fn send(socket: &OwnedFd, answer: Answer<'_>) -> io::Result<()> {
    let Answer { mut reply, body, mut descriptors, duplicates } = answer;
    descriptors.extend(duplicates.iter().map(AsFd::as_fd));
    if body.len() > INLINE_MAX {
        return net::send(socket, reply.as_bytes(), &[in_file(&body)?.as_fd()]);
    }
    reply.body_len = body.len() as u32;
    let mut bytes = reply.as_bytes().to_vec();
    bytes.extend_from_slice(&body);
    net::send(socket, &bytes, &descriptors)
}

fn in_file(body: &[u8]) -> io::Result<File> {
    let memory = rustix::fs::memfd_create("seawall-reply", rustix::fs::MemfdFlags::CLOEXEC)?;
    let file = File::from(memory);
    file.write_all_at(body, 0)?;
    Ok(file)
}
