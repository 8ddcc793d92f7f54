/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's NSS database with a certutil that this test plays: what it is started with and as, and
 * that whatever it or the database does, the original stays as it is. Everything happens in a mount
 * namespace of its own; skipped where none can be had.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/guest/mounts.h"
#include "cli/run/namespaces.h"

#define HOME "/tmp/home"
#define DATABASE HOME "/.pki/nssdb"
#define CA_TEXT "the CA's certificate\n"
#define UID 4711 /* of the command */

/* Tells in its database how it was called and what it may do, then obeys pkcs11.txt. */
static const char certutil[] = "#!/bin/sh\n"
                               "d=${2#sql:}\n"
                               "r() { while read -r x; do echo \"$x\"; done; }\n"
                               "{ echo \"$1 $3 $4 $5 $6 $7 $8 $9\"; r <\"${10}\"; } >$d/called\n"
                               "[ -O $d ] && echo own >>$d/called\n"
                               "[ -z \"$HOME$SECRET\" ] && echo empty >>$d/called\n"
                               "echo added >>$d/cert9.db\n"
                               "read -r order <$d/pkcs11.txt\n"
                               "case $order in\n"
                               "fail) exit 3 ;;\n"
                               "die) kill -KILL $$ ;;\n"
                               "wander) echo x >" HOME "/../other/x && exit 0; exit 0 ;;\n"
                               "esac\n"
                               "exit 0\n";

static struct run_user user;
static struct guest_plan plan;
static struct mounts m;

static void put(const char *path, const char *text)
{
	assert_int_equal(mounts_write(path, slice_from_string(text), 0644), 0);
}

static void own(const char *path)
{
	if (!plan.rootless)
		assert_int_equal(lchown(path, UID, UID), 0);
}

static void directory(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
	own(path);
}

static void expect_file(const char *path, const char *text)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(mounts_read(path, &b), 0);
	assert_int_equal(buf_append(&b, "", 1), 0);
	assert_string_equal((const char *)buf_bytes(&b), text);
	buf_fini(&b);
}

/* A home with a database whose pkcs11.txt is an order to certutil. */
static void database(const char *order)
{
	directory(HOME);
	directory(HOME "/.pki");
	directory(DATABASE);
	put(DATABASE "/cert9.db", "old\n");
	put(DATABASE "/pkcs11.txt", order);
	put(DATABASE "/other", "not of NSS");
}

static int tmpfs(const char *at)
{
	return mount("tmpfs", at, "tmpfs", MS_NOSUID, "mode=755");
}

/* Over /usr/bin: the shell and, where asked, certutil; nothing else. */
static void programs(bool with_certutil)
{
	assert_int_equal(mkdir("/tmp/bin", 0755), 0);
	assert_int_equal(tmpfs("/tmp/bin"), 0);
	put("/tmp/bin/sh", "");
	assert_int_equal(mount("/usr/bin/sh", "/tmp/bin/sh", NULL, MS_BIND, NULL), 0);
	if (with_certutil)
		assert_int_equal(
		        mounts_write("/tmp/bin/certutil", slice_from_string(certutil), 0755), 0);
	assert_int_equal(mount("/tmp/bin", "/usr/bin", NULL, MS_MOVE, NULL), 0);
}

static int machine_set_up(void **state)
{
	(void)state;
	m = (struct mounts){.plan = &plan};
	setenv("SECRET", "of the environment", 1);
	return tmpfs("/tmp") != 0 || tmpfs(MOUNTS_SCRATCH) != 0;
}

/* /proc comes back: the sanitizers look at it. */
static int machine_tear_down(void **state)
{
	(void)state;
	umount2(DATABASE, MNT_DETACH);
	umount2("/usr/bin", MNT_DETACH);
	return umount2(MOUNTS_SCRATCH, MNT_DETACH) != 0 || umount2("/tmp", MNT_DETACH) != 0;
}

static void expect_original(void)
{
	expect_file(DATABASE "/cert9.db", "old\n");
	expect_file(DATABASE "/other", "not of NSS");
	assert_int_equal(access(DATABASE "/called", F_OK), -1);
}

static void a_copy_gets_the_ca_and_hides_the_original(void **state)
{
	(void)state;
	database("go\n");
	programs(true);
	assert_int_equal(nss_store_mount(&m), 0);
	expect_file(DATABASE "/called", "-d -A -n vethguard -t C,, -a -i\n" CA_TEXT "own\nempty\n");
	expect_file(DATABASE "/cert9.db", "old\nadded\n");
	assert_int_equal(access(DATABASE "/other", F_OK), -1);
	assert_int_equal(umount2(DATABASE, MNT_DETACH), 0);
	expect_original();
}

static void without_a_database_nothing_happens(void **state)
{
	(void)state;
	programs(true);
	assert_int_equal(nss_store_mount(&m), 0); /* not even a home */
	directory(HOME);
	assert_int_equal(nss_store_mount(&m), 0);
	assert_int_equal(access(DATABASE, F_OK), -1);
	directory(HOME "/.pki");
	put(DATABASE, "a file");
	assert_int_equal(nss_store_mount(&m), 0);
	expect_file(DATABASE, "a file");
	assert_int_equal(m.next, 0);
}

static void without_certutil_the_database_stays(void **state)
{
	(void)state;
	database("go\n");
	programs(false);
	assert_int_equal(nss_store_mount(&m), 0);
	expect_original();
	assert_int_equal(m.next, 0);
}

static void where_certutil_fails_the_database_stays(void **state)
{
	(void)state;
	database("fail\n");
	programs(true);
	assert_int_equal(nss_store_mount(&m), -EIO);
	expect_original();
}

static void where_certutil_dies_the_database_stays(void **state)
{
	(void)state;
	database("die\n");
	programs(true);
	assert_int_equal(nss_store_mount(&m), -EIO);
	expect_original();
}

/* A link in the way to the database could make us cover any directory of the machine. */
static void links_are_not_followed(void **state)
{
	static const char *const lead[] = {"elsewhere", HOME "/elsewhere", "../home/elsewhere"};

	(void)state;
	database("go\n");
	programs(true);
	assert_int_equal(rename(HOME "/.pki", HOME "/elsewhere"), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(symlink(lead[i], HOME "/.pki"), 0);
		assert_int_equal(nss_store_mount(&m), 0);
		expect_original();
		assert_int_equal(unlink(HOME "/.pki"), 0);
	}
	directory(HOME "/.pki");
	assert_int_equal(symlink("../elsewhere/nssdb", DATABASE), 0);
	assert_int_equal(nss_store_mount(&m), 0);
	expect_original();
	assert_int_equal(m.next, 0);
}

/* Files are read with the command's rights, so that a link to what only root may read gives
 * nothing. */
static void what_the_user_may_not_read_is_not_copied(void **state)
{
	(void)state;
	if (plan.rootless)
		skip(); /* no second user */
	database("go\n");
	programs(true);
	assert_int_equal(mounts_write("/tmp/secret", SLICE("of root\n"), 0600), 0);
	assert_int_equal(unlink(DATABASE "/cert9.db"), 0);
	assert_int_equal(symlink("/tmp/secret", DATABASE "/cert9.db"), 0);
	assert_int_equal(nss_store_mount(&m), 0);
	expect_file(DATABASE "/cert9.db", "added\n");
	expect_file("/tmp/secret", "of root\n");
}

static void certutil_writes_with_the_users_rights(void **state)
{
	(void)state;
	if (plan.rootless)
		skip();
	database("wander\n");
	assert_int_equal(mkdir("/tmp/other", 0755), 0); /* of root */
	programs(true);
	assert_int_equal(nss_store_mount(&m), 0);
	assert_int_equal(access("/tmp/other/x", F_OK), -1);
}

static void what_is_no_file_is_not_copied(void **state)
{
	(void)state;
	database("go\n");
	programs(true);
	assert_int_equal(unlink(DATABASE "/cert9.db"), 0);
	assert_int_equal(mkfifo(DATABASE "/cert9.db", 0644), 0);
	assert_int_equal(nss_store_mount(&m), 0); /* and nobody waits at it */
	expect_file(DATABASE "/cert9.db", "added\n");
}

/* False: namespaces cannot be had here. */
static bool enter(void)
{
	struct failure failure;
	struct privilege p;

	if (privilege_enter(&p, &failure) != 0)
		return false;
	user = (struct run_user){
	        .uid = UID, .gid = UID, .group_count = p.rootless ? -1 : 0, .home = HOME};
	plan.user = &user;
	plan.rootless = p.rootless;
	plan.root_pem = SLICE(CA_TEXT);
	return namespaces_make(&p, &user, &plan.ns, &failure) == 0 && unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

#define MACHINE(name) cmocka_unit_test_setup_teardown(name, machine_set_up, machine_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        MACHINE(a_copy_gets_the_ca_and_hides_the_original),
	        MACHINE(without_a_database_nothing_happens),
	        MACHINE(without_certutil_the_database_stays),
	        MACHINE(where_certutil_fails_the_database_stays),
	        MACHINE(where_certutil_dies_the_database_stays),
	        MACHINE(links_are_not_followed),
	        MACHINE(what_the_user_may_not_read_is_not_copied),
	        MACHINE(certutil_writes_with_the_users_rights),
	        MACHINE(what_is_no_file_is_not_copied),
	};
	int status;

	alarm(900);
	umask(022);
	if (!enter()) {
		puts("skipped: no namespaces here");
		return 0;
	}
	status = cmocka_run_group_tests(tests, NULL, NULL);
	namespaces_close(&plan.ns);
	return status;
}
