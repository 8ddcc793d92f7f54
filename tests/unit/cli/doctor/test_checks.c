/* SPDX-License-Identifier: Apache-2.0 */
/* Doctor's checks on machines that lack what they look for: what they say, and how grave it is.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define RELEASE "6.1.0-test"

static struct doctor_finding f;
static char root[] = "/tmp/vethguard-test-doctor-XXXXXX";

static struct doctor_finding *anew(void)
{
	memset(&f, 0, sizeof(f));
	return &f;
}

static void expect(const char *subject, enum doctor_state state, const char *text, bool remedy)
{
	assert_string_equal(f.subject, subject);
	if (f.state != state || strstr(f.text, text) == NULL || (f.remedy[0] != '\0') != remedy)
		fail_msg("%s: state %d, \"%s\", \"%s\"", subject, f.state, f.text, f.remedy);
}

/* A file under the root, with the directories to it; its path is borrowed until the next call. */
static const char *put(const char *name, const char *text)
{
	static char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *p = path + sizeof(root); (p = strchr(p, '/')) != NULL; *p++ = '/') {
		*p = '\0';
		mkdir(path, 0755);
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static int machine_set_up(void **state)
{
	(void)state;
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	return mkdtemp(root) == NULL;
}

static int machine_tear_down(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void kernels(void **state)
{
	static const char *const old[] = {"5.14.99", "5.9", "4.19.0-1", "0.0"};
	static const char *const recent[] = {"5.15.0", "5.15", "6.0.1-rc1", "10.1"};
	static const char *const odd[] = {NULL, "", "6", "x.y", ".15"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		doctor_kernel(anew(), old[i]);
		expect("kernel", DOCTOR_BROKEN, old[i], true);
		doctor_kernel(anew(), recent[i]);
		expect("kernel", DOCTOR_OK, recent[i], false);
	}
	for (size_t i = 0; i < 5; i++) {
		doctor_kernel(anew(), odd[i]);
		expect("kernel", DOCTOR_NOTE, "cannot be read", false);
	}
}

static void modules_that_nothing_tells_of(void **state)
{
	(void)state;
	doctor_modules(anew(), root, RELEASE);
	expect("modules", DOCTOR_NOTE, "does not say what is built in", false);
	doctor_modules(anew(), root, NULL);
	expect("modules", DOCTOR_NOTE, "does not say what is built in", false);
	put("lib/modules/" RELEASE "/modules.builtin", "");
	doctor_modules(anew(), root, RELEASE);
	expect("modules", DOCTOR_NOTE, "does not say what is built in", false);
}

static void modules_that_are_missing_are_named(void **state)
{
	(void)state;
	put("lib/modules/" RELEASE "/modules.builtin",
	        "kernel/drivers/net/veth.ko\nkernel/net/netfilter/nf_tables.ko\n");
	put("lib/modules/" RELEASE "/modules.dep",
	        "kernel/net/netfilter/nfnetlink_log.ko.xz: a.ko\n");
	doctor_modules(anew(), root, RELEASE);
	expect("modules", DOCTOR_NOTE, "not seen: nft_tproxy nft_log;", false);
	put("sys/module/nft_log/version", ""); /* loaded */
	doctor_modules(anew(), root, RELEASE);
	expect("modules", DOCTOR_NOTE, "not seen: nft_tproxy;", false);
	/* A longer name is another module; so is one of another kernel. */
	put("lib/modules/" RELEASE "/modules.dep",
	        "kernel/nfnetlink_log.ko:\nkernel/my_nft_tproxy.ko:\nkernel/nft_tproxy_x.ko:\n");
	put("lib/modules/6.2.0/modules.dep", "kernel/nft_tproxy.ko:\n");
	doctor_modules(anew(), root, RELEASE);
	expect("modules", DOCTOR_NOTE, "not seen: nft_tproxy;", false);
	doctor_modules(anew(), root, "6.2.0");
	expect("modules", DOCTOR_NOTE, "not seen: veth nf_tables nfnetlink_log;", false);
}

static void modules_that_are_all_there(void **state)
{
	(void)state;
	put("lib/modules/" RELEASE "/modules.dep",
	        "k/veth.ko:\nk/nf_tables.ko.zst:\nk/nft_tproxy.ko: "
	        "k/nf_tables.ko\nk/nft_log.ko:\n");
	put("sys/module/nfnetlink_log/x", "");
	doctor_modules(anew(), root, RELEASE);
	expect("modules", DOCTOR_OK, "veth, nf_tables, tproxy, NFLOG", false);
}

static void landlock(void **state)
{
	(void)state;
	doctor_landlock(anew(), 0);
	expect("landlock", DOCTOR_NOTE, "not in this kernel", true);
	for (int abi = 1; abi < 4; abi++) {
		doctor_landlock(anew(), abi);
		expect("landlock", DOCTOR_NOTE, "files only", false);
	}
	doctor_landlock(anew(), 4);
	expect("landlock", DOCTOR_OK, "ABI 4: files and TCP ports", false);
}

static void seccomp(void **state)
{
	(void)state;
	doctor_seccomp(anew(), "/nonexistent/actions_avail");
	expect("seccomp", DOCTOR_BROKEN, "cannot filter", true);
	doctor_seccomp(anew(), put("actions", ""));
	expect("seccomp", DOCTOR_BROKEN, "cannot filter", true);
	doctor_seccomp(anew(), put("actions", "kill_thread trap errno trace log allow\n"));
	expect("seccomp", DOCTOR_BROKEN, "cannot filter", true);
	doctor_seccomp(anew(), put("actions", "kill_process kill_thread trap errno allow\n"));
	expect("seccomp", DOCTOR_BROKEN, "cannot report", true);
	doctor_seccomp(anew(), put("actions", "kill_process trap errno user_notif allow\n"));
	expect("seccomp", DOCTOR_OK, "can be filtered", false);
}

static void limits_of(rlim_t memory, rlim_t files)
{
	const struct rlimit m = {memory, RLIM_INFINITY}, n = {files, RLIM_INFINITY};

	doctor_limits(anew(), &m, &n);
}

static void limits(void **state)
{
	(void)state;
	limits_of(1u << 20, 4096);
	expect("limits", DOCTOR_OK, "locked memory 1024 KiB, open files 4096", false);
	limits_of(RLIM_INFINITY, RLIM_INFINITY);
	expect("limits", DOCTOR_OK, "locked memory", false);
	limits_of((1u << 20) - 1, 4096);
	expect("limits", DOCTOR_NOTE, "1023 KiB", true);
	limits_of(DOCTOR_MEMLOCK_LEAST, 4096);
	expect("limits", DOCTOR_NOTE, "800 KiB", true);
	limits_of(DOCTOR_MEMLOCK_LEAST - 1, 4096);
	expect("limits", DOCTOR_BROKEN, "799 KiB", true);
	limits_of(0, 0); /* the graver of the two is told */
	expect("limits", DOCTOR_BROKEN, "locked memory 0 KiB", true);
	assert_non_null(strstr(f.remedy, "memlock"));
	limits_of(1u << 20, 4095);
	expect("limits", DOCTOR_NOTE, "open files 4095", true);
	assert_non_null(strstr(f.remedy, "nofile"));
}

static void shares(void **state)
{
	char path[] = "/tmp/test_doctor_shares_XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "1\n", 2), 2);
	doctor_shares(anew(), path);
	expect("shares", DOCTOR_OK, "by session", false);
	assert_int_equal(pwrite(fd, "0", 1, 0), 1);
	doctor_shares(anew(), path);
	expect("shares", DOCTOR_NOTE, "by thread", true);
	assert_non_null(strstr(f.remedy, "sched_autogroup_enabled"));
	close(fd);
	unlink(path);
	doctor_shares(anew(), path); /* a kernel without */
	expect("shares", DOCTOR_NOTE, "by thread", false);
}

static void vsock(void **state)
{
	(void)state;
	doctor_vsock(anew(), EAFNOSUPPORT);
	expect("vsock", DOCTOR_OK, "not available", false);
	doctor_vsock(anew(), 0);
	expect("vsock", DOCTOR_NOTE, "attached sandboxes", true);
	assert_non_null(strstr(f.remedy, "seccomp"));
}

static void resolvers(void **state)
{
	(void)state;
	doctor_resolver(anew(), "/nonexistent/resolv.conf");
	expect("resolver", DOCTOR_BROKEN, "No such file", true);
	doctor_resolver(anew(), put("resolv.conf", ""));
	expect("resolver", DOCTOR_NOTE, "names none", false);
	doctor_resolver(anew(), put("resolv.conf", "# nameserver 192.0.2.1\nsearch test\n"));
	expect("resolver", DOCTOR_NOTE, "names none", false);
	doctor_resolver(anew(), put("resolv.conf", "nameserver 192.0.2.1\nnameserver 192.0.2.2\n"));
	expect("resolver", DOCTOR_OK, "2 in /etc/resolv.conf", false);
}

static void what_is_too_long_is_cut(void **state)
{
	static char text[2 * DOCTOR_TEXT_MAX];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	doctor_tell(anew(), DOCTOR_NOTE, "%s", text);
	doctor_remedy(&f, text);
	assert_int_equal(strlen(f.text), DOCTOR_TEXT_MAX - 1);
	assert_int_equal(strlen(f.remedy), DOCTOR_TEXT_MAX - 1);
}

#define MACHINE(name) cmocka_unit_test_setup_teardown(name, machine_set_up, machine_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(kernels),
	        MACHINE(modules_that_nothing_tells_of),
	        MACHINE(modules_that_are_missing_are_named),
	        MACHINE(modules_that_are_all_there),
	        cmocka_unit_test(landlock),
	        MACHINE(seccomp),
	        cmocka_unit_test(limits),
	        cmocka_unit_test(shares),
	        cmocka_unit_test(vsock),
	        MACHINE(resolvers),
	        cmocka_unit_test(what_is_too_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
