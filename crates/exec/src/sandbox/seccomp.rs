//! The system calls that a command without network must not make. An empty network namespace already has no
//! way out; this also makes every attempt fail at once and in words that tools and people understand.

use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// `getpeername` reaches nobody, and bash takes its refusal for a login from afar: it would read start-up files.
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
    libc::SYS_ptrace,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
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

/// Applies to this process and all it starts, for good.
pub(super) fn deny_network() -> io::Result<()> {
    seccompiler::apply_filter(&network_filter()?).map_err(io::Error::other)
}

fn condition(argument: u8, op: SeccompCmpOp, value: libc::c_int) -> Result<SeccompRule, seccompiler::BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?])
}

fn network_filter() -> io::Result<BpfProgram> {
    let program = || -> Result<BpfProgram, seccompiler::BackendError> {
        let mut rules = Vec::new();
        for numbering in NUMBERINGS {
            rules.extend(DENIED.iter().map(|call| (call + numbering, Vec::new())));
            for call in LOCAL_ONLY {
                let mut denied = vec![condition(0, SeccompCmpOp::Ne, libc::AF_UNIX)?];
                for datagrams in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
                    denied.push(condition(1, SeccompCmpOp::MaskedEq(SOCK_TYPE_MASK), datagrams)?);
                }
                rules.push((call + numbering, denied));
            }
        }
        let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        SeccompFilter::new(rules.into_iter().collect(), SeccompAction::Allow, denied, arch)?.try_into()
    };
    program().map_err(io::Error::other)
}
