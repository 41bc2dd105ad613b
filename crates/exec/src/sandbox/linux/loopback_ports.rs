//! Ports on the loopback of a confined command that are served outside of its sandbox. The helper binds them in the
//! command's network namespace, where every port is free, and sends the listeners to this process. No program outside
//! of the sandbox can connect to them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::{TcpListener, UnixStream};

use crate::command::Channel;

/// The most listeners that one message carries.
const MOST: usize = 4;

/// The ports of a command's loopback, seen from outside of its sandbox.
#[derive(Debug)]
pub struct LoopbackPorts {
    channel: UnixStream,
    count: usize,
}

impl LoopbackPorts {
    pub(super) fn new(count: usize) -> io::Result<(Self, Channel)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self { channel: UnixStream::from_std(ours)?, count }, Channel(Arc::new(theirs.into()))))
    }

    /// The listeners of the ports, in their order, once the sandbox is set up. An error when that fails.
    pub async fn open(&self) -> io::Result<Vec<TcpListener>> {
        let listeners = self.channel.async_io(Interest::READABLE, || receive(self.channel.as_fd())).await?;
        if listeners.len() != self.count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let listen = |listener: OwnedFd| {
            let listener = std::net::TcpListener::from(listener);
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        };
        listeners.into_iter().map(listen).collect()
    }

    /// Resolves when the last process of the sandbox has ended. Cancel-safe.
    pub async fn closed(&self) {
        let mut nothing = [0; 16];
        loop {
            let read =
                self.channel.async_io(Interest::READABLE, || Ok(rustix::io::read(&self.channel, &mut nothing)?)).await;
            // Bytes after the listeners have no meaning.
            if !matches!(read, Ok(1..)) {
                return;
            }
        }
    }
}

fn receive(channel: BorrowedFd) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.flatten().collect())
}

/// Binds the ports in the sandbox and sends their listeners through the channel. To be called before the command runs.
pub(super) fn open(ports: &[u16], channel: &OwnedFd) -> io::Result<()> {
    let bind = |port: &u16| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, *port));
    let listeners = ports.iter().map(bind).collect::<io::Result<Vec<_>>>()?;
    let descriptors: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(channel, &[IoSlice::new(b"+")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
