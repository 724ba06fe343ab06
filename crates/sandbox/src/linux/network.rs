//! A network of a program's own, in which there is nothing but the program and a door.
//!
//! Before it becomes the program, the child moves into a new network and listens there. A socket belongs
//! to the network that it was made in, whoever holds it, so the child passes the listening one out to us:
//! we accept inside, and connect outside. Where making a network takes a right that we do not have, the
//! child takes a user namespace along, in which it is the same user as before.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, bind, listen,
    recvmsg, sendmsg, socket_with,
};

use super::own_processes::become_same_user;
use super::succeed;

/// Where the door is. The network is new, so every port is free.
pub(crate) const PORT: u16 = 3128;
const WAITING: i32 = 128;
/// What is said when the door is passed on.
const HERE: &[u8] = b"d";

/// Everything that is needed to move, prepared.
#[derive(Debug)]
pub(super) struct Door {
    ours: UnixDatagram,
    theirs: UnixDatagram,
    /// Who we are, as the kernel wants to read it.
    users: Vec<u8>,
    groups: Vec<u8>,
}

impl Door {
    pub(super) fn new() -> io::Result<Self> {
        let (ours, theirs) = UnixDatagram::pair()?;
        let same = |id: u32| format!("{id} {id} 1").into_bytes();
        let users = same(rustix::process::geteuid().as_raw());
        let groups = same(rustix::process::getegid().as_raw());
        Ok(Self { ours, theirs, users, groups })
    }

    /// Returns what the listener will be received on.
    pub(super) fn outside(&self) -> io::Result<UnixDatagram> {
        self.ours.try_clone()
    }

    /// Moves the calling process into a network of its own, and passes the door out. Makes nothing but
    /// system calls.
    pub(super) fn enter(&self) -> io::Result<()> {
        // SAFETY: takes numbers only; what is shared is the process's own.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
            // SAFETY: as above.
            succeed(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) })?;
            become_same_user(&self.users, &self.groups)?;
        }
        raise_loopback()?;
        let door = socket(SocketType::STREAM)?;
        bind(&door, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, PORT))?;
        listen(&door, WAITING)?;
        pass(self.theirs.as_fd(), door.as_fd())
    }
}

/// Tells what happens when a process tries to move, by having one try.
pub(crate) fn try_out() -> io::Result<()> {
    let door = Door::new()?;
    super::in_child(|| door.enter())?;
    receive(&door.ours).map(drop)
}

fn socket(kind: SocketType) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?)
}

/// A new network has a loopback interface that is down.
fn raise_loopback() -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let any = socket(SocketType::DGRAM)?;
    // SAFETY: numbers and bytes only, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = libc::c_char::from_ne_bytes([*byte]);
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: the kernel reads the request, which is ours; the socket is open.
    succeed(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })?;
    Ok(())
}

fn pass(to: BorrowedFd<'_>, door: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let door = [door];
    if !control.push(SendAncillaryMessage::ScmRights(&door)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(to, &[IoSlice::new(HERE)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes the door that a child has passed out before it became the program.
pub(super) fn receive(from: &UnixDatagram) -> io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    let whole = !received.flags.contains(ReturnFlags::CTRUNC);
    let door = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut passed) => passed.next(),
        _ => None,
    });
    let door = door.filter(|_| whole).ok_or(io::ErrorKind::NotConnected)?;
    Ok(TcpListener::from(door))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_it_gives_an_answer_and_leaves_us_where_we_were() {
        let network = || std::fs::read_link("/proc/self/ns/net").unwrap();
        let before = network();
        if let Err(error) = try_out() {
            assert!(error.raw_os_error().is_some(), "the kernel did not answer: {error}");
        }
        assert_eq!(network(), before);
    }
}
