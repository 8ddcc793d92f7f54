/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last stage: each role's list of system calls (seccomp(2)). A call that is not in the list
 * ends the process with SIGSYS, because only code that is not ours can make it. Calls whose
 * arguments matter (socket, mmap, fcntl, ...) are listed with them. Lists are data; one loop makes
 * a filter of them, and libseccomp makes the kernel's program. That takes longer than anything else
 * between a worker's start and its serving, so it can be done in advance.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/net.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/jail_state.h"

#define CALL(name) SCMP_SYS(name)
#define LIST_END __NR_SCMP_ERROR

/* Memory, time, signals to oneself, messages to the supervisor, an event loop: what every role
 * does. The loop's own descriptors (epoll, timer, eventfd) are made before the jail closes. Some
 * calls are not used with glibc 2.36 but with other versions: clock_gettime, time and getrandom
 * outside of the vDSO, fstat for newfstatat, epoll_pwait for epoll_wait (aarch64), writev in
 * abort(). */
static const int common_calls[] = {CALL(read), CALL(write), CALL(writev), CALL(close), CALL(fstat),
        CALL(newfstatat), CALL(lseek), CALL(recvmsg), CALL(recvfrom), CALL(poll), CALL(ppoll),
        CALL(epoll_ctl), CALL(epoll_wait), CALL(epoll_pwait), CALL(epoll_pwait2),
        CALL(timerfd_settime), CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise), CALL(mlock),
        CALL(mlock2), CALL(munlock), CALL(futex), CALL(getrandom), CALL(clock_gettime),
        CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday), CALL(time),
        CALL(getpid), CALL(gettid), CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid),
        CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(sigaltstack),
        CALL(restart_syscall), CALL(sched_yield), CALL(exit), CALL(exit_group), LIST_END};

static const int worker_calls[] = {CALL(connect), CALL(accept4), CALL(splice), CALL(pipe2),
        CALL(getsockopt), CALL(getsockname), CALL(shutdown), LIST_END};

static const int recorder_calls[] = {
        CALL(pread64), CALL(fdatasync), CALL(flock), CALL(getsockopt), LIST_END};

static const int keeper_calls[] = {CALL(getsockopt), CALL(fsync), LIST_END};

/* What libcurl does for one request to an address that is known already. */
static const int fetch_calls[] = {CALL(connect), CALL(getsockopt), CALL(getsockname),
        CALL(getpeername), CALL(shutdown), CALL(pipe2), CALL(eventfd2), LIST_END};

/* The gateway accepts connections and never connects. */
static const int gateway_calls[] = {
        CALL(accept4), CALL(getsockopt), CALL(getsockname), CALL(shutdown), LIST_END};

/* One connection to one server, and the resolvers'. */
static const int quota_calls[] = {CALL(connect), CALL(getsockopt), CALL(shutdown), LIST_END};

/* There is nothing to open, but libraries ask: they get an error. */
static const int fetch_refused[] = {CALL(open), CALL(openat), CALL(access), CALL(faccessat),
        CALL(faccessat2), CALL(stat), CALL(readlink), CALL(readlinkat), CALL(socketpair),
        CALL(uname), CALL(sysinfo), CALL(prlimit64), LIST_END};

/* What modules of tokens and their libraries need: files, threads, Unix sockets. Such code may try
 * other calls and cope with a failure, so those fail and do not kill (build()). */
static const int token_calls[] = {CALL(open), CALL(openat), CALL(access), CALL(faccessat),
        CALL(faccessat2), CALL(stat), CALL(lstat), CALL(statx), CALL(statfs), CALL(fstatfs),
        CALL(readlink), CALL(readlinkat), CALL(getdents64), CALL(getcwd), CALL(pread64),
        CALL(pwrite64), CALL(fsync), CALL(fdatasync), CALL(ftruncate), CALL(flock), CALL(rename),
        CALL(renameat), CALL(renameat2), CALL(unlink), CALL(unlinkat), CALL(mkdir), CALL(mkdirat),
        CALL(rmdir), CALL(utimensat), CALL(umask), CALL(dup), CALL(dup2), CALL(dup3), CALL(pipe),
        CALL(pipe2), CALL(eventfd2), CALL(epoll_create1), CALL(select), CALL(pselect6),
        CALL(connect), CALL(getsockopt), CALL(setsockopt), CALL(getsockname), CALL(getpeername),
        CALL(shutdown), CALL(set_robust_list), CALL(rseq), CALL(prlimit64), CALL(getrlimit),
        CALL(sched_getaffinity), CALL(uname), CALL(sysinfo), CALL(getppid), CALL(getpgrp),
        CALL(times), CALL(getrusage), CALL(fcntl), CALL(getgroups), CALL(getresuid),
        CALL(getresgid), LIST_END};

static const int *const role_calls[] = {
        [JAIL_KEEPER] = keeper_calls,
        [JAIL_WORKER] = worker_calls,
        [JAIL_RECORDER] = recorder_calls,
        [JAIL_FETCH] = fetch_calls,
        [JAIL_TOKEN] = token_calls,
        [JAIL_GATEWAY] = gateway_calls,
        [JAIL_QUOTA] = quota_calls,
};

/* Needed by the sanitizers' run-time: more memory calls; file calls are refused instead of fatal,
 * so that an error report is still printed. */
#ifdef __SANITIZE_ADDRESS__
static const int sanitizer_calls[] = {
        CALL(prlimit64), CALL(getrlimit), CALL(pipe), CALL(sched_getaffinity), LIST_END};
static const int sanitizer_refused[] = {CALL(open), CALL(openat), CALL(readlink), CALL(readlinkat),
        CALL(stat), CALL(access), CALL(prctl), LIST_END};

/* The leak check at exit stops the program with ptrace from a clone of it, which is impossible
 * inside the jail. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return jail_state.calls_allowed != 0;
}
#endif

static const int fcntl_commands[] = {
        F_GETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ, F_GET_SEALS};
static const unsigned long ioctl_commands[] = {FIONREAD, TCGETS};
/* What a worker sets, and nothing else. With SO_LINGER on a socket that it gives to another
 * process, close(2) would block that process for as long as the option says. */
static const struct {
	int level, name;
} socket_options[] = {
        {SOL_SOCKET, SO_KEEPALIVE},
        {SOL_SOCKET, SO_BINDTODEVICE},
        {IPPROTO_TCP, TCP_NODELAY},
        {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT},
        {IPPROTO_IP, IP_RECVORIGDSTADDR},
        {IPPROTO_IPV6, IPV6_RECVORIGDSTADDR},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The program that was made last. */
static struct {
	enum jail_role role;
	bool binds;
	unsigned calls;                   /* rules of its list */
	struct sock_filter *instructions; /* owned; NULL: none was made, or it is in force */
	size_t count;
} made;

static int allow_all(scmp_filter_ctx filter, uint32_t action, const int *calls)
{
	int rc = 0;

	for (; rc == 0 && *calls != LIST_END; calls++) {
		rc = seccomp_rule_add(filter, action, *calls, 0);
		/* an architecture without the call (time, open) has nothing to allow */
		if (rc == -EDOM || rc == -EINVAL)
			rc = *calls < 0 ? 0 : rc;
		made.calls++;
	}
	return rc;
}

/* Memory is never executable: neither through mmap nor through a later mprotect. */
static int allow_memory(scmp_filter_ctx filter)
{
	static const int calls[] = {CALL(mmap), CALL(mprotect)};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < COUNT(calls); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 1,
		        SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return rc;
}

/* Flags belong to an open file, not to its descriptor: a role that could make an eventfd blocking
 * would do so also for the program at the other end, and hang it. The recorder changes no flags:
 * its log stays open for append. */
static int allow_nonblocking(scmp_filter_ctx filter, enum jail_role role)
{
	if (role == JAIL_RECORDER)
		return 0;
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(fcntl), 2,
	        SCMP_A1_32(SCMP_CMP_EQ, F_SETFL),
	        SCMP_A2_32(SCMP_CMP_MASKED_EQ, O_NONBLOCK, O_NONBLOCK));
}

/* With MSG_FASTOPEN these calls include connect(2), without Landlock's knowledge. */
static int allow_sending(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(sendmsg), 1,
	        SCMP_A2_32(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));

	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(sendto), 1,
		        SCMP_A3_32(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
	return rc;
}

static int allow_common_arguments(scmp_filter_ctx filter)
{
	int rc = allow_memory(filter);

	if (rc == 0)
		rc = allow_sending(filter);
	for (size_t i = 0; rc == 0 && i < COUNT(fcntl_commands); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(fcntl), 1,
		        SCMP_A1_32(SCMP_CMP_EQ, (uint32_t)fcntl_commands[i]));
	for (size_t i = 0; rc == 0 && i < COUNT(ioctl_commands); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(ioctl), 1,
		        SCMP_A1_32(SCMP_CMP_EQ, (uint32_t)ioctl_commands[i]));
	/* for abort() and raise(): signals to this process only */
	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(tgkill), 1,
		        SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)getpid()));
	return rc;
}

static int allow_socket(scmp_filter_ctx filter, int family, int type, int protocol)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(socket), 3,
	        SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)family),
	        SCMP_A1_32(SCMP_CMP_MASKED_EQ, 0xf, (uint32_t)type),
	        SCMP_A2_32(SCMP_CMP_EQ, (uint32_t)protocol));
}

/* TCP and UDP over IPv4 and IPv6, nothing else. */
static int allow_network(scmp_filter_ctx filter)
{
	static const int families[] = {AF_INET, AF_INET6};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < COUNT(families); i++) {
		rc = allow_socket(filter, families[i], SOCK_STREAM, 0);
		if (rc == 0)
			rc = allow_socket(filter, families[i], SOCK_STREAM, IPPROTO_TCP);
		if (rc == 0)
			rc = allow_socket(filter, families[i], SOCK_DGRAM, 0);
		if (rc == 0)
			rc = allow_socket(filter, families[i], SOCK_DGRAM, IPPROTO_UDP);
	}
	for (size_t i = 0; rc == 0 && i < COUNT(socket_options); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(setsockopt), 2,
		        SCMP_A1_32(SCMP_CMP_EQ, (uint32_t)socket_options[i].level),
		        SCMP_A2_32(SCMP_CMP_EQ, (uint32_t)socket_options[i].name));
	return rc;
}

/* Only with an address of either family's length. The filter cannot see the address; the network's
 * own checks apply there, and Landlock's for the port. */
static int allow_bind(scmp_filter_ctx filter)
{
	static const uint32_t lengths[] = {sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6)};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < COUNT(lengths); i++)
		rc = seccomp_rule_add(
		        filter, SCMP_ACT_ALLOW, CALL(bind), 1, SCMP_A2_32(SCMP_CMP_EQ, lengths[i]));
	return rc;
}

/* Permits to map a library for execution, to start threads, and to open Unix sockets. */
static int allow_module(scmp_filter_ctx filter)
{
	const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(mmap), 0);

	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(mprotect), 0);
	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(clone), 1,
		        SCMP_A0(SCMP_CMP_MASKED_EQ, thread, thread));
	if (rc == 0) /* clone3: a filter cannot see its flags behind the pointer; the C library
	                falls back to clone */
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), CALL(clone3), 0);
	if (rc == 0)
		rc = seccomp_rule_add(
		        filter, SCMP_ACT_ALLOW, CALL(socket), 1, SCMP_A0_32(SCMP_CMP_EQ, AF_UNIX));
	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(prctl), 1,
		        SCMP_A0_32(SCMP_CMP_EQ, PR_SET_NAME));
	return rc;
}

static int build(scmp_filter_ctx filter, enum jail_role role, bool binds)
{
	int rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 0);
	/* a binary tree instead of a list: a dozen comparisons for any call */
	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = allow_all(filter, SCMP_ACT_ALLOW, common_calls);
	if (rc == 0)
		rc = allow_all(filter, SCMP_ACT_ALLOW, role_calls[role]);
	if (rc == 0 && role == JAIL_TOKEN)
		rc = allow_module(filter);
	if (rc == 0)
		rc = allow_common_arguments(filter);
	if (rc == 0 && role != JAIL_TOKEN)
		rc = allow_nonblocking(filter, role);
	if (rc == 0 && (role == JAIL_WORKER || role == JAIL_FETCH || role == JAIL_QUOTA))
		rc = allow_network(filter);
	if (rc == 0 && role == JAIL_FETCH)
		rc = allow_all(filter, SCMP_ACT_ERRNO(EACCES), fetch_refused);
	if (rc == 0 && binds)
		rc = allow_bind(filter);
#ifdef __SANITIZE_ADDRESS__
	if (rc == 0)
		rc = allow_all(filter, SCMP_ACT_ALLOW, sanitizer_calls);
	if (rc == 0)
		rc = allow_all(filter, SCMP_ACT_ERRNO(EACCES), sanitizer_refused);
#endif
	return rc;
}

/* libseccomp before 2.6 writes only to a file. */
static int export(scmp_filter_ctx filter)
{
	int fd = memfd_create("vethguard-filter", MFD_CLOEXEC), rc = fd < 0 ? -errno : 0;
	struct stat st;
	size_t n = 0;

	if (rc == 0)
		rc = seccomp_export_bpf(filter, fd);
	if (rc == 0 && fstat(fd, &st) < 0)
		rc = -errno;
	if (rc == 0) {
		n = (size_t)st.st_size;
		made.count = n / sizeof(*made.instructions);
		if (made.count == 0 || made.count > BPF_MAXINSNS ||
		        n % sizeof(*made.instructions) != 0)
			rc = -E2BIG;
	}
	if (rc == 0) {
		made.instructions = malloc(n);
		rc = made.instructions ? 0 : -ENOMEM;
	}
	if (rc == 0 && pread(fd, made.instructions, n, 0) != (ssize_t)n)
		rc = -EIO;
	if (fd >= 0)
		close(fd);
	return rc;
}

static void forget(void)
{
	free(made.instructions);
	made.instructions = NULL;
}

int jail_seccomp_prepare(enum jail_role role, bool binds)
{
	scmp_filter_ctx filter =
	        seccomp_init(role == JAIL_TOKEN ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_KILL_PROCESS);
	int rc;

	if (!filter)
		return -ENOMEM;
	forget();
	made.role = role;
	made.binds = binds;
	made.calls = 0;
	rc = build(filter, role, binds);
	if (rc == 0)
		rc = export(filter);
	seccomp_release(filter);
	if (rc != 0)
		forget();
	return rc;
}

int jail_seccomp(enum jail_role role, bool binds)
{
	struct sock_fprog program;
	int rc = 0;

	if (!made.instructions || made.role != role || made.binds != binds)
		rc = jail_seccomp_prepare(role, binds);
	if (rc != 0)
		return rc;
	program = (struct sock_fprog){(unsigned short)made.count, made.instructions};
	/* set already, unless a caller skipped the earlier stages */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return -errno;
	jail_state.calls_allowed = made.calls;
	forget();
	return 0;
}
