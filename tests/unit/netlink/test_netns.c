/* SPDX-License-Identifier: Apache-2.0 */
/* Making, visiting and hardening network namespaces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "privileges.h"
#include "vethguard/netlink/netns.h"
#include "sysctl.h"

static ino_t identity(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static ino_t identity_here(void)
{
	int fd = netns_current();
	ino_t id = identity(fd);

	close(fd);
	return id;
}

static void a_new_one_is_another_and_we_stay(void **state)
{
	ino_t before = identity_here();
	int a = netns_new(), b = netns_new();

	(void)state;
	assert_true(a >= 0 && b >= 0);
	assert_int_equal(identity_here(), before);
	assert_int_not_equal(identity(a), before);
	assert_int_not_equal(identity(a), identity(b));
	assert_int_equal(fcntl(a, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(a);
	close(b);
}

static int tell_identity(void *context)
{
	*(ino_t *)context = identity_here();
	return 42;
}

static void run_is_inside_and_comes_back(void **state)
{
	ino_t before = identity_here(), inside = 0;
	int fd = netns_new();

	(void)state;
	assert_int_equal(netns_run(fd, tell_identity, &inside), 42);
	assert_int_equal(inside, identity(fd));
	assert_int_equal(identity_here(), before);
	close(fd);
}

static int visit_again(void *context)
{
	const int *fds = context;
	ino_t outer = identity_here(), inner = 0;

	return netns_run(fds[1], tell_identity, &inner) == 42 && inner == identity(fds[1]) &&
	                       identity_here() == outer && outer == identity(fds[0])
	               ? 7
	               : 0;
}

static void a_kept_home_is_come_back_to(void **state)
{
	ino_t before = identity_here(), inside = 0;
	int home = netns_current(), fds[] = {netns_new(), netns_new()}, status;
	pid_t pid;

	(void)state;
	netns_keep_home(home);
	assert_int_equal(netns_run(fds[0], tell_identity, &inside), 42);
	assert_int_equal(inside, identity(fds[0]));
	assert_int_equal(identity_here(), before);
	assert_int_equal(netns_run(fds[0], visit_again, fds), 7); /* from inside: back to there */
	assert_int_equal(identity_here(), before);
	pid = fork(); /* a child that has moved stays where it is */
	if (pid == 0) {
		ino_t own;

		if (unshare(CLONE_NEWNET) < 0)
			_exit(1);
		own = identity_here();
		_exit(netns_run(fds[0], tell_identity, &inside) == 42 && identity_here() == own
		                ? 0
		                : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	netns_keep_home(-1);
	close(home);
	assert_int_equal(netns_run(fds[1], tell_identity, &inside), 42);
	assert_int_equal(identity_here(), before);
	netns_keep_home(home); /* closed: nothing is kept */
	assert_int_equal(netns_run(fds[1], tell_identity, &inside), 42);
	assert_int_equal(identity_here(), before);
	close(fds[0]);
	close(fds[1]);
}

/* In a user namespace of its own, which has no right to the network namespace that it came from. */
static int visit_without_a_way_back(void)
{
	ino_t before = identity_here(), inside = 0;
	int fd;

	if (unshare(CLONE_NEWUSER) < 0)
		return 1;
	fd = netns_current();
	if (setns(fd, CLONE_NEWNET) == 0)
		return 2;
	close(fd);
	fd = netns_new();
	if (fd < 0 || netns_run(fd, tell_identity, &inside) != 42)
		return 3;
	return inside == identity(fd) && inside != before && identity_here() == before ? 0 : 4;
}

static void who_cannot_come_back_goes_by_a_thread(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(visit_without_a_way_back());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int must_run(void *context)
{
	*(bool *)context = true;
	return 0;
}

/* A caller without even the descriptor that leads back. */
static void out_of_descriptors_it_goes_by_a_thread(void **state)
{
	struct rlimit before, none;
	ino_t here = identity_here();
	int fd = netns_new(), result;
	bool ran = false;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	result = netns_run(fd, must_run, &ran);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(result, 0);
	assert_true(ran);
	assert_int_equal(identity_here(), here);
	close(fd);
}

static int must_not_run(void *context)
{
	*(bool *)context = true;
	return 0;
}

static void run_refuses_what_is_no_namespace(void **state)
{
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int other = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	bool ran = false;

	(void)state;
	assert_int_equal(netns_run(-1, must_not_run, &ran), -EBADF);
	assert_int_equal(netns_run(1000000, must_not_run, &ran), -EBADF);
	assert_int_equal(netns_run(file, must_not_run, &ran), -EINVAL);
	assert_int_equal(netns_run(other, must_not_run, &ran), -EINVAL);
	assert_false(ran);
	close(file);
	close(other);
}

static int read_sysctl(const char *name)
{
	char path[128];
	FILE *f;
	int value = -1000;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &value), 1);
	fclose(f);
	return value;
}

static int write_sysctls(void *context)
{
	char name[400] = "ipv4/";

	(void)context;
	assert_int_equal(write_sysctl("ipv4/ip_default_ttl", "77"), 0);
	assert_int_equal(read_sysctl("ipv4/ip_default_ttl"), 77);
	assert_int_equal(write_sysctl("ipv4/ip_default_ttl", "-1"), -EINVAL);
	assert_int_equal(write_sysctl("ipv4/no_such_entry", "1"), -ENOENT);
	assert_int_equal(write_sysctl("ipv4/conf", "1"), -EISDIR);
	assert_int_equal(write_sysctl("../kernel/hostname", "x"), -EINVAL);
	memset(name + 5, 'a', sizeof(name) - 6);
	assert_int_equal(write_sysctl(name, "1"), -ENAMETOOLONG);
	return 0;
}

static void sysctls_are_the_namespaces_own(void **state)
{
	int before = read_sysctl("ipv4/ip_default_ttl");
	int fd = netns_new();

	(void)state;
	assert_int_equal(netns_run(fd, write_sysctls, NULL), 0);
	assert_int_equal(read_sysctl("ipv4/ip_default_ttl"), before);
	close(fd);
}

static int harden(void *context)
{
	static const struct {
		const char *name;
		int value;
	} expected[] = {
	        {"ipv4/ip_forward", 0},
	        {"ipv4/conf/all/rp_filter", 1},
	        {"ipv4/conf/lo/accept_redirects", 0},
	        {"ipv4/conf/default/send_redirects", 0},
	        {"ipv4/conf/default/accept_source_route", 0},
	        {"ipv4/conf/default/arp_ignore", 1},
	        {"ipv4/icmp_ratelimit", 0},
	        {"ipv6/conf/all/forwarding", 0},
	        {"ipv6/conf/default/accept_ra", 0},
	        {"ipv6/conf/default/accept_redirects", 0},
	        {"ipv6/conf/default/dad_transmits", 0},
	};

	(void)context;
	assert_int_equal(write_sysctl("ipv4/ip_forward", "1"), 0);
	assert_int_equal(write_sysctl("ipv6/conf/all/forwarding", "1"), 0);
	assert_int_equal(netns_harden_gate(), 0);
	assert_int_equal(netns_harden_gate(), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(read_sysctl(expected[i].name), expected[i].value);
	assert_int_equal(system("ip link add v0 type veth peer name v1"), 0);
	assert_int_equal(read_sysctl("ipv4/conf/v0/rp_filter"), 1);
	assert_int_equal(read_sysctl("ipv6/conf/v0/accept_ra"), 0);
	assert_int_equal(read_sysctl("ipv4/conf/v0/forwarding"), 0);
	return 0;
}

static int harden_again(void *context)
{
	static const char *const changed[] = {"ipv4/ip_forward", "ipv4/conf/v0/forwarding",
	        "ipv6/conf/v0/forwarding", "ipv4/conf/v0/rp_filter", "ipv4/conf/all/route_localnet",
	        "ipv6/conf/v0/accept_redirects", "ipv4/conf/v0/accept_source_route"};

	(void)context;
	assert_int_equal(netns_harden_gate(), 0);
	assert_int_equal(system("ip link add v0 type veth peer name v1"), 0);
	assert_int_equal(netns_harden_gate_again("v0"), 0);
	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
		int was = read_sysctl(changed[i]);

		assert_int_equal(write_sysctl(changed[i], was == 0 ? "1" : "0"), 0);
		if (netns_harden_gate_again("v0") != 1 || read_sysctl(changed[i]) != was)
			fail_msg("%s is not mended", changed[i]);
		assert_int_equal(netns_harden_gate_again("v0"), 0);
	}
	assert_int_equal(system("ip link del v0"), 0);
	assert_int_equal(netns_harden_gate_again("v0"), 0);
	return 0;
}

static void what_was_changed_is_mended(void **state)
{
	int fd = netns_new();

	(void)state;
	assert_int_equal(netns_run(fd, harden_again, NULL), 0);
	close(fd);
}

static void a_hardened_gate_forwards_nothing(void **state)
{
	int fd = netns_new();

	(void)state;
	assert_int_equal(netns_run(fd, harden, NULL), 0);
	close(fd);
}

#define LINK_LOCAL "ip -6 address show dev v0 scope link"

/* Asks the kernel again and again, 10 s and more. */
static bool comes_true(const char *condition)
{
	char command[512];

	snprintf(command, sizeof(command),
	        "for i in $(seq 1000); do { %s; } && exit 0; sleep 0.01; done; exit 1", condition);
	return system(command) == 0;
}

static int settle(void *context)
{
	const bool *settled = context;

	/* With this setting a kernel left alone looks for duplicates for a quarter of an hour,
	 * however slow the machine is. */
	assert_int_equal(write_sysctl("ipv6/conf/default/dad_transmits", "1000"), 0);
	assert_int_equal(system("ip link add v0 type veth peer name v1"), 0);
	assert_int_equal(system("ip link set v1 up"), 0);
	if (*settled)
		netns_settle_link("v0");
	assert_int_equal(system("ip link set v0 up"), 0);
	/* The kernel gives the address when its own work queue has seen the carrier, and takes the
	 * mark from it in a further turn. */
	assert_true(comes_true(LINK_LOCAL " | grep -q fe80:"));
	if (*settled)
		assert_true(comes_true("test -z \"$(" LINK_LOCAL " tentative)\""));
	else /* else this test shows nothing */
		assert_int_not_equal(system("test -z \"$(" LINK_LOCAL " tentative)\""), 0);
	return 0;
}

static void a_settled_link_has_its_address_at_once(void **state)
{
	bool settled = true, left_alone = false;
	int fd = netns_new(), other = netns_new();

	(void)state;
	assert_int_equal(netns_run(fd, settle, &settled), 0);
	assert_int_equal(netns_run(other, settle, &left_alone), 0);
	netns_settle_link("absent");
	netns_settle_link("../../all");
	close(fd);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_new_one_is_another_and_we_stay),
	        cmocka_unit_test(run_is_inside_and_comes_back),
	        cmocka_unit_test(a_kept_home_is_come_back_to),
	        cmocka_unit_test(who_cannot_come_back_goes_by_a_thread),
	        cmocka_unit_test(out_of_descriptors_it_goes_by_a_thread),
	        cmocka_unit_test(run_refuses_what_is_no_namespace),
	        cmocka_unit_test(sysctls_are_the_namespaces_own),
	        cmocka_unit_test(a_hardened_gate_forwards_nothing),
	        cmocka_unit_test(what_was_changed_is_mended),
	        cmocka_unit_test(a_settled_link_has_its_address_at_once),
	};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
