//! A simulated connection: bytes on their way in both directions.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use seawall_keeper::wire::Wire;
use seawall_media::LINE;
use seawall_wire::keeper::Frame;

#[derive(Default)]
struct Bytes {
    to_keeper: VecDeque<u8>,
    to_writer: VecDeque<u8>,
    /// How much of that has come.
    arrived: usize,
    /// Nothing more gets into it. What is in it may arrive.
    is_over: bool,
}

/// Both of its ends.
#[derive(Clone, Default)]
pub struct Pipe(Rc<RefCell<Bytes>>);

impl Pipe {
    /// A writer asks for something by itself.
    pub fn ask(&self, frame: &Frame) {
        let _ = self.send_all(&frame.seal());
    }

    /// The next whole request.
    pub fn request(&self) -> Option<(Frame, Vec<u8>)> {
        let to_keeper = &mut self.0.borrow_mut().to_keeper;
        let whole = to_keeper.len();
        frame(to_keeper, whole)
    }

    pub fn answer(&self, frame: &Frame, body: &[u8]) {
        let mut bytes = self.0.borrow_mut();
        bytes.to_writer.extend(frame.followed_by(body.len()).seal());
        bytes.to_writer.extend(body);
    }

    /// More of the answers arrives.
    pub fn deliver(&self, more: usize) {
        let mut bytes = self.0.borrow_mut();
        bytes.arrived = bytes.to_writer.len().min(bytes.arrived + more);
    }

    /// The next whole answer, for whoever waits for one.
    pub fn heard(&self) -> Option<(Frame, Vec<u8>)> {
        let bytes = &mut *self.0.borrow_mut();
        let found = frame(&mut bytes.to_writer, bytes.arrived)?;
        bytes.arrived -= LINE + found.1.len();
        Some(found)
    }

    /// Bytes on their way to the keeper.
    pub fn on_the_way(&self) -> usize {
        self.0.borrow().to_keeper.len()
    }

    /// It breaks; so many bytes arrive at the keeper yet.
    pub fn end(&self, left: usize) {
        let mut bytes = self.0.borrow_mut();
        bytes.to_keeper.truncate(left);
        bytes.is_over = true;
    }

    /// True if nothing more comes to the writer.
    pub fn is_lost(&self) -> bool {
        let bytes = self.0.borrow();
        bytes.is_over && bytes.to_writer.is_empty()
    }
}

impl Wire for Pipe {
    fn send_all(&self, sent: &[u8]) -> io::Result<()> {
        if self.is_lost() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut bytes = self.0.borrow_mut();
        // The kernel takes what never arrives.
        if !bytes.is_over {
            bytes.to_keeper.extend(sent);
        }
        Ok(())
    }

    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_lost() {
            return Ok(0);
        }
        let mut bytes = self.0.borrow_mut();
        let len = into.len().min(bytes.arrived);
        if len == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        bytes.arrived -= len;
        into.iter_mut().zip(bytes.to_writer.drain(..len)).for_each(|(to, from)| *to = from);
        Ok(len)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Takes a frame and what is behind it, if all of it is among the first `whole` bytes.
fn frame(bytes: &mut VecDeque<u8>, whole: usize) -> Option<(Frame, Vec<u8>)> {
    let mut line = [0; LINE];
    if whole < LINE {
        return None;
    }
    line.iter_mut().zip(bytes.iter()).for_each(|(to, from)| *to = *from);
    let frame = Frame::parse(&line).expect("nobody damages it");
    let all = LINE + frame.len as usize;
    (whole >= all).then(|| (frame, bytes.drain(..all).skip(LINE).collect()))
}
