//! Descriptors that arrive from elsewhere: SCM_RIGHTS and pidfd_getfd.

use crate::context::Context;
use crate::process;
use libc::{O_CREAT, O_RDWR};
use std::ffi::c_int;

/// Space for one descriptor in a control message, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

fn message(control: &mut Control, part: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: a zeroed msghdr is valid; the pointers live as long as the borrowed values.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: pure arithmetic.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as usize;
    message
}

fn send(socket: c_int, fd: c_int) {
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let message = message(&mut control, &mut part);
    // SAFETY: the first header lies inside the control buffer.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(fd);
    }
    // Not traced: the receiver traces at the same moment.
    // SAFETY: the message points at values that outlive the call.
    assert_eq!(unsafe { libc::sendmsg(socket, &raw const message, 0) }, 1, "cannot pass a descriptor");
}

fn receive(cx: &Context, socket: c_int) -> c_int {
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let mut message = message(&mut control, &mut part);
    call!(cx, recvmsg(socket, &raw mut message, 0));
    // SAFETY: recvmsg filled the control buffer; a missing header is null.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() { -1 } else { libc::CMSG_DATA(header).cast::<c_int>().read_unaligned() }
    }
}

fn sockets(cx: &Context) -> [c_int; 2] {
    let mut pair = [-1; 2];
    call!(cx, socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()));
    pair
}

fn by_message(cx: &Context) {
    let [here, there] = sockets(cx);
    let child = process::fork(|| {
        let fd = receive(cx, there);
        cx.write(fd, b'c', 100);
        cx.fsync(fd);
        cx.write_sync_show(fd);
        0
    });
    let fd = cx.file("a");
    cx.write(fd, b'p', 50);
    send(here, fd);
    cx.note(process::ending(child));
    cx.write(fd, b'P', 50);
    cx.write_sync_show(fd);
}

/// The number a received descriptor gets was another file's a moment ago.
fn by_message_under_a_reused_number(cx: &Context) {
    let [here, there] = sockets(cx);
    let managed = cx.file("a");
    let plain = cx.open(&cx.plain_path("p"), O_RDWR | O_CREAT);
    for (sent, other) in [(managed, plain), (plain, managed)] {
        let victim = call!(cx, Descriptor, dup(other)) as c_int;
        cx.pwrite(victim, b'v', 10, 0);
        cx.fsync(victim);
        send(here, sent);
        cx.close(victim);
        let received = receive(cx, there);
        cx.note(format_args!("same number: {}", received == victim));
        cx.write_sync_show(received);
        cx.close(received);
    }
    cx.show(managed);
    cx.show(plain);
}

fn by_pidfd(cx: &Context) {
    let fd = cx.file("a");
    cx.write(fd, b'p', 50);
    // SAFETY: our own pid.
    let own = unsafe { libc::getpid() };
    cx.in_child(|| {
        cx.close(fd);
        let pidfd = call!(cx, Descriptor, syscall(libc::SYS_pidfd_open, own, 0)) as c_int;
        let got = call!(cx, Descriptor, syscall(libc::SYS_pidfd_getfd, pidfd, fd, 0)) as c_int;
        cx.write(got, b'c', 50);
        cx.write_sync_show(got);
        0
    });
    cx.write(fd, b'P', 50);
    cx.write_sync_show(fd);
}

fn by_pidfd_symbol(cx: &Context) {
    let fd = cx.file("a");
    // SAFETY: our own pid.
    let own = unsafe { libc::getpid() };
    let pidfd = call!(cx, Descriptor, syscall(libc::SYS_pidfd_open, own, 0)) as c_int;
    let got =
        call_named!(cx, Descriptor, "pidfd_getfd", fn(c_int, c_int, u32) -> c_int, (pidfd, fd, 0)) as c_int;
    cx.write_sync_show(got);
}

family!("passing" => [by_message, by_message_under_a_reused_number, by_pidfd, by_pidfd_symbol]);
