/* SPDX-License-Identifier: Apache-2.0 */
/* The stages before seccomp: start, empty root, identity and capabilities, Landlock. Stages that
 * need privilege run in a user namespace of their own where the tests are not run by root. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail_child.h"
#include "vethguard/jail/capabilities.h"
#include "vethguard/jail/jail.h"

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return ok;
}

/* Root in a user namespace, whoever runs the tests. */
static bool become_root(void)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();

	if (uid == 0)
		return true;
	if (unshare(CLONE_NEWUSER) != 0)
		return false;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (!write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/uid_map", map))
		return false;
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_text("/proc/self/gid_map", map);
}

static int starts(void *context)
{
	struct rlimit core;
	int extra = open("/dev/null", O_RDONLY), death = 0, n = 0;

	(void)context;
	setenv("SECRET", "value", 1);
	jail_start(3);
	n += prctl(PR_GET_DUMPABLE) == 0;
	n += getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 && core.rlim_max == 0;
	n += prctl(PR_GET_PDEATHSIG, &death) == 0 && death == SIGKILL;
	n += getenv("SECRET") == NULL && getenv("PATH") == NULL;
	n += extra >= 3 && fcntl(extra, F_GETFD) == -1 && errno == EBADF;
	n += umask(0) == 077;
	n += read(0, &death, 1) == 0;
	return n;
}

static void start_gives_up_what_it_can(void **state)
{
	(void)state;
	assert_true(left_with(in_child(starts, NULL), 7));
}

static int starts_orphaned(void *context)
{
	int pair[2];

	(void)context;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0 || dup2(pair[0], 3) != 3)
		return 1;
	if (pair[1] != 3)
		close(pair[1]);
	jail_start(4);
	return 1;
}

static void start_ends_where_the_supervisor_is_gone(void **state)
{
	(void)state;
	assert_true(left_with(in_child(starts_orphaned, NULL), 125));
}

static int empties_root(void *context)
{
	int n = 0;

	(void)context;
	if (!become_root())
		return 77;
	if (jail_empty_root() != 0)
		return 99;
	n += open("/etc/passwd", O_RDONLY) == -1 && errno == ENOENT;
	n += open("/proc/self/status", O_RDONLY) == -1 && errno == ENOENT;
	n += open("..", O_RDONLY | O_DIRECTORY) >= 0 && access("../etc", F_OK) == -1;
	n += open("/x", O_CREAT | O_WRONLY, 0600) == -1 && errno == EROFS;
	n += mkdir("/x", 0700) == -1 && errno == EROFS;
	return n;
}

static void root_is_empty_and_read_only(void **state)
{
	int status = in_child(empties_root, NULL);

	(void)state;
	if (left_with(status, 77))
		skip();
	assert_true(left_with(status, 5));
}

static int drops(void *context)
{
	struct capabilities now;
	struct jail_ids ids;
	int death = 0, n = 0;

	(void)context;
	if (!become_root())
		return 77;
	jail_start(3);
	ids = jail_role_ids(JAIL_WORKER, 7);
	if (jail_drop(ids) != 0)
		return 99;
	n += getuid() == ids.uid && geteuid() == ids.uid && getgid() == ids.gid;
	n += capabilities_get(&now) == 0 && (now.effective | now.permitted | now.inheritable) == 0;
	n += capabilities_bounding_set() == 0;
	n += prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
	n += prctl(PR_GET_DUMPABLE) == 0;
	n += prctl(PR_GET_PDEATHSIG, &death) == 0 && death == SIGKILL;
	n += unshare(CLONE_NEWNS) == -1 && errno == EPERM;
	n += ids.uid == 0 || (setuid(0) == -1 && errno == EPERM);
	return n;
}

static void drop_leaves_no_capability(void **state)
{
	int status = in_child(drops, NULL);

	(void)state;
	if (left_with(status, 77))
		skip();
	if (!left_with(status, 8))
		fail_msg("status %#x", status);
}

static int drops_without_right(void *context)
{
	struct jail_ids other = {65000, 65000};

	(void)context;
	if (geteuid() == 0 &&
	        (setresgid(64999, 64999, 64999) != 0 || setresuid(64999, 64999, 64999) != 0))
		return 99;
	jail_start(3);
	return jail_drop(other) == -EPERM ? 1 : 0;
}

static void drop_to_another_user_needs_the_right(void **state)
{
	(void)state;
	assert_true(left_with(in_child(drops_without_right, NULL), 1));
}

static int ids_differ(void *context)
{
	struct jail_ids a = jail_role_ids(JAIL_WORKER, 100), b = jail_role_ids(JAIL_WORKER, 101);
	struct jail_ids k = jail_role_ids(JAIL_KEEPER, 100), r = jail_role_ids(JAIL_RECORDER, 100);

	(void)context;
	if (a.uid == getuid())
		return 77; /* one id only, here */
	return a.uid != 0 && a.uid != k.uid && a.uid != r.uid && k.uid != r.uid && a.gid != 0 &&
	       (a.uid != b.uid || a.uid < 61184);
}

static void roles_and_runs_have_ids_of_their_own(void **state)
{
	int status = in_child(ids_differ, NULL);

	(void)state;
	if (left_with(status, 77))
		skip();
	assert_true(left_with(status, 1));
}

static int listen_on_loopback(uint16_t *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&sa, n) != 0 || listen(fd, 1) != 0 ||
	        getsockname(fd, (struct sockaddr *)&sa, &n) != 0)
		return -1;
	*port = ntohs(sa.sin_port);
	return fd;
}

static int connect_errno(uint16_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
	        .sin_port = htons(port),
	        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 ? 0 : errno;

	close(fd);
	return rc;
}

static int landlocked(void *context)
{
	uint16_t listed, other;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int n = 0, a, b, rc;

	(void)context;
	a = listen_on_loopback(&listed);
	b = listen_on_loopback(&other);
	if (a < 0 || b < 0 || landlock_abi() < 4)
		return 77;
	rc = jail_landlock(&listed, 1, false);
	if (rc != 0)
		return 99;
	n += connect_errno(listed) == 0;
	n += connect_errno(other) == EACCES;
	n += connect_errno(443) == EACCES;
	a = socket(AF_INET, SOCK_STREAM, 0);
	n += bind(a, (struct sockaddr *)&any, sizeof(any)) == -1 && errno == EACCES;
	n += open("/etc/passwd", O_RDONLY) == -1 && errno == EACCES;
	n += open("/tmp", O_RDONLY | O_DIRECTORY) == -1 && errno == EACCES;
	n += mkdir("/tmp/vethguard-landlock-test", 0700) == -1 && errno == EACCES;
	return n;
}

static void landlock_allows_listed_ports_and_no_file(void **state)
{
	int status = in_child(landlocked, NULL);

	(void)state;
	if (left_with(status, 77))
		skip();
	assert_true(left_with(status, 7));
}

/* An ephemeral port on each family, and no port of choice. */
static int landlocked_binding(void *context)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
	uint16_t listed;
	int n = 0, fd = listen_on_loopback(&listed);

	(void)context;
	if (fd < 0 || landlock_abi() < 4)
		return 77;
	if (jail_landlock(&listed, 1, true) != 0)
		return 99;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	n += bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0;
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	n += fd < 0 || bind(fd, (struct sockaddr *)&any6, sizeof(any6)) == 0;
	any.sin_port = htons(40123);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	n += bind(fd, (struct sockaddr *)&any, sizeof(any)) == -1 && errno == EACCES;
	n += connect_errno(listed) == 0;
	n += connect_errno(443) == EACCES;
	n += open("/etc/passwd", O_RDONLY) == -1 && errno == EACCES;
	return n;
}

static void landlock_binds_ephemeral_ports_only(void **state)
{
	int status = in_child(landlocked_binding, NULL);

	(void)state;
	if (left_with(status, 77))
		skip();
	assert_true(left_with(status, 6));
}

static int landlocked_any_port(void *context)
{
	uint16_t port;
	int n = 0, fd = listen_on_loopback(&port);

	(void)context;
	if (fd < 0 || landlock_abi() == 0)
		return 77;
	if (jail_landlock(NULL, SIZE_MAX, true) != 0)
		return 99;
	n += connect_errno(port) == 0;
	n += open("/etc/passwd", O_RDONLY) == -1 && errno == EACCES;
	return n;
}

static void landlock_with_any_port_still_has_no_file(void **state)
{
	int status = in_child(landlocked_any_port, NULL);

	(void)state;
	if (left_with(status, 77))
		skip();
	assert_true(left_with(status, 2));
}

/* In the whole jail of a keeper: from memory and by trying, without a call that kills. */
static int described(void *context)
{
	static const char *const lines[] = {"\ncap_effective: 0000000000000000\n",
	        "\ncap_bounding: 0000000000000000\n", "\nno_new_privs: 1\n", "\ndumpable: 0\n",
	        "\nroot: empty, read-only\n", "\nseccomp: filter\n", "\ndescriptors: "};
	static char text[JAIL_TEXT_MAX];
	int n = 0, abi = landlock_abi();

	(void)context;
	if (jail_empty_root() != 0)
		return 77;
	if (jail_drop(jail_role_ids(JAIL_KEEPER, 1)) != 0)
		return 98;
	if (jail_landlock(NULL, 0, false) != 0 && abi > 0)
		return 99;
	if (jail_seccomp(JAIL_KEEPER, false) != 0)
		return 100;
	jail_describe(text, sizeof(text));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		n += strstr(text, lines[i]) != NULL;
	n += abi < 4 || strstr(text, "\nlandlock_connect: none\n") != NULL;
	return n;
}

static void description_names_every_stage(void **state)
{
	char text[4096], cut[8];
	int status = in_child(described, NULL);

	(void)state;
	jail_describe(text, sizeof(text));
	assert_non_null(strstr(text, "root: the system's\n"));
	assert_non_null(strstr(text, "seccomp_calls: 0\n"));
	assert_non_null(strstr(text, "landlock_abi: 0\n"));
	jail_describe(cut, sizeof(cut));
	assert_int_equal(strlen(cut), 7);
	if (left_with(status, 77))
		skip();
	if (!left_with(status, 8))
		fail_msg("status %#x", status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(start_gives_up_what_it_can),
	        cmocka_unit_test(start_ends_where_the_supervisor_is_gone),
	        cmocka_unit_test(root_is_empty_and_read_only),
	        cmocka_unit_test(drop_leaves_no_capability),
	        cmocka_unit_test(drop_to_another_user_needs_the_right),
	        cmocka_unit_test(roles_and_runs_have_ids_of_their_own),
	        cmocka_unit_test(landlock_allows_listed_ports_and_no_file),
	        cmocka_unit_test(landlock_binds_ephemeral_ports_only),
	        cmocka_unit_test(landlock_with_any_port_still_has_no_file),
	        cmocka_unit_test(description_names_every_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
