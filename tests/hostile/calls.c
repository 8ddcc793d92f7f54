/* SPDX-License-Identifier: Apache-2.0 */
/* One system call each, made directly: what a role with hostile code would try. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"

#define CALL(name, ...)                      \
	static long name(void)               \
	{                                    \
		return syscall(__VA_ARGS__); \
	}
#define PAGE 4096
#define FDS_END 64

static const char passwd[] = "/etc/passwd", true_path[] = "/bin/true";

CALL(call_execve, SYS_execve, true_path, NULL, NULL)
CALL(call_execveat, SYS_execveat, AT_FDCWD, true_path, NULL, NULL, 0)
CALL(call_clone, SYS_clone, SIGCHLD, 0, 0, 0, 0)
CALL(call_clone3, SYS_clone3, NULL, 0)
CALL(call_netlink, SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)
CALL(call_unix, SYS_socket, AF_UNIX, SOCK_STREAM, 0)
CALL(call_socketpair, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, NULL)
CALL(call_vsock, SYS_socket, AF_VSOCK, SOCK_STREAM, 0)
CALL(call_packet, SYS_socket, AF_PACKET, SOCK_RAW, 0)
CALL(call_raw, SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP)
CALL(call_ping, SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP)
CALL(call_sctp, SYS_socket, AF_INET6, SOCK_STREAM, IPPROTO_SCTP)
CALL(call_mptcp, SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_MPTCP)
CALL(call_alg, SYS_socket, AF_ALG, SOCK_SEQPACKET, 0)
CALL(call_tcp, SYS_socket, AF_INET, SOCK_STREAM, 0)
CALL(call_udp, SYS_socket, AF_INET6, SOCK_DGRAM, 0)
CALL(call_connect, SYS_connect, HOSTILE_SUPERVISOR_FD, NULL, 0)
CALL(call_bind, SYS_bind, HOSTILE_SUPERVISOR_FD, NULL, 0)
CALL(call_listen, SYS_listen, HOSTILE_SUPERVISOR_FD, 1)
CALL(call_accept4, SYS_accept4, HOSTILE_SUPERVISOR_FD, NULL, NULL, 0)
CALL(call_openat, SYS_openat, AT_FDCWD, passwd, O_RDONLY)
CALL(call_openat2, SYS_openat2, AT_FDCWD, passwd, NULL, 0)
CALL(call_open_by_handle, SYS_open_by_handle_at, AT_FDCWD, NULL, O_RDONLY)
CALL(call_memfd, SYS_memfd_create, "x", 0)
CALL(call_unlinkat, SYS_unlinkat, AT_FDCWD, passwd, 0)
CALL(call_getdents, SYS_getdents64, HOSTILE_SUPERVISOR_FD, NULL, 0)
CALL(call_ptrace, SYS_ptrace, PTRACE_SEIZE, 1, 0, 0)
CALL(call_process_vm_readv, SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0)
CALL(call_pidfd_open, SYS_pidfd_open, 1, 0)
CALL(call_pidfd_getfd, SYS_pidfd_getfd, HOSTILE_SUPERVISOR_FD, 0, 0)
CALL(call_kcmp, SYS_kcmp, 1, 1, 0, 0, 0)
CALL(call_kill, SYS_kill, 1, 0)
CALL(call_tgkill, SYS_tgkill, 1, 1, 0)
CALL(call_sigqueue, SYS_rt_sigqueueinfo, 1, 0, NULL)
CALL(call_mmap_exec, SYS_mmap, NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
CALL(call_mprotect_exec, SYS_mprotect, 0, PAGE, PROT_READ | PROT_EXEC)
CALL(call_pkey_mprotect, SYS_pkey_mprotect, 0, PAGE, PROT_READ | PROT_EXEC, -1)
CALL(call_personality, SYS_personality, 0xffffffff)
CALL(call_io_uring, SYS_io_uring_setup, 1, NULL)
CALL(call_bpf, SYS_bpf, 0, NULL, 0)
CALL(call_perf, SYS_perf_event_open, NULL, 0, -1, -1, 0)
CALL(call_userfaultfd, SYS_userfaultfd, 0)
CALL(call_ftruncate, SYS_ftruncate, HOSTILE_SUPERVISOR_FD, 0L)
CALL(call_pwrite, SYS_pwrite64, HOSTILE_SUPERVISOR_FD, "x", 1, 0L)
CALL(call_setns, SYS_setns, HOSTILE_SUPERVISOR_FD, 0)
CALL(call_unshare, SYS_unshare, CLONE_NEWUSER)
CALL(call_mount, SYS_mount, "none", "/", "tmpfs", 0L, NULL)
CALL(call_pivot_root, SYS_pivot_root, ".", ".")
CALL(call_chroot, SYS_chroot, "/")
CALL(call_keyctl, SYS_keyctl, 0, 0)
CALL(call_add_key, SYS_add_key, "user", "x", "x", 1L, -3)
CALL(call_dumpable, SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0)
CALL(call_seccomp, SYS_seccomp, 0, 0, NULL)
CALL(call_setuid, SYS_setuid, 0)
CALL(call_capset, SYS_capset, NULL, NULL)
CALL(call_prlimit, SYS_setrlimit, 0, NULL)
CALL(call_setowner, SYS_fcntl, HOSTILE_SUPERVISOR_FD, F_SETOWN, 1)
CALL(call_blocking, SYS_fcntl, HOSTILE_SUPERVISOR_FD, F_SETFL, O_RDWR)
CALL(call_add_seals, SYS_fcntl, HOSTILE_SUPERVISOR_FD, F_ADD_SEALS, F_SEAL_WRITE)
CALL(call_tiocsti, SYS_ioctl, STDERR_FILENO, 0x5412 /* TIOCSTI */, "x")
CALL(call_fionbio, SYS_ioctl, HOSTILE_SUPERVISOR_FD, 0x5421 /* FIONBIO */, &(int){0})
CALL(call_raw_option, SYS_setsockopt, HOSTILE_SUPERVISOR_FD, IPPROTO_RAW, 64, NULL, 0)
CALL(call_linger, SYS_setsockopt, HOSTILE_SUPERVISOR_FD, SOL_SOCKET, SO_LINGER,
        &(struct linger){1, 3600}, sizeof(struct linger))
CALL(call_stat_path, SYS_newfstatat, AT_FDCWD, passwd, &(struct stat){0}, 0)
CALL(call_splice, SYS_splice, HOSTILE_SUPERVISOR_FD, NULL, STDERR_FILENO, NULL, 1L, 0)
CALL(call_fdatasync, SYS_fdatasync, HOSTILE_SUPERVISOR_FD)

static long connect_to(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	        .sin_port = htons(port),
	        .sin_addr.s_addr = htonl(0x0a630050)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}
static long connect_unnamed(void) /* 10.99.0.80, the lab's outside; no rule names this port */
{
	return connect_to(8081);
}
/* The same by another call, of which Landlock hears nothing. */
static long fast_open(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	        .sin_port = htons(8081),
	        .sin_addr.s_addr = htonl(0x0a630050)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1
	              : sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&to,
	                        sizeof(to));
}
static long connect_ssh(void)
{
	return connect_to(22);
}

/* With egress.address the filter permits bind(2); Landlock still wants a port that the kernel
 * chooses. */
static long bind_port(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(4444)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&any, sizeof(any));
}

/* Sockets of its own cannot be made to reach another namespace. */
static long bind_to_device(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : setsockopt(fd, SOL_SOCKET, SO_MARK, &(int){1}, sizeof(int));
}

/* Maps every memory file and log for writing: those that nobody may change refuse. "done": one
 * that is not the ring can be written. */
static long map_for_writing(void)
{
	for (int fd = 4; fd < FDS_END; fd++) {
		struct stat st;
		void *p;

		if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
			continue;
		p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED &&
		        (fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE || fcntl(fd, F_GET_SEALS) < 0))
			return 0;
	}
	errno = EPERM;
	return -1;
}

/* The log is open twice: for append, where an offset counts nothing, and for reading. */
static long overwrite_log(void)
{
	struct stat st;
	long written = 0;

	for (int fd = 4; fd < FDS_END; fd++)
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fcntl(fd, F_GET_SEALS) < 0 &&
		        (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY && lseek(fd, 0, SEEK_SET) == 0)
			written += write(fd, "x", 1);
	return written;
}

const struct misdeed misdeed_calls[] = {{"execve", call_execve}, {"execveat", call_execveat},
        {"clone", call_clone}, {"clone3", call_clone3}, {"netlink", call_netlink},
        {"unix", call_unix}, {"socketpair", call_socketpair}, {"vsock", call_vsock},
        {"packet", call_packet}, {"raw", call_raw}, {"ping", call_ping}, {"sctp", call_sctp},
        {"mptcp", call_mptcp}, {"alg", call_alg}, {"tcp", call_tcp}, {"udp", call_udp},
        {"connect", call_connect}, {"bind", call_bind}, {"listen", call_listen},
        {"accept4", call_accept4}, {"openat", call_openat}, {"openat2", call_openat2},
        {"open_by_handle_at", call_open_by_handle}, {"memfd_create", call_memfd},
        {"unlinkat", call_unlinkat}, {"getdents64", call_getdents}, {"ptrace", call_ptrace},
        {"process_vm_readv", call_process_vm_readv}, {"pidfd_open", call_pidfd_open},
        {"pidfd_getfd", call_pidfd_getfd}, {"kcmp", call_kcmp}, {"kill", call_kill},
        {"tgkill", call_tgkill}, {"rt_sigqueueinfo", call_sigqueue}, {"mmap exec", call_mmap_exec},
        {"mprotect exec", call_mprotect_exec}, {"pkey_mprotect", call_pkey_mprotect},
        {"personality", call_personality}, {"io_uring_setup", call_io_uring}, {"bpf", call_bpf},
        {"perf_event_open", call_perf}, {"userfaultfd", call_userfaultfd},
        {"ftruncate", call_ftruncate}, {"pwrite64", call_pwrite}, {"setns", call_setns},
        {"unshare", call_unshare}, {"mount", call_mount}, {"pivot_root", call_pivot_root},
        {"chroot", call_chroot}, {"keyctl", call_keyctl}, {"add_key", call_add_key},
        {"prctl dumpable", call_dumpable}, {"seccomp", call_seccomp}, {"setuid", call_setuid},
        {"capset", call_capset}, {"setrlimit", call_prlimit}, {"fcntl setown", call_setowner},
        {"fcntl blocking", call_blocking}, {"fcntl add seals", call_add_seals},
        {"ioctl tiocsti", call_tiocsti}, {"ioctl fionbio", call_fionbio},
        {"setsockopt raw", call_raw_option}, {"setsockopt linger", call_linger},
        {"stat path", call_stat_path}, {"splice", call_splice}, {"fdatasync", call_fdatasync},
        {"connect 8081", connect_unnamed}, {"connect 22", connect_ssh}, {"fast open", fast_open},
        {"bind 4444", bind_port}, {"mark", bind_to_device}, {"map for writing", map_for_writing},
        {"overwrite log", overwrite_log}, {NULL, NULL}};
