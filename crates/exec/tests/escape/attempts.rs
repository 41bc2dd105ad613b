//! The attempts to escape. A script has escaped when files or processes outside of its workspace have changed, or when
//! it prints "escaped", which is also the text of the secrets outside.

/// The policy of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    ReadOnly,
    Workspace,
    WorkspaceAndNetwork,
    /// The workspace and a folder in it, each named as a writable root.
    NestedRoots,
    /// The same with a checkout deep in the workspace, and with a root that does not exist at first.
    DeepRoots,
    /// The workspace, and reading only what programs need.
    RestrictedReads,
    /// The workspace, and reading everything but the outside.
    Closed,
    /// The workspace, and reading everything but one file of the outside.
    ClosedFile,
    /// The workspace, but for a folder deep in it.
    ClosedInside,
    /// The workspace, but for what a link in it leads to.
    ClosedByLink,
    /// The workspace, with our home in it.
    HomeInside,
    /// The workspace, with few processes and little memory.
    Limited,
    /// The workspace, and a network of two ports that the server answers.
    Doors,
}

/// What an attempt needs to succeed without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Nothing,
    Root,
    /// Something that kernels may be built without, or set up to refuse.
    Kernel,
}

#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub name: &'static str,
    pub policy: Policy,
    pub need: Need,
    /// Runs before the snapshot with which the result is compared.
    pub setup: &'static str,
    /// Run one after the other, each in a sandbox of its own.
    pub scripts: &'static [&'static str],
}

const fn attempt(policy: Policy, name: &'static str, scripts: &'static [&'static str]) -> Attempt {
    Attempt { name, policy, need: Need::Nothing, setup: "", scripts }
}

const fn write(name: &'static str, scripts: &'static [&'static str]) -> Attempt {
    attempt(Policy::Workspace, name, scripts)
}

impl Attempt {
    const fn needs(mut self, need: Need) -> Self {
        self.need = need;
        self
    }

    const fn after(mut self, setup: &'static str) -> Self {
        self.setup = setup;
        self
    }
}

use Need::{Kernel, Root};
use Policy::{
    Closed, ClosedByLink, ClosedFile, ClosedInside, DeepRoots, Doors, HomeInside, Limited, NestedRoots, ReadOnly,
    RestrictedReads, WorkspaceAndNetwork,
};

pub const ATTEMPTS: &[Attempt] = &[
    // By path.
    write("overwrite a file", &["echo x > $O/victim"]),
    write("append to a file", &["echo x >> $O/victim"]),
    write("make a file", &["touch $O/new"]),
    write("remove a file", &["rm -f $O/victim"]),
    write("rename a file", &["mv $O/victim $O/renamed"]),
    write("make a folder", &["mkdir $O/new"]),
    write("remove a folder", &["rmdir $O/empty"]),
    write("make a pipe", &["mkfifo $O/new"]),
    write("change a mode", &["chmod 777 $O/victim"]),
    write("change a time", &["touch -d @1 $O/victim"]),
    write("cut a file", &["truncate -s 0 $O/victim"]),
    write(
        "cut a file while opening it for reading",
        &["perl -MFcntl -e 'sysopen F, \"$ENV{O}/victim\", O_RDONLY|O_TRUNC'"],
    ),
    write("go up and over", &["touch ../outside/new"]),
    write("go there first", &["cd $O && touch new"]),
    write("over too many dots", &["touch ../../../../../../../../../../../../../$O/new"]),
    write("through the root of proc", &["touch /proc/self/root$O/new"]),
    write("through the working directory of proc", &["touch /proc/self/cwd/../outside/new"]),
    write("through the root of another process", &["touch /proc/$B/root$O/new"]),
    write("through the working directory of another process", &["touch /proc/$B/cwd/new"]),
    write("through an open file of another process", &["echo x > /proc/$B/fd/9"]),
    write("open again for writing what was opened for reading", &["exec 3<$O/victim; echo x > /proc/self/fd/3"]),
    write("through a folder held open", &["exec 3<$O; cd /proc/self/fd/3 && touch new"]),
    write("through a descriptor that was left open", &["echo x >&$FD"]),
    attempt(WorkspaceAndNetwork, "write outside where only the network is granted", &["touch $O/new"]),
    attempt(ReadOnly, "write to the workspace where nothing may be written", &["echo escaped > $W/new && cat $W/new"]),
    attempt(ReadOnly, "write to /tmp where nothing may be written", &["f=$(mktemp) && rm $f && echo escaped"]),
    attempt(ReadOnly, "write to other people's shared memory files", &["echo x > $SHM"]),
    // By links.
    write("a symbolic link to a folder", &["ln -s $O link && touch link/new"]),
    write("a symbolic link to a file", &["ln -s $O/victim link && echo x > link"]),
    write("a symbolic link to what is not there yet", &["ln -s $O/new link && echo x > link"]),
    write("a chain of symbolic links", &["ln -s .. a && ln -s a/outside b && touch b/new"]),
    write("a hard link to a file", &["ln $O/victim hard && echo x > hard"]),
    write("a hard link put outside", &["touch f && ln f $O/new"]),
    write("a file moved outside", &["touch f && mv f $O/new"]),
    write("a folder moved over another", &["mkdir d && chmod 700 d && mv -T d $O/empty"]),
    write("a link planted in one command and used by the next", &["ln -s $O later", "touch later/new"]),
    attempt(NestedRoots, "a writable root turned into a link", &["mv inner old; ln -s $O inner", "touch inner/new"]),
    attempt(NestedRoots, "a writable root removed for a link", &["rm -rf inner; ln -s $O inner", "touch inner/new"]),
    attempt(
        DeepRoots,
        "a folder above a writable root moved away",
        &["mv job old; mkdir job; ln -s $O job/repo", "touch job/repo/new"],
    )
    .after("mkdir -p job/repo"),
    attempt(DeepRoots, "a folder above a writable root exchanged", &["$ATTEMPT exchange job other", "touch job/repo/new"])
        .after("mkdir -p job/repo other && ln -s $O other/repo"),
    attempt(
        DeepRoots,
        "a writable root deep inside turned into a link",
        &["mv job/repo old; ln -s $O job/repo", "touch job/repo/new"],
    )
    .after("mkdir -p job/repo"),
    attempt(
        DeepRoots,
        "hooks of a repository whose parent was moved",
        &["mv job old; mkdir job; cp -r old/repo job/repo", "echo x > old/repo/.git/hooks/h && echo escaped"],
    )
    .after("mkdir -p job/repo/.git/hooks"),
    attempt(
        DeepRoots,
        "settings of a repository whose parent was moved",
        &["mv job old; mkdir job; cp -r old/repo job/repo", "echo x > old/repo/.codex/config.toml && echo escaped"],
    )
    .after("mkdir -p job/repo/.codex"),
    attempt(DeepRoots, "a writable root that did not exist", &["ln -s $O later", "touch later/new"])
        .after("mkdir -p job/repo"),
    attempt(DeepRoots, "a writable root that did not exist, by its parent", &["mkdir l; ln -s $O l/a", "touch l/a/b/new"])
        .after("mkdir -p job/repo $O/b"),
    write("a repository elsewhere whose parent was moved", &["mv far near", "echo x > near/away/git/config && echo escaped"])
        .after("mkdir -p far/away && mv .git far/away/git && echo 'gitdir: far/away/git' > .git"),
    // By configuration of tools.
    write("a hook for git", &["echo x > .git/hooks/pre-commit"]),
    write("another configuration for git", &["echo x >> .git/config"]),
    write("git's folder removed", &["rm -rf .git"]),
    write("git's folder replaced", &["mv .git old && mkdir .git && touch .git/new"]),
    write("git's folder by another name", &["ln -s .git g && touch g/new"]),
    write("git's folder through proc", &["touch /proc/self/cwd/.git/new"]),
    write("git's configuration by a hard link", &["ln .git/config c && echo x > c"]),
    write("git's folder under what covers it", &["umount -l .git 2> /dev/null; touch .git/new"]),
    write("git's folder moved with its parent", &["mkdir d; mv -T ../workspace d/w 2> /dev/null || touch .git/new"]),
    write("a link to git's folder replaced", &["rm -f .git && mkdir .git && touch .git/new"])
        .after("mv .git real && ln -s real .git"),
    write("what a link to git's folder leads to", &["touch real/new && echo escaped"])
        .after("mv .git real && ln -s real .git"),
    write("a repository elsewhere", &["echo x >> repo/config && echo escaped"])
        .after("mv .git repo && echo 'gitdir: repo' > .git"),
    write("a file that says where the repository is", &["echo 'gitdir: evil' > .git"])
        .after("mv .git repo && echo 'gitdir: repo' > .git"),
    write("the project's settings", &["echo x >> .codex/config.toml"]),
    write("the project's settings where there were none", &["mkdir .codex; echo x > .codex/config.toml"])
        .after("rm -r .codex"),
    write("a link for the project's settings", &["rmdir .codex; ln -s $W .codex"]).after("rm -r .codex"),
    write("the project's skills", &["touch .agents/new"]),
    // By mounts and namespaces.
    write("mount the outside inside", &["mkdir m && mount --bind $O m && touch m/new; umount m"]).needs(Root),
    write("mount something over the outside", &["mount -t tmpfs none $O && touch $O/new; umount $O && echo escaped"])
        .needs(Root),
    write(
        "a namespace where everything is ours",
        &["unshare -Urm sh -c 'mount -o remount,bind,rw /; umount -l /proc; touch $O/new'"],
    )
    .needs(Kernel),
    attempt(
        WorkspaceAndNetwork,
        "the same with the network granted",
        &["unshare -Urm sh -c 'mount -o remount,bind,rw /; touch $O/new; touch .git/new'"],
    )
    .needs(Kernel),
    write("the namespaces of another process", &["nsenter -t $B -m touch $O/new"]).needs(Root),
    write("another root", &["chroot /proc/$B/root touch $O/new"]).needs(Root),
    write("another root in a namespace of our own", &["unshare -r chroot /proc/self/root touch $O/new"]).needs(Kernel),
    write("a copy of the mounts", &["$ATTEMPT open-tree"]).needs(Root),
    write("a new file system", &["$ATTEMPT fsopen"]).needs(Root),
    // By devices and the kernel.
    write(
        "the disk itself",
        &["for d in /dev/vd? /dev/sd? /dev/nvme?n?; do head -c 1 $d > /dev/null && echo escaped; done"],
    )
    .needs(Kernel),
    write("a device made by hand", &["mknod n c 1 5 && head -c 1 n > /dev/null && echo escaped"]).needs(Root),
    write("the memory of the machine", &["mknod n c 1 1 && head -c 1 n > /dev/null && echo escaped"]).needs(Kernel),
    write("the log of the kernel", &["dd if=/dev/kmsg of=/dev/null bs=8192 count=1 && echo escaped"]).needs(Kernel),
    write("a switch of the kernel", &["f=/proc/sys/vm/overcommit_memory; v=$(cat $f) && echo $v > $f && echo escaped"])
        .needs(Root),
    write("the keys of the kernel", &["echo h > /proc/sysrq-trigger && echo escaped"]).needs(Kernel),
    write(
        "a group of processes",
        &["mkdir /sys/fs/cgroup/loomd-escape && rmdir /sys/fs/cgroup/loomd-escape && echo escaped"],
    )
    .needs(Kernel),
    write("somebody else's terminal", &["echo x > $PTS"]),
    write("the name of the machine", &["hostname $(hostname) && echo escaped"]).needs(Root),
    write("io_uring", &["$ATTEMPT io-uring"]).needs(Kernel),
    write("a program for the kernel", &["$ATTEMPT bpf"]).needs(Kernel),
    // By other processes.
    write("kill another process", &["kill -9 $B"]),
    write("kill another group", &["kill -9 -- -$B"]),
    write("kill by descriptor", &["$ATTEMPT pidfd-kill $B"]).needs(Kernel),
    write("stop another process", &["kill -STOP $B"]),
    write("slow another process down", &["renice -n 5 -p $B && echo escaped"]),
    write("take another process's files away", &["prlimit --pid $B --nofile=32:32 && echo escaped"]),
    write("change what another process dumps", &["echo 0 > /proc/$B/coredump_filter && echo escaped"]),
    write("trace another process", &["$ATTEMPT ptrace $B"]).needs(Kernel),
    write("trace at all", &["$ATTEMPT ptrace-me"]).needs(Kernel),
    write("read another process's memory", &["head -c 0 /proc/$B/mem && echo escaped"]).needs(Kernel),
    write(
        "read another process's environment",
        &["tr '\\0' '\\n' < /proc/$B/environ | grep -x escaped=yes && echo escaped"],
    ),
    write(
        "read the server's environment",
        &["tr '\\0' '\\n' < /proc/$SERVER/environ | grep -q ^PATH= && echo escaped"],
    ),
    write("read the server's command line", &["tr '\\0' '\\n' < /proc/$SERVER/cmdline | grep -q . && echo escaped"]),
    write("shared memory by number", &["perl -e 'shmwrite($ENV{SYSV}, \"x\", 0, 1) and print \"escaped\\n\"'"])
        .needs(Kernel),
    write(
        "a queue by number",
        &["perl -e 'msgsnd($ENV{QUEUE}, pack(\"l! a*\", 1, \"x\"), 0) and print \"escaped\\n\"'"],
    )
    .needs(Kernel),
    write("look at what the first process has open", &["for fd in /proc/1/fd/*; do readlink $fd; done | grep -q . && echo escaped"])
        .needs(Kernel)
        .after("rm -r .codex"),
    write(
        "through a folder that the first process holds open",
        &["for fd in 3 4 5 6 7 8 9; do touch /proc/1/fd/$fd/../../outside/new /proc/1/fd/$fd/../outside/new; done"],
    )
    .needs(Kernel)
    .after("rm -r .codex"),
    write(
        "look into the first process",
        &["for f in environ maps mem root cwd exe; do head -c 0 /proc/1/$f || readlink /proc/1/$f; done && echo escaped"],
    )
    .needs(Kernel),
    attempt(
        ClosedFile,
        "read a closed file through the first process",
        &["for fd in 3 4 5 6 7 8 9; do cat /proc/1/fd/$fd/../../outside/secret; done"],
    )
    .needs(Kernel)
    .after("rm -r .codex"),
    write("the keys of other programs", &["$ATTEMPT keyring"]).needs(Kernel),
    attempt(WorkspaceAndNetwork, "the keys of other programs, with the network granted", &["$ATTEMPT keyring"])
        .needs(Kernel),
    // By using too many resources.
    attempt(Limited, "more processes than allowed", &["$ATTEMPT processes 500"]),
    attempt(Limited, "more memory than allowed", &["perl -e '$x = q(x) x (1 << 30); print qq(escaped\n)'"]),
    attempt(
        Limited,
        "more shared memory than allowed",
        &["head -c 200M /dev/zero > /dev/shm/loomd-escape && echo escaped; rm -f /dev/shm/loomd-escape"],
    )
    .needs(Kernel),
    // Our home.
    write("read the credentials", &["cat $H/auth.json"]),
    write("read other credentials", &["cat $H/.credentials.json"]),
    write("read credentials on their way", &["cat $H/.auth.json.*"]),
    write("read credentials through the root of proc", &["cat /proc/self/root$H/auth.json"]),
    write("read credentials by a link", &["ln -s $H/auth.json a; cat a; ln $H/auth.json b && cat b"]),
    write("read credentials kept elsewhere", &["cat $O/kept"])
        .after("echo escaped > ../outside/kept && ln -sf ../outside/kept ../home/auth.json"),
    write("take the cover of the credentials away", &["umount -l $H 2> /dev/null; cat $H/auth.json"]),
    write("take the cover away in a namespace of our own", &["unshare -Urm sh -c 'umount -l $H; cat $H/auth.json'"]),
    attempt(WorkspaceAndNetwork, "read the credentials, with the network granted", &["cat $H/auth.json"]),
    attempt(ReadOnly, "read the credentials where nothing may be written", &["cat $H/auth.json"]),
    attempt(ClosedFile, "read the credentials under a profile", &["cat $H/auth.json"]),
    attempt(HomeInside, "write a rule", &["mkdir -p home/rules && echo x > home/rules/default.rules"]),
    attempt(HomeInside, "change our configuration", &["echo x >> home/config.toml"]),
    attempt(HomeInside, "replace our home", &["mv home old && mkdir home && echo x > home/config.toml"]),
    attempt(HomeInside, "remove our home", &["rm -rf home"]),
    attempt(HomeInside, "replace the credentials", &["rm -f home/auth.json; echo x > home/auth.json"]),
    attempt(HomeInside, "read the credentials in a workspace", &["cat home/auth.json"]),
    attempt(HomeInside, "read the credentials of a home that was moved", &["mv home old", "cat old/auth.json"]),
    // By privileges.
    write("give a file away", &["touch f && chown 1 f && echo escaped"]).needs(Root),
    write("a program that belongs to somebody else", &["[ $($O/somebody -u) = 1 ] && echo escaped"]).needs(Root),
    write("become somebody else", &["setpriv --reuid 1 --clear-groups true && echo escaped"]).needs(Root),
    write("read what only others may", &["cat $O/theirs"]).needs(Root),
    // By the network.
    write("tcp over ipv4", &["exec 3<>/dev/tcp/127.0.0.1/$TCP4"]),
    write("tcp over ipv6", &["exec 3<>/dev/tcp/::1/$TCP6"]).needs(Kernel),
    write("udp over ipv4", &["echo x > /dev/udp/127.0.0.1/$UDP4"]),
    write("udp over ipv6", &["echo x > /dev/udp/::1/$UDP6"]).needs(Kernel),
    write(
        "udp without connecting",
        &[
            "perl -MSocket -e 'socket S, AF_INET, SOCK_DGRAM, 0; send S, \"x\", 0, pack_sockaddr_in($ENV{UDP4}, inet_aton \"127.0.0.1\")'",
        ],
    ),
    write(
        "wait for others to connect",
        &[
            "perl -MSocket -e 'socket S, AF_INET, SOCK_STREAM, 0 and bind S, pack_sockaddr_in(0, INADDR_ANY) and listen S, 1 and print \"escaped\\n\"'",
        ],
    ),
    write(
        "a socket of the machine",
        &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; connect S, pack_sockaddr_un $ENV{SOCKET}'"],
    ),
    write(
        "a socket without a file",
        &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; connect S, pack_sockaddr_un \"\\0$ENV{ABSTRACT}\"'"],
    ),
    write(
        "a datagram of the machine",
        &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_DGRAM, 0; send S, \"x\", 0, pack_sockaddr_un $ENV{DATAGRAM}'"],
    ),
    write("a datagram that is addressed late", &["$ATTEMPT sendmsg $DATAGRAM"]),
    write("a datagram out of a pair", &["$ATTEMPT pair-sendmsg $DATAGRAM"]),
    write("a descriptor handed over", &["$ATTEMPT receive $SOCKET"]),
    write("the kernel's own sockets", &["$ATTEMPT socket netlink"]).needs(Kernel),
    write("raw packets", &["$ATTEMPT socket packet"]).needs(Kernel),
    write("raw ip", &["$ATTEMPT socket raw"]).needs(Kernel),
    write("the host of a virtual machine", &["$ATTEMPT socket vsock"]).needs(Kernel),
    write("the ciphers of the kernel", &["$ATTEMPT socket alg"]).needs(Kernel),
    write("a pair of sockets that are not of the machine", &["$ATTEMPT socket tipc"]).needs(Kernel),
    write("a socket through the 32-bit door", &["$ATTEMPT socket-32"]).needs(Kernel),
    // Beside a network that is granted.
    attempt(WorkspaceAndNetwork, "beside a granted network: a socket of the machine", &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; connect S, pack_sockaddr_un $ENV{SOCKET}'"]),
    attempt(WorkspaceAndNetwork, "beside a granted network: a socket without a file", &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; connect S, pack_sockaddr_un \"\\0$ENV{ABSTRACT}\"'"]),
    attempt(WorkspaceAndNetwork, "beside a granted network: a datagram of the machine", &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_DGRAM, 0; send S, \"x\", 0, pack_sockaddr_un $ENV{DATAGRAM}'"]),
    attempt(WorkspaceAndNetwork, "beside a granted network: a datagram that is addressed late", &["$ATTEMPT sendmsg $DATAGRAM"]),
    attempt(WorkspaceAndNetwork, "beside a granted network: a datagram out of a pair", &["$ATTEMPT pair-sendmsg $DATAGRAM"]),
    attempt(WorkspaceAndNetwork, "beside a granted network: a descriptor handed over", &["$ATTEMPT receive $SOCKET"]),
    attempt(WorkspaceAndNetwork, "beside a granted network: the host of a virtual machine", &["$ATTEMPT socket vsock"]).needs(Kernel),
    attempt(WorkspaceAndNetwork, "beside a granted network: the ciphers of the kernel", &["$ATTEMPT socket alg"]).needs(Kernel),
    attempt(WorkspaceAndNetwork, "beside a granted network: the 32-bit door", &["$ATTEMPT socket-32"]).needs(Kernel),
    attempt(WorkspaceAndNetwork, "beside a granted network: io_uring", &["$ATTEMPT io-uring"]).needs(Kernel),
    // By reading.
    attempt(RestrictedReads, "read a secret", &["cat $O/secret"]),
    attempt(RestrictedReads, "read a secret through proc", &["cat /proc/self/root$O/secret"]),
    attempt(
        RestrictedReads,
        "read a secret through another process",
        &["cat /proc/$B/root$O/secret /proc/$B/cwd/secret"],
    ),
    attempt(RestrictedReads, "read a secret that another process has open", &["cat /proc/$B/fd/8"]),
    attempt(RestrictedReads, "read a secret through a link", &["ln -s $O/secret s; cat s"]),
    attempt(RestrictedReads, "read a secret through a hard link", &["ln $O/secret s && cat s"]),
    attempt(RestrictedReads, "learn that a secret exists", &["test -e $O/secret && echo escaped"]),
    attempt(RestrictedReads, "list what is outside", &["ls $O | grep -q secret && echo escaped"]),
    attempt(RestrictedReads, "read a secret with a program of the system", &["perl -pe 1 $O/secret"]),
    attempt(RestrictedReads, "a readable root turned into a link", &["rmdir docs; ln -s $O docs", "cat docs/secret"])
        .after("mkdir docs"),
    attempt(ClosedByLink, "a link to what is closed turned elsewhere", &["ln -sfn inner link", "cat shut/key"])
        .after("mkdir shut && ln -s shut link && echo escaped > shut/key"),
    // By paths that a profile closes.
    attempt(Closed, "read what is closed", &["cat $O/secret"]),
    attempt(Closed, "read what is closed through proc", &["cat /proc/self/root$O/secret"]),
    attempt(Closed, "read what is closed through another process", &["cat /proc/$B/root$O/secret /proc/$B/cwd/secret"]),
    attempt(Closed, "read what is closed through an open file", &["cat /proc/$B/fd/8"]),
    attempt(
        Closed,
        "read what is closed through links",
        &["ln -s ../outside s; cat s/secret; ln $O/secret h && cat h"],
    ),
    attempt(Closed, "learn what is in a closed folder", &["ls $O | grep -q secret && echo escaped"]),
    attempt(Closed, "write to a closed folder", &["touch $O/new"]),
    attempt(Closed, "open what is closed", &["chmod 777 $O; cat $O/secret"]),
    attempt(Closed, "take the cover away", &["umount -l $O 2> /dev/null; cat $O/secret"]),
    attempt(Closed, "look under the cover", &["mkdir m && mount --bind .. m && cat m/outside/secret; umount m"])
        .needs(Root),
    attempt(Closed, "take the cover away in a namespace", &["unshare -Urm sh -c 'umount -l $O; cat $O/secret'"]),
    attempt(ClosedFile, "read a closed file", &["cat $O/secret"]),
    attempt(ClosedFile, "read a closed file through another process", &["cat /proc/$B/root$O/secret /proc/$B/fd/8"]),
    attempt(ClosedFile, "move a closed file", &["mv $O/secret s && cat s"]),
    attempt(ClosedFile, "take the cover of a file away", &["umount -l $O/secret 2> /dev/null; cat $O/secret"]),
    attempt(ClosedInside, "move what holds a closed folder", &["mv deep elsewhere", "cat elsewhere/er/shut/key"])
        .after("mkdir -p deep/er/shut && echo escaped > deep/er/shut/key"),
    attempt(ClosedInside, "exchange what holds a closed folder", &["mkdir e; mv -T deep/er e", "cat e/shut/key"])
        .after("mkdir -p deep/er/shut && echo escaped > deep/er/shut/key"),
    attempt(ClosedInside, "copy what holds a closed folder", &["cp -r deep elsewhere; cat elsewhere/er/shut/key"])
        .after("mkdir -p deep/er/shut && echo escaped > deep/er/shut/key"),
    // Beside the loopback ports of a network of its own.
    attempt(Doors, "beside the doors: tcp over ipv4", &["exec 3<>/dev/tcp/127.0.0.1/$TCP4"]),
    attempt(Doors, "beside the doors: tcp over ipv6", &["exec 3<>/dev/tcp/::1/$TCP6"]).needs(Kernel),
    attempt(Doors, "beside the doors: udp over ipv4", &["echo x > /dev/udp/127.0.0.1/$UDP4"]),
    attempt(Doors, "beside the doors: udp over ipv6", &["echo x > /dev/udp/::1/$UDP6"]).needs(Kernel),
    attempt(Doors, "beside the doors: all addresses", &["exec 3<>/dev/tcp/0.0.0.0/$TCP4"]),
    attempt(
        Doors,
        "beside the doors: a socket of the machine",
        &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; connect S, pack_sockaddr_un $ENV{SOCKET}'"],
    ),
    attempt(
        Doors,
        "beside the doors: a socket without a file",
        &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; connect S, pack_sockaddr_un \"\\0$ENV{ABSTRACT}\"'"],
    ),
    attempt(
        Doors,
        "beside the doors: a pair connected once more",
        &[
            "perl -MSocket -e 'socketpair A, B, AF_UNIX, SOCK_STREAM, 0; close B; connect A, pack_sockaddr_un $ENV{SOCKET} or socket S, AF_UNIX, SOCK_STREAM, 0 and connect S, pack_sockaddr_un $ENV{SOCKET}'",
        ],
    ),
    attempt(
        Doors,
        "beside the doors: a datagram of the machine",
        &["perl -MSocket -e 'socket S, AF_UNIX, SOCK_DGRAM, 0; send S, \"x\", 0, pack_sockaddr_un $ENV{DATAGRAM}'"],
    ),
    attempt(Doors, "beside the doors: a datagram that is addressed late", &["$ATTEMPT sendmsg $DATAGRAM"]),
    attempt(Doors, "beside the doors: a datagram out of a pair", &["$ATTEMPT pair-sendmsg $DATAGRAM"]),
    attempt(Doors, "beside the doors: a descriptor handed over", &["$ATTEMPT receive $SOCKET"]),
    attempt(Doors, "beside the doors: the kernel's own sockets", &["$ATTEMPT socket netlink"]).needs(Kernel),
    attempt(Doors, "beside the doors: raw packets", &["$ATTEMPT socket packet"]).needs(Kernel),
    attempt(Doors, "beside the doors: raw ip", &["$ATTEMPT socket raw"]).needs(Kernel),
    attempt(Doors, "beside the doors: the host of a virtual machine", &["$ATTEMPT socket vsock"]).needs(Kernel),
    attempt(Doors, "beside the doors: the ciphers of the kernel", &["$ATTEMPT socket alg"]).needs(Kernel),
    attempt(Doors, "beside the doors: the 32-bit door", &["$ATTEMPT socket-32"]).needs(Kernel),
    attempt(Doors, "beside the doors: io_uring", &["$ATTEMPT io-uring"]).needs(Kernel),
    attempt(
        Doors,
        "beside the doors: the network of another process",
        &["nsenter -t $B -n bash -c 'exec 3<>/dev/tcp/127.0.0.1/$TCP4'"],
    )
    .needs(Root),
    attempt(Doors, "beside the doors: write outside", &["touch $O/new"]),
];
