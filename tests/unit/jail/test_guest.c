/* SPDX-License-Identifier: Apache-2.0 */
/* The guarded command's limits: no way around the network namespace, no capability over anything
 * but its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "jail_child.h"
#include "seccomp_judge.h"
#include "vethguard/jail/capabilities.h"
#include "vethguard/jail/guest.h"

static bool refused(long family)
{
	return syscall(SYS_socket, family, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT;
}

static int filtered(void *context)
{
	int n = 0;

	(void)context;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || jail_guest_seccomp() != 0)
		return 99;
	n += refused(AF_VSOCK);
	n += refused(AF_BLUETOOTH) && refused(AF_CAN) && refused(AF_TIPC) && refused(AF_XDP);
	n += refused(0) && refused(3) && refused(AF_KEY) && refused(AF_ALG + 1) && refused(-1);
	n += refused(AF_VSOCK | 1L << 32) && refused(AF_KEY | 1L << 40);
	n += syscall(SYS_io_uring_setup, 1, NULL) == -1 && errno == ENOSYS;
	n += syscall(SYS_request_key, "dns_resolver", "a.example", "", 0) == -1 && errno == ENOSYS;
	n += syscall(SYS_keyctl, 0, -3, 0) == -1 && errno == ENOSYS;
	n += syscall(SYS_add_key, "user", "x", "y", 1, -3) == -1 && errno == ENOSYS;
	n += syscall(SYS_ioctl, 1000, TIOCSTI, "x") == -1 && errno == EPERM;
	n += syscall(SYS_ioctl, 1000, TIOCSTI | 1L << 32, "x") == -1 && errno == EPERM;
	n += syscall(SYS_ioctl, 1000, TIOCLINUX, "x") == -1 && errno == EPERM;
	n += syscall(SYS_ioctl, 1000, TIOCGWINSZ, NULL) == -1 && errno == EBADF;
	n += socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
	n += socket(AF_INET, SOCK_DGRAM, 0) >= 0;
	n += socket(AF_NETLINK, SOCK_RAW, 0) >= 0;
#ifdef __x86_64__
	/* The same calls by the numbers of the x32 ABI: refused as well, or unknown to the kernel.
	 */
	n += syscall(SYS_socket | 0x40000000, AF_VSOCK, SOCK_STREAM, 0) == -1 &&
	     (errno == EAFNOSUPPORT || errno == ENOSYS);
#else
	n++;
#endif
	return n;
}

static void only_families_of_the_namespace(void **state)
{
	(void)state;
	assert_true(left_with(in_child(filtered, NULL), 16));
}

#ifdef __x86_64__
static long call32(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80"
	                 : "=a"(result)
	                 : "a"(number), "b"(a), "c"(b), "d"(c)
	                 : "memory");
	return result;
}

static int probe32(void *context)
{
	(void)context;
	return call32(20, 0, 0, 0) == getpid() ? 0 : 77;
}

/* In a child without a filter: where such calls do not exist they fail (CONFIG_IA32_EMULATION,
 * ia32_emulation=off) or end their caller (some virtual machines). */
static void skip_without_32_bit_calls(void)
{
	int status = in_child(probe32, NULL);

	if (left_with(status, 0))
		return;
	if (WIFSIGNALED(status))
		print_message(
		        "skipped: int 0x80 ends a process with signal %d here\n", WTERMSIG(status));
	else
		print_message("skipped: this kernel answers no 32-bit call by int 0x80\n");
	skip();
}

static int filtered32(void *context)
{
	long rc;

	(void)context;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || jail_guest_seccomp() != 0)
		return 99;
	rc = call32(359, AF_VSOCK, SOCK_STREAM, 0); /* socket */
	if (rc != -EAFNOSUPPORT)
		return 1;
	rc = call32(102, 1, 0, 0); /* socketcall(SYS_SOCKET) */
	if (rc != -EAFNOSUPPORT)
		return 2;
	rc = call32(425, 1, 0, 0); /* io_uring_setup */
	return rc == -ENOSYS ? 0 : 3;
}

/* The same without a call, for machines that have none of 32 bits. */
static int confine(void *context)
{
	(void)context;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || jail_guest_seccomp() != 0)
		return 99;
	return jail_guest_ask() < 0 ? 98 : 0;
}

static void the_filter_judges_32_bit_calls(void **state)
{
	static const struct {
		uint32_t arch;
		int nr;
		uint64_t a, b;
		uint32_t answer;
	} calls[] = {
	        {AUDIT_ARCH_X86_64, SYS_socket, AF_VSOCK, 0, SECCOMP_RET_ERRNO | EAFNOSUPPORT},
	        {AUDIT_ARCH_X86_64, SYS_socket, AF_INET, 0, SECCOMP_RET_ALLOW},
	        {AUDIT_ARCH_X86_64, SYS_connect, 3, 0, SECCOMP_RET_USER_NOTIF},
	        {AUDIT_ARCH_I386, 359, AF_VSOCK, 0, SECCOMP_RET_ERRNO | EAFNOSUPPORT},
	        {AUDIT_ARCH_I386, 359, AF_KEY, 0, SECCOMP_RET_ERRNO | EAFNOSUPPORT},
	        {AUDIT_ARCH_I386, 359, AF_INET, 0, SECCOMP_RET_ALLOW},
	        {AUDIT_ARCH_I386, 359, AF_UNIX, 0, SECCOMP_RET_ALLOW},
	        {AUDIT_ARCH_I386, 102, 1, 0, SECCOMP_RET_ERRNO | ENOSYS},     /* SYS_SOCKET */
	        {AUDIT_ARCH_I386, 102, 3, 0, SECCOMP_RET_ERRNO | ENOSYS},     /* SYS_CONNECT */
	        {AUDIT_ARCH_I386, 425, 1, 0, SECCOMP_RET_ERRNO | ENOSYS},     /* io_uring_setup */
	        {AUDIT_ARCH_I386, 286, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},     /* add_key */
	        {AUDIT_ARCH_I386, 288, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},     /* keyctl */
	        {AUDIT_ARCH_I386, 54, 0, TIOCSTI, SECCOMP_RET_ERRNO | EPERM}, /* ioctl */
	        {AUDIT_ARCH_I386, 54, 0, TIOCGWINSZ, SECCOMP_RET_ALLOW},
	        {AUDIT_ARCH_I386, 362, 3, 0, SECCOMP_RET_USER_NOTIF},     /* connect */
	        {AUDIT_ARCH_I386, 370, 3, 0, SECCOMP_RET_USER_NOTIF},     /* sendmsg */
	        {AUDIT_ARCH_I386, 345, 3, 0, SECCOMP_RET_USER_NOTIF},     /* sendmmsg */
	        {AUDIT_ARCH_I386, 435, 0, 0, SECCOMP_RET_ERRNO | ENOSYS}, /* clone3 */
	        {AUDIT_ARCH_I386, 6, 3, 0, SECCOMP_RET_ALLOW},            /* close */
	};
	static struct seccomp_judge judge;
	int rc = seccomp_judge_read(&judge, confine, NULL);

	(void)state;
	if (rc < 0) {
		print_message("skipped: the kernel does not show the filter (%s)\n", strerror(-rc));
		skip();
	}
	assert_int_equal(rc, 0);
	assert_true(judge.count >= 2);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		uint32_t answer =
		        seccomp_judge(&judge, calls[i].arch, calls[i].nr, calls[i].a, calls[i].b);

		if (answer != calls[i].answer)
			print_error("call %d of %x: %x, not %x\n", calls[i].nr,
			        (unsigned)calls[i].arch, (unsigned)answer,
			        (unsigned)calls[i].answer);
		assert_int_equal(answer, calls[i].answer);
	}
}

static void not_by_32_bit_calls_either(void **state)
{
	(void)state;
	skip_without_32_bit_calls();
	assert_true(left_with(in_child(filtered32, NULL), 0));
}
#endif

/* The child is under the filter and asks; the parent, which has the same descriptors,
 * answers. */
struct asked {
	int pipe[2];
	long results[16];
};

static void ask_child(struct asked *shared)
{
	struct iovec piece = {(void *)"x", 1};
	struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};
	struct mmsghdr many = {.msg_hdr = m};
	struct sockaddr_un to = {AF_UNIX, "/nonexistent"};
	int pair[2], listener;
	size_t n = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	        socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0)
		_exit(99);
	listener = jail_guest_ask();
	if (write(shared->pipe[1], &listener, sizeof(listener)) != sizeof(listener) || listener < 0)
		_exit(98);
#define ASK(call) shared->results[n++] = (call) < 0 ? -errno : 0
	/* These are not asked about. */
	ASK(send(pair[0], "x", 1, 0));
	ASK(sendto(pair[0], "x", 1, 0, NULL, 0));
	ASK(write(pair[0], "x", 1));
	ASK(syscall(SYS_clone3, NULL, 0));
	ASK(syscall(SYS_clone, CLONE_THREAD | CLONE_FILES, NULL, NULL, NULL, NULL)); /* EINVAL */
	ASK(syscall(SYS_seccomp, 1, 8, NULL));
	/* These are. */
	ASK(connect(pair[0], (struct sockaddr *)&to, sizeof(to)));
	ASK(syscall(SYS_connect, pair[0], NULL, 0L));
	ASK(sendto(pair[0], "x", 1, 0, (struct sockaddr *)&to, sizeof(to)));
	ASK(syscall(SYS_sendto, pair[0], "x", 1, 0, 1L << 32, 0));
	ASK(sendmsg(pair[0], &m, 0));
	ASK(sendmmsg(pair[0], &many, 1, 0));
	ASK(syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL));
	_exit((int)n);
}

static const enum jail_call asked_about[] = {JAIL_CALL_CONNECT, JAIL_CALL_CONNECT, JAIL_CALL_SENDTO,
        JAIL_CALL_SENDTO, JAIL_CALL_SENDMSG, JAIL_CALL_SENDMMSG, JAIL_CALL_CLONE};

/* Answers count of them with EXFULL, an error that the kernel has for none of these. */
static size_t answer_asked(int listener, size_t count)
{
	struct {
		struct seccomp_notif q;
		uint8_t more[256];
	} room;
	size_t right = 0;

	for (size_t i = 0; i < count; i++) {
		struct seccomp_notif_resp r = {.error = -EXFULL};
		bool native = false;

		memset(&room, 0, sizeof(room));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &room.q) != 0)
			return right;
		right += jail_call_find(room.q.data.arch, (uint32_t)room.q.data.nr, &native) ==
		                 asked_about[i] &&
		         native;
		r.id = room.q.id;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
	}
	return right;
}

static struct asked *asked_new(pid_t *pid, int *listener)
{
	struct asked *shared = mmap(
	        NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(shared != MAP_FAILED);
	assert_int_equal(pipe(shared->pipe), 0);
	*pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	assert_true(*pid >= 0);
	if (*pid == 0)
		ask_child(shared);
	assert_int_equal(read(shared->pipe[0], listener, sizeof(*listener)), sizeof(*listener));
	assert_true(*listener >= 0);
	return shared;
}

static void calls_that_name_a_socket_are_asked_about(void **state)
{
	static const long expected[] = {0, 0, 0, -ENOSYS, -EINVAL, -EFAULT, -EXFULL, -EXFULL,
	        -EXFULL, -EXFULL, -EXFULL, -EXFULL, -EXFULL};
	size_t count = sizeof(expected) / sizeof(expected[0]);
	int listener, status;
	struct asked *shared;
	pid_t pid;

	(void)state;
	shared = asked_new(&pid, &listener);
	assert_int_equal(answer_asked(listener, 7), 7);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(left_with(status, (int)count));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(shared->results[i], expected[i]);
	close(listener);
}

static void without_an_answer_they_fail(void **state)
{
	int listener, status;
	struct asked *shared;
	pid_t pid;

	(void)state;
	shared = asked_new(&pid, &listener);
	close(listener); /* the child has the same table: nobody holds it any more */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (size_t i = 6; i < 13; i++)
		assert_int_equal(shared->results[i], -ENOSYS);
}

static int asks_twice(void *context)
{
	(void)context;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || jail_guest_ask() < 0)
		return 99;
	return jail_guest_ask() == -EBUSY ? 0 : 1;
}

static void nobody_asks_somebody_else(void **state)
{
	(void)state;
	assert_true(left_with(in_child(asks_twice, NULL), 0));
}

static void other_calls_have_no_name(void **state)
{
	bool native = true;

	(void)state;
	assert_int_equal(jail_call_find(0, 42, &native), JAIL_CALL_OTHER);
	assert_false(native);
#ifdef __x86_64__
	assert_int_equal(
	        jail_call_find(AUDIT_ARCH_X86_64, 0x40000000 | 42, &native), JAIL_CALL_OTHER);
	assert_int_equal(jail_call_find(AUDIT_ARCH_X86_64, 43, &native), JAIL_CALL_OTHER);
	assert_int_equal(jail_call_find(AUDIT_ARCH_I386, 362, &native), JAIL_CALL_CONNECT);
	assert_false(native);
	assert_int_equal(jail_call_find(AUDIT_ARCH_X86_64, 42, &native), JAIL_CALL_CONNECT);
	assert_true(native);
#endif
}

#ifdef __x86_64__
static int asks32(void *context)
{
	int listener;

	(void)context;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || (listener = jail_guest_ask()) < 0)
		return 99;
	close(listener);                                /* what is asked about fails at once */
	return call32(362, 1000, 0, 0) != -ENOSYS   ? 1 /* connect */
	       : call32(370, 1000, 0, 0) != -ENOSYS ? 2 /* sendmsg */
	       : call32(345, 1000, 0, 0) != -ENOSYS ? 3 /* sendmmsg */
	       : call32(102, 3, 0, 0) != -ENOSYS    ? 4 /* socketcall */
	       : call32(435, 0, 0, 0) != -ENOSYS    ? 5 /* clone3 */
	       : call32(6, 1000, 0, 0) != -EBADF    ? 6 /* close: none of these */
	                                            : 0;
}

static void by_32_bit_calls_too(void **state)
{
	(void)state;
	skip_without_32_bit_calls();
	assert_true(left_with(in_child(asks32, NULL), 0));
}
#endif

static int bounded(void *context)
{
	static const unsigned never[] = {CAP_SYS_ADMIN, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT,
	        CAP_SYS_TIME, CAP_BPF, CAP_PERFMON, CAP_SYSLOG, CAP_MKNOD, CAP_AUDIT_CONTROL,
	        CAP_AUDIT_READ, CAP_AUDIT_WRITE, CAP_MAC_ADMIN, CAP_MAC_OVERRIDE,
	        CAP_CHECKPOINT_RESTORE, CAP_LINUX_IMMUTABLE, CAP_SYS_TTY_CONFIG, CAP_WAKE_ALARM,
	        CAP_BLOCK_SUSPEND, CAP_SYS_PACCT};
	struct capabilities now;

	(void)context;
	if (!capabilities_have(CAP_SETPCAP))
		return 77;
	if (jail_guest_bound() != 0 || capabilities_get(&now) != 0)
		return 99;
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (((now.permitted | now.effective | capabilities_bounding_set()) >> never[i] &
		            1) != 0)
			return 1;
	return now.inheritable == 0 ? 0 : 2;
}

static void root_inside_has_no_power_over_the_machine(void **state)
{
	int status = in_child(bounded, NULL);

	(void)state;
	if (left_with(status, 77))
		skip();
	assert_true(left_with(status, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(only_families_of_the_namespace),
#ifdef __x86_64__
	        cmocka_unit_test(the_filter_judges_32_bit_calls),
	        cmocka_unit_test(not_by_32_bit_calls_either),
#endif
	        cmocka_unit_test(calls_that_name_a_socket_are_asked_about),
	        cmocka_unit_test(without_an_answer_they_fail),
	        cmocka_unit_test(nobody_asks_somebody_else),
	        cmocka_unit_test(other_calls_have_no_name),
#ifdef __x86_64__
	        cmocka_unit_test(by_32_bit_calls_too),
#endif
	        cmocka_unit_test(root_inside_has_no_power_over_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
