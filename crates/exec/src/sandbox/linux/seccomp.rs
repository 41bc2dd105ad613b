//! The filter of system calls of a confined command. An empty network namespace already blocks connections; with the
//! filter every attempt also fails at once and with a clear error. Unix sockets need it in any case: a network
//! namespace does not isolate those with a path.

use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use crate::sandbox::Sandbox;

/// Denied to all commands: calls that bypass this filter, and the keyrings of the user's other programs.
const NEVER: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];
/// Denied to commands without network, or with only a loopback of their own.
const NEVER_ALONE: &[libc::c_long] = &[libc::SYS_ptrace];
/// Denied to commands that may not connect at all. Not `getpeername`, which sends nothing: bash takes its refusal for
/// a remote login, and would read start-up files.
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
/// Allowed between processes of one machine only, and only as connections: a datagram can be sent to any
/// socket with `sendmsg`, whose address a filter cannot read.
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
pub(super) fn restrict(sandbox: &Sandbox) -> io::Result<()> {
    let filter = match sandbox.network {
        true => network_filter(sandbox.unix_sockets),
        false if sandbox.loopback_ports.is_empty() => no_network_filter(),
        false => tcp_filter(),
    };
    apply(&filter?)
}

fn apply(program: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(io::Error::other)
}

fn condition(argument: u8, op: SeccompCmpOp, value: libc::c_int) -> Result<SeccompRule, seccompiler::BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?])
}

fn family_is_not(family: libc::c_int) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))
}

/// Allows sockets of the network and netlink; unix sockets only as pairs, unless they are granted, too.
fn network_filter(unix_sockets: bool) -> io::Result<BpfProgram> {
    compile(|numbering| {
        let mut rules: Vec<_> = NEVER.iter().map(|call| (call + numbering, Vec::new())).collect();
        let mut others = vec![libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        others.extend(unix_sockets.then_some(libc::AF_UNIX));
        let others = others.into_iter().map(family_is_not).collect::<Result<Vec<_>, _>>()?;
        rules.push((libc::SYS_socket + numbering, vec![SeccompRule::new(others)?]));
        if !unix_sockets {
            rules.push((libc::SYS_socketpair + numbering, other_than_local()?));
        }
        Ok(rules)
    })
}

fn no_network_filter() -> io::Result<BpfProgram> {
    compile(|numbering| {
        let never = DENIED.iter().chain(NEVER).chain(NEVER_ALONE);
        let mut rules: Vec<_> = never.map(|call| (call + numbering, Vec::new())).collect();
        for call in LOCAL_ONLY {
            rules.push((call + numbering, other_than_local()?));
        }
        Ok(rules)
    })
}

/// Allows TCP. Unix sockets are allowed only as pairs, because others could connect to a path.
fn tcp_filter() -> io::Result<BpfProgram> {
    compile(|numbering| {
        let never = NEVER.iter().chain(NEVER_ALONE);
        let mut rules: Vec<_> = never.map(|call| (call + numbering, Vec::new())).collect();
        let families = vec![family_is_not(libc::AF_INET)?, family_is_not(libc::AF_INET6)?];
        let mut denied = vec![SeccompRule::new(families)?];
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

type SeccompRules = Result<Vec<(i64, Vec<SeccompRule>)>, seccompiler::BackendError>;

fn compile(rules: impl Fn(i64) -> SeccompRules) -> io::Result<BpfProgram> {
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
