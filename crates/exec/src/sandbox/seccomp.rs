//! The system calls that a command without network must not make. An empty network namespace already has no
//! way out; this also makes every attempt fail at once and in words that tools and people understand.

use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Denied to commands that may only connect to a loopback of their own, too.
const NEVER: &[libc::c_long] =
    &[libc::SYS_ptrace, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
/// Denied to those that may not connect at all. `getpeername` reaches nobody, and bash takes its refusal for a login from afar: it would read start-up files.
const DENIED: &[libc::c_long] = &[
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_getsockname,
    libc::SYS_shutdown,
    libc::SYS_sendto,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
];
/// Allowed between processes of one machine only, and only as connections: a datagram can be sent to anybody's
/// socket with a call that a filter cannot look into.
const LOCAL_ONLY: &[libc::c_long] = &[libc::SYS_socket, libc::SYS_socketpair];

/// The rest of the argument are flags.
const SOCK_TYPE_MASK: u64 = 0xf;

/// The same calls have a second set of numbers on this architecture.
#[cfg(target_arch = "x86_64")]
const NUMBERINGS: &[i64] = &[0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const NUMBERINGS: &[i64] = &[0];

/// The kinds of sockets that are no connections.
const OTHER_TYPES: &[libc::c_int] =
    &[libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP];

/// Applies to this process and all it starts, for good.
pub(super) fn deny_network() -> io::Result<()> {
    apply(&network_filter()?)
}

/// The same, but leaves connections by TCP; to where is up to others.
pub(super) fn deny_all_but_tcp() -> io::Result<()> {
    apply(&tcp_filter()?)
}

fn apply(program: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(io::Error::other)
}

fn condition(argument: u8, op: SeccompCmpOp, value: libc::c_int) -> Result<SeccompRule, seccompiler::BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?])
}

fn network_filter() -> io::Result<BpfProgram> {
    compile(|numbering| {
        let mut rules: Vec<_> = DENIED.iter().chain(NEVER).map(|call| (call + numbering, Vec::new())).collect();
        for call in LOCAL_ONLY {
            rules.push((call + numbering, other_than_local()?));
        }
        Ok(rules)
    })
}

/// Sockets of the machine could be connected to by name, so there are only pairs of them.
fn tcp_filter() -> io::Result<BpfProgram> {
    compile(|numbering| {
        let mut rules: Vec<_> = NEVER.iter().map(|call| (call + numbering, Vec::new())).collect();
        let family = |family: libc::c_int| {
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))
        };
        let mut denied = vec![SeccompRule::new(vec![family(libc::AF_INET)?, family(libc::AF_INET6)?])?];
        for other in OTHER_TYPES {
            denied.push(condition(1, SeccompCmpOp::MaskedEq(SOCK_TYPE_MASK), *other)?);
        }
        rules.push((libc::SYS_socket + numbering, denied));
        rules.push((libc::SYS_socketpair + numbering, other_than_local()?));
        Ok(rules)
    })
}

fn other_than_local() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let mut denied = vec![condition(0, SeccompCmpOp::Ne, libc::AF_UNIX)?];
    for datagrams in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        denied.push(condition(1, SeccompCmpOp::MaskedEq(SOCK_TYPE_MASK), datagrams)?);
    }
    Ok(denied)
}

type Rules = Result<Vec<(i64, Vec<SeccompRule>)>, seccompiler::BackendError>;

fn compile(rules: impl Fn(i64) -> Rules) -> io::Result<BpfProgram> {
    let program = || -> Result<BpfProgram, seccompiler::BackendError> {
        let mut all = std::collections::BTreeMap::new();
        for numbering in NUMBERINGS {
            all.extend(rules(*numbering)?);
        }
        let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        SeccompFilter::new(all, SeccompAction::Allow, denied, arch)?.try_into()
    };
    program().map_err(io::Error::other)
}
