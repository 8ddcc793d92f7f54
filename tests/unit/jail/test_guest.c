/* SPDX-License-Identifier: Apache-2.0 */
/* The guarded command's limits: no way around the network namespace, no capability over anything
 * but its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail_child.h"
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

static int filtered32(void *context)
{
	long rc;

	(void)context;
	if (call32(20, 0, 0, 0) != getpid()) /* no 32-bit calls in this kernel */
		return 77;
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

static void not_by_32_bit_calls_either(void **state)
{
	int status = in_child(filtered32, NULL);

	(void)state;
	if (left_with(status, 77))
		skip();
	assert_true(left_with(status, 0));
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
	        cmocka_unit_test(not_by_32_bit_calls_either),
#endif
	        cmocka_unit_test(root_inside_has_no_power_over_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
