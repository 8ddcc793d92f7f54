/* SPDX-License-Identifier: Apache-2.0 */
/* Each role's list of system calls, from inside: a listed call works, any other kills with
 * SIGSYS. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "jail_child.h"
#include "vethguard/base/secret.h"
#include "vethguard/jail/jail.h"

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

struct attempt {
	const char *name;
	enum jail_role role;
	int (*what)(void);
};

static int try_execve(void)
{
	return (int)syscall(SYS_execve, "/bin/true", NULL, NULL);
}
static int try_execveat(void)
{
	return (int)syscall(SYS_execveat, AT_FDCWD, "/bin/true", NULL, NULL, 0);
}
static int try_netlink(void)
{
	return (int)syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
}
static int try_unix(void)
{
	return (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}
static int try_packet(void)
{
	return (int)syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0);
}
static int try_raw(void)
{
	return (int)syscall(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static int try_ping(void)
{
	return (int)syscall(SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
static int try_sctp(void)
{
	return (int)syscall(SYS_socket, AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
}
static int try_vsock(void)
{
	return (int)syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0);
}
static int try_tcp(void)
{
	return (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}
static int try_udp6(void)
{
	return (int)syscall(SYS_socket, AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
}
static int try_open(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}
static int try_ptrace(void)
{
	return (int)syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}
static int try_fork(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}
static int try_clone3(void)
{
	return (int)syscall(SYS_clone3, NULL, 0);
}
static int try_kill_parent(void)
{
	return (int)syscall(SYS_kill, 1, 0);
}
/* A file that others have mapped must not become shorter, nor a full one be made larger. */
static int try_ftruncate(void)
{
	return (int)syscall(SYS_ftruncate, -1, 0);
}
static int try_fallocate(void)
{
	return (int)syscall(SYS_fallocate, -1, 0, 0, 4096);
}
static int try_signal_other(void)
{
	return (int)syscall(SYS_tgkill, 1, 1, 0);
}
static int try_exec_memory(void)
{
	return (int)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static int try_exec_protect(void)
{
	return (int)syscall(SYS_mprotect, 0, 4096, PROT_READ | PROT_EXEC);
}
static int try_bind(void)
{
	return (int)syscall(SYS_bind, 1000, NULL, 0);
}
static int try_listen(void)
{
	return (int)syscall(SYS_listen, 1000, 1);
}
static int try_unshare(void)
{
	return (int)syscall(SYS_unshare, 0);
}
static int try_setns(void)
{
	return (int)syscall(SYS_setns, 1000, 0);
}
static int try_io_uring(void)
{
	return (int)syscall(SYS_io_uring_setup, 1, NULL);
}
static int try_memory_of_another(void)
{
	return (int)syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0);
}
static int try_push_input(void)
{
	return (int)syscall(SYS_ioctl, 0, TIOCSTI, "x");
}
static int try_set_owner(void)
{
	return (int)syscall(SYS_fcntl, 0, F_SETOWN, 1);
}
static int try_make_blocking(void)
{
	return (int)syscall(SYS_fcntl, 1000, F_SETFL, O_RDWR);
}
static int try_make_blocking_otherwise(void)
{
	int no = 0;

	return (int)syscall(SYS_ioctl, 1000, FIONBIO, &no);
}
static int try_no_append(void)
{
	return (int)syscall(SYS_fcntl, 1000, F_SETFL, O_RDWR | O_NONBLOCK);
}
static int try_pwrite(void)
{
	return (int)syscall(SYS_pwrite64, 1000, "x", 1, 0L);
}
static int try_truncate(void)
{
	return (int)syscall(SYS_ftruncate, 1000, 0L);
}
static int try_dumpable(void)
{
	return (int)syscall(SYS_prctl, PR_SET_PTRACER, 1, 0, 0, 0);
}
static int try_firewall_option(void)
{
	return (int)syscall(SYS_setsockopt, 1000, IPPROTO_RAW, 64, NULL, 0);
}
static int try_linger(void)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 3600};

	return (int)syscall(SYS_setsockopt, 1000, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}
static int try_mark(void)
{
	return (int)syscall(SYS_setsockopt, 1000, SOL_SOCKET, SO_MARK, NULL, 0);
}
static int try_upper_layer(void)
{
	return (int)syscall(SYS_setsockopt, 1000, IPPROTO_TCP, TCP_ULP, "tls", 4);
}
static int try_fast_open(void)
{
	return (int)syscall(SYS_sendto, 1000, "x", 1, MSG_NOSIGNAL | MSG_FASTOPEN, NULL, 0);
}
static int try_fast_open_message(void)
{
	return (int)syscall(SYS_sendmsg, 1000, NULL, MSG_FASTOPEN);
}
static int try_connect(void)
{
	return (int)syscall(SYS_connect, 1000, NULL, 0);
}
static int try_accept(void)
{
	return (int)syscall(SYS_accept4, 1000, NULL, NULL, 0);
}
static int try_splice(void)
{
	return (int)syscall(SYS_splice, 1000, NULL, 1001, NULL, 1, 0);
}
static int try_fdatasync(void)
{
	return (int)syscall(SYS_fdatasync, 1000);
}
static int try_epoll(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}
static int try_eventfd(void)
{
	return eventfd(0, EFD_NONBLOCK);
}
static int try_timerfd(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
}
static int try_unlink(void)
{
	return (int)syscall(SYS_unlinkat, AT_FDCWD, "/nonexistent", 0);
}

static int jailed(void *context)
{
	const struct attempt *a = context;

	if (jail_seccomp(a->role, false) != 0)
		return 100;
	a->what();
	return 0;
}

static void everything_unlisted_kills(void **state)
{
	static const struct attempt attempts[] = {
	        {"execve", JAIL_WORKER, try_execve},
	        {"execve", JAIL_KEEPER, try_execve},
	        {"execve", JAIL_RECORDER, try_execve},
	        {"execveat", JAIL_WORKER, try_execveat},
	        {"netlink", JAIL_WORKER, try_netlink},
	        {"unix socket", JAIL_WORKER, try_unix},
	        {"packet socket", JAIL_WORKER, try_packet},
	        {"raw socket", JAIL_WORKER, try_raw},
	        {"ping socket", JAIL_WORKER, try_ping},
	        {"sctp", JAIL_WORKER, try_sctp},
	        {"vsock", JAIL_WORKER, try_vsock},
	        {"tcp", JAIL_KEEPER, try_tcp},
	        {"tcp", JAIL_RECORDER, try_tcp},
	        {"netlink", JAIL_RECORDER, try_netlink},
	        {"connect", JAIL_KEEPER, try_connect},
	        {"accept", JAIL_RECORDER, try_accept},
	        {"splice", JAIL_KEEPER, try_splice},
	        {"fdatasync", JAIL_WORKER, try_fdatasync},
	        {"ptrace", JAIL_WORKER, try_ptrace},
	        {"ptrace", JAIL_KEEPER, try_ptrace},
	        {"fork", JAIL_WORKER, try_fork},
	        {"fork", JAIL_KEEPER, try_fork},
	        {"clone3", JAIL_WORKER, try_clone3},
	        {"ftruncate", JAIL_WORKER, try_ftruncate},
	        {"ftruncate", JAIL_KEEPER, try_ftruncate},
	        {"fallocate", JAIL_WORKER, try_fallocate},
	        {"fallocate", JAIL_KEEPER, try_fallocate},
	        {"kill", JAIL_WORKER, try_kill_parent},
	        {"kill", JAIL_RECORDER, try_kill_parent},
	        {"signal to another", JAIL_WORKER, try_signal_other},
	        {"executable mmap", JAIL_WORKER, try_exec_memory},
	        {"executable mprotect", JAIL_WORKER, try_exec_protect},
	        {"executable mmap", JAIL_KEEPER, try_exec_memory},
	        {"bind", JAIL_WORKER, try_bind},
	        {"listen", JAIL_WORKER, try_listen},
	        {"unshare", JAIL_WORKER, try_unshare},
	        {"setns", JAIL_WORKER, try_setns},
	        {"io_uring", JAIL_WORKER, try_io_uring},
	        {"process_vm_readv", JAIL_WORKER, try_memory_of_another},
	        {"TIOCSTI", JAIL_WORKER, try_push_input},
	        {"F_SETOWN", JAIL_WORKER, try_set_owner},
	        {"raw socket option", JAIL_WORKER, try_firewall_option},
	        {"SO_LINGER", JAIL_WORKER, try_linger},
	        {"SO_MARK", JAIL_WORKER, try_mark},
	        {"TCP_ULP", JAIL_WORKER, try_upper_layer},
	        {"MSG_FASTOPEN", JAIL_WORKER, try_fast_open},
	        {"MSG_FASTOPEN", JAIL_WORKER, try_fast_open_message},
	        {"unlink", JAIL_RECORDER, try_unlink},
	        {"another epoll", JAIL_WORKER, try_epoll},
	        {"another eventfd", JAIL_WORKER, try_eventfd},
	        {"another timer", JAIL_WORKER, try_timerfd},
	        {"a blocking eventfd", JAIL_WORKER, try_make_blocking},
	        {"a blocking eventfd", JAIL_KEEPER, try_make_blocking},
	        {"FIONBIO", JAIL_WORKER, try_make_blocking_otherwise},
	        {"a log without O_APPEND", JAIL_RECORDER, try_no_append},
	        {"pwrite64", JAIL_RECORDER, try_pwrite},
	        {"ftruncate", JAIL_RECORDER, try_truncate},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		int status = in_child(jailed, (void *)&attempts[i]);

		if (!died_by(status, SIGSYS))
			fail_msg("%s in role %d: status %#x", attempts[i].name, attempts[i].role,
			        status);
	}
}

/* The sanitizers' run-time opens files when it reports: there they are refused, everywhere else
 * they kill. */
static int open_is_refused(void *context)
{
	(void)context;
	if (jail_seccomp(JAIL_WORKER, false) != 0)
		return 100;
	return try_open() == -1 && errno == EACCES ? 7 : 0;
}

static void opening_a_file_kills(void **state)
{
	struct attempt prctl_attempt = {"prctl", JAIL_WORKER, try_dumpable};
	struct attempt attempts[] = {{"openat", JAIL_WORKER, try_open},
	        {"openat", JAIL_KEEPER, try_open}, {"openat", JAIL_RECORDER, try_open}};

	(void)state;
	if (SANITIZED) {
		assert_true(left_with(in_child(open_is_refused, NULL), 7));
		return;
	}
	for (size_t i = 0; i < 3; i++)
		assert_true(died_by(in_child(jailed, &attempts[i]), SIGSYS));
	assert_true(died_by(in_child(jailed, &prctl_attempt), SIGSYS));
}

/* The number of options that a worker's sockets got. */
static int set_options(void)
{
	static const struct {
		int family, type, level, name;
	} options[] = {{AF_INET, SOCK_STREAM, SOL_SOCKET, SO_KEEPALIVE},
	        {AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_NODELAY},
	        {AF_INET, SOCK_STREAM, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT},
	        {AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_RECVORIGDSTADDR},
	        {AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR}};
	const int on = 1;
	int n = 0;

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int fd = socket(options[i].family, options[i].type, 0);

		n += setsockopt(fd, options[i].level, options[i].name, &on, sizeof(on)) == 0 ||
		     errno == EBADF;
		close(fd);
	}
	n += setsockopt(1000, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) == -1 && errno == EBADF;
	return n;
}

static int worker_works(void *context)
{
	int fds[2], n = 0;
	char *memory;
	struct secret secret;
	struct timespec now;
	struct tm parts;
	time_t t = 0;

	(void)context;
	tzset();
	if (jail_seccomp(JAIL_WORKER, false) != 0)
		return 100;
	n += try_tcp() >= 0;
	n += try_udp6() >= 0 || errno == EAFNOSUPPORT;
	n += pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0 && write(fds[1], "x", 1) == 1;
	memory = malloc(1 << 20);
	n += memory != NULL && (memory = realloc(memory, 8 << 20)) != NULL;
	free(memory);
	n += secret_copy(&secret, "value", 5) == 0;
	secret_free(&secret);
	n += clock_gettime(CLOCK_REALTIME, &now) == 0 && gmtime_r(&t, &parts) != NULL;
	n += fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0 && isatty(fds[0]) == 0;
	n += try_accept() == -1 && errno == EBADF && try_splice() == -1 && errno == EBADF;
	n += set_options() == 6;
	n += send(1000, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == -1 && errno == EBADF;
	fprintf(stderr, "%s", "");
	return n;
}

static void a_worker_can_do_its_work(void **state)
{
	(void)state;
	assert_true(left_with(in_child(worker_works, NULL), 10));
}

static int worker_binds(void *context)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
	int n = 0;

	(void)context;
	if (jail_seccomp(JAIL_WORKER, true) != 0)
		return 100;
	n += bind(try_tcp(), (struct sockaddr *)&any, sizeof(any)) == 0;
	n += bind(try_udp6(), (struct sockaddr *)&any6, sizeof(any6)) == 0 || errno == EBADF;
	return n;
}

static int binding(void *context)
{
	int (**what)(void) = context;

	if (jail_seccomp(JAIL_WORKER, true) != 0)
		return 100;
	(*what)();
	return 0;
}

static void a_worker_with_a_source_address_binds(void **state)
{
	static int (*const fatal[])(void) = {try_bind, try_listen, try_unix, try_execve};

	(void)state;
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		assert_true(died_by(in_child(binding, (void *)(uintptr_t)&fatal[i]), SIGSYS));
	assert_true(left_with(in_child(worker_binds, NULL), 2));
}

/* A filter made in advance is the one that is loaded, and only for the role it was made for. */
static int prepared(void *context)
{
	const struct attempt *a = context;

	if (jail_seccomp_prepare(JAIL_WORKER, true) != 0 ||
	        jail_seccomp_prepare(JAIL_WORKER, false) != 0)
		return 100;
	if (jail_seccomp(a->role, false) != 0)
		return 101;
	a->what();
	return 7;
}

static void a_filter_may_be_made_before(void **state)
{
	static const struct attempt fatal[] = {
	        {"execve", JAIL_WORKER, try_execve},
	        {"bind", JAIL_WORKER, try_bind},
	        {"tcp", JAIL_KEEPER, try_tcp},
	        {"fdatasync", JAIL_WORKER, try_fdatasync},
	};
	static const struct attempt allowed[] = {
	        {"tcp", JAIL_WORKER, try_tcp},
	        {"fdatasync", JAIL_RECORDER, try_fdatasync},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		assert_true(died_by(in_child(prepared, (void *)&fatal[i]), SIGSYS));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		assert_true(left_with(in_child(prepared, (void *)&allowed[i]), 7));
}

static int abort_in_jail(void *context)
{
	(void)context;
	if (jail_seccomp(JAIL_KEEPER, false) != 0)
		return 100;
	abort();
}

static void abort_still_aborts(void **state)
{
	(void)state;
	assert_true(died_by(in_child(abort_in_jail, NULL), SIGABRT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(everything_unlisted_kills),
	        cmocka_unit_test(opening_a_file_kills),
	        cmocka_unit_test(a_worker_can_do_its_work),
	        cmocka_unit_test(a_worker_with_a_source_address_binds),
	        cmocka_unit_test(a_filter_may_be_made_before),
	        cmocka_unit_test(abort_still_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
