/* SPDX-License-Identifier: Apache-2.0 */
/* Writing name server and CA into a file system that is built to mislead. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/os/helper_child.h"
#include "vethguard/tls/bundle.h"
#include "vethguard/tls/ca.h"
#include "supervisor/attach/guest_files.h"

#define PEM "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n"

static struct {
	char top[64], root[80];
	int fd, pipe[2];
	char report[GUEST_REPORT_MAX];
	struct guest_files_plan plan;
} f;

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	snprintf(f.top, sizeof(f.top), "/tmp/vethguard-guest-XXXXXX");
	if (!mkdtemp(f.top))
		return -1;
	snprintf(f.root, sizeof(f.root), "%s/root", f.top);
	mkdir(f.root, 0755);
	f.fd = open(f.root, O_PATH | O_DIRECTORY);
	ip_parse(SLICE("10.1.2.1"), &f.plan.servers[0]);
	ip_parse(SLICE("fd00::1"), &f.plan.servers[1]);
	f.plan.root_pem = SLICE(PEM);
	return pipe2(f.pipe, O_NONBLOCK);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	close(f.fd);
	close(f.pipe[0]);
	close(f.pipe[1]);
	return nftw(f.top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *inside(const char *path)
{
	static char text[2][256];
	static unsigned turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "%s%s", f.root, path);
	return text[turn];
}

static void make(const char *path, const char *text)
{
	FILE *out = fopen(inside(path), "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void directories(void)
{
	mkdir(inside("/etc"), 0755);
	mkdir(inside("/etc/ssl"), 0755);
	mkdir(inside("/etc/ssl/certs"), 0755);
}

static const char *text_of(const char *path)
{
	static char text[65536];
	FILE *in = fopen(path, "r");
	size_t n = in ? fread(text, 1, sizeof(text) - 1, in) : 0;

	if (in)
		fclose(in);
	text[n] = '\0';
	return in ? text : "(none)";
}

static void install(void)
{
	ssize_t n;

	guest_files_install(f.fd, &f.plan, f.pipe[1]);
	n = read(f.pipe[0], f.report, sizeof(f.report) - 1);
	f.report[n > 0 ? n : 0] = '\0';
}

static void reported(const char *line)
{
	if (!strstr(f.report, line))
		fail_msg("%s is not in: %s", line, f.report);
}

static void test_empty_root(void **state)
{
	(void)state;
	install();
	assert_string_equal(text_of(inside(GUEST_RESOLV)),
	        "nameserver 10.1.2.1\nnameserver fd00::1\noptions timeout:2 attempts:2\n");
	assert_string_equal(text_of(inside(GUEST_BUNDLE)), PEM);
	assert_string_equal(text_of(inside(GUEST_CA)), PEM);
	assert_null(strstr(f.report, "\n-"));
	assert_int_equal(f.report[0], '+');
}

static void test_bundles_grow_once(void **state)
{
	(void)state;
	directories();
	make(GUEST_BUNDLE, "first\n");
	make("/etc/ssl/certs/ca-bundle.crt", "second\n");
	/* Alpine's: a link to the bundle. */
	assert_int_equal(symlink("certs/ca-certificates.crt", inside("/etc/ssl/cert.pem")), 0);
	install();
	install();
	assert_string_equal(text_of(inside(GUEST_BUNDLE)), "first\n\n" PEM);
	assert_string_equal(text_of(inside("/etc/ssl/certs/ca-bundle.crt")), "second\n\n" PEM);
	assert_string_equal(text_of(inside("/etc/ssl/cert.pem")), "first\n\n" PEM);
}

/* While one root follows another, both are trusted by programs that read the directory too. */
static void test_two_roots(void **state)
{
	char hash[BUNDLE_HASH_TEXT], name[80];
	struct buf pem, one;

	(void)state;
	directories();
	buf_init(&pem, 8192);
	for (int i = 0; i < 2; i++) {
		struct ca *root = ca_new_root(i ? SLICE("after") : SLICE("before"), 9);

		assert_int_equal(ca_pem_append(ca_certificate_der(root), &pem), 0);
		ca_free(root);
	}
	f.plan.root_pem = buf_slice(&pem);
	install();
	for (struct slice rest = buf_slice(&pem); rest.n > 0;) {
		const char *end = memmem(rest.p, rest.n, "-----END CERTIFICATE-----\n", 26);

		assert_non_null(end);
		buf_init(&one, 8192);
		assert_int_equal(buf_append(&one, rest.p, (size_t)(end + 26 - rest.p)), 0);
		assert_int_equal(bundle_subject_hash(buf_slice(&one), hash), 0);
		buf_fini(&one);
		snprintf(name, sizeof(name), "/etc/ssl/certs/%s.0", hash);
		assert_int_equal(strlen(text_of(inside(name))), pem.len);
		rest = slice_of(end + 26, rest.n - (size_t)(end + 26 - rest.p));
	}
	buf_fini(&pem);
}

/* Fedora's: the directory is a link, and the bundle is one. */
static void test_links_within(void **state)
{
	(void)state;
	mkdir(inside("/etc"), 0755);
	mkdir(inside("/etc/ssl"), 0755);
	mkdir(inside("/etc/pki"), 0755);
	mkdir(inside("/etc/pki/certs"), 0755);
	make("/etc/pki/bundle", "all\n");
	assert_int_equal(symlink("../pki/certs", inside("/etc/ssl/certs")), 0);
	assert_int_equal(symlink("/etc/pki/bundle", inside("/etc/pki/certs/ca-bundle.crt")), 0);
	install();
	assert_string_equal(text_of(inside("/etc/pki/bundle")), "all\n\n" PEM);
	assert_string_equal(text_of(inside("/etc/pki/certs/vethguard.pem")), PEM);
}

static void test_links_out(void **state)
{
	char outside[128], above[128];

	(void)state;
	directories();
	snprintf(outside, sizeof(outside), "%s/outside", f.top);
	snprintf(above, sizeof(above), "../../../..%s/outside", f.top);
	fclose(fopen(outside, "w"));
	assert_int_equal(symlink(outside, inside(GUEST_RESOLV)), 0);
	assert_int_equal(symlink(above, inside(GUEST_BUNDLE)), 0);
	assert_int_equal(symlink("/proc/self/root/etc/passwd", inside(GUEST_CA)), 0);
	install();
	assert_string_equal(text_of(outside), "");
	/* They led to nothing inside, and are files now. */
	assert_string_equal(text_of(inside(GUEST_BUNDLE)), PEM);
	assert_non_null(strstr(text_of(inside(GUEST_RESOLV)), "nameserver 10.1.2.1"));
}

/* Another program renames files all the time: no path with ".." in it gets lost by that. */
static void test_links_while_others_rename(void **state)
{
	char one[96], two[96];
	pid_t pid;

	(void)state;
	directories();
	snprintf(one, sizeof(one), "%s/1", f.top);
	snprintf(two, sizeof(two), "%s/2", f.top);
	fclose(fopen(one, "w"));
	pid = fork();
	if (pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
		for (;;)
			if (rename(one, two) < 0 || rename(two, one) < 0)
				_exit(1);
	mkdir(inside("/etc/pki"), 0755);
	for (int i = 0; i < 50; i++) {
		make("/etc/pki/bundle", "all\n");
		unlink(inside(GUEST_BUNDLE));
		assert_int_equal(symlink("../../pki/../pki/bundle", inside(GUEST_BUNDLE)), 0);
		install();
		if (strcmp(text_of(inside("/etc/pki/bundle")), "all\n\n" PEM) != 0)
			fail_msg("%d: %s", i, f.report);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_directory_out(void **state)
{
	char outside[128];
	struct stat st;

	(void)state;
	mkdir(inside("/etc"), 0755);
	snprintf(outside, sizeof(outside), "%s/certs", f.top);
	mkdir(outside, 0755);
	assert_int_equal(symlink(f.top, inside("/etc/ssl")), 0);
	install();
	snprintf(outside, sizeof(outside), "%s/certs/vethguard.pem", f.top);
	assert_int_equal(stat(outside, &st), -1);
	reported("-" GUEST_CA ": ");
}

/* Nothing is opened that could block for ever, and nothing that is not a file. */
static void test_strange_files(void **state)
{
	(void)state;
	directories();
	assert_int_equal(mkfifo(inside(GUEST_RESOLV), 0644), 0);
	mkdir(inside(GUEST_BUNDLE), 0755);
	assert_int_equal(symlink("loop", inside("/etc/ssl/certs/loop")), 0);
	assert_int_equal(symlink("loop", inside("/etc/ssl/certs/ca-bundle.crt")), 0);
	install();
	reported("-" GUEST_RESOLV ": it is not a regular file");
	reported("-" GUEST_BUNDLE ": it is not a regular file");
	reported("-/etc/ssl/certs/ca-bundle.crt: ");
	reported("+" GUEST_CA "\n");
}

static void test_huge_bundle(void **state)
{
	(void)state;
	directories();
	make(GUEST_BUNDLE, "");
	assert_int_equal(truncate(inside(GUEST_BUNDLE), (off_t)GUEST_FILE_MAX + 1), 0);
	install();
	reported("-" GUEST_BUNDLE ": File too large");
	assert_int_equal(truncate(inside(GUEST_BUNDLE), (off_t)GUEST_FILE_MAX), 0);
	install();
	reported("+" GUEST_BUNDLE "\n");
}

/* A file of the host's that was linked into the root is the host's still. */
static void test_hosts_own(void **state)
{
	struct stat st;

	(void)state;
	directories();
	if (stat("/etc/resolv.conf", &st) != 0 ||
	        link("/etc/resolv.conf", inside(GUEST_RESOLV)) != 0)
		skip(); /* another file system */
	install();
	reported("-" GUEST_RESOLV ": it is mounted there");
}

static void mount_at(const char *what, const char *inside_at)
{
	assert_int_equal(mount(what, inside(inside_at), NULL, MS_BIND, NULL), 0);
}

/* In a mount namespace of its own; false where there is none to be had. */
static bool own_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		return false;
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	close(f.fd);
	f.fd = open(f.root, O_PATH | O_DIRECTORY);
	return f.fd >= 0;
}

/* What engines do, also if the name is a link. */
static void test_engines_own(void **state)
{
	char engines[128];

	(void)state;
	if (!own_mounts())
		skip();
	snprintf(engines, sizeof(engines), "%s/engines", f.top);
	for (unsigned linked = 0; linked < 2; linked++) {
		const char *at = linked ? "/run" : GUEST_RESOLV;

		fclose(fopen(engines, "w"));
		directories();
		make(at, "");
		if (linked)
			assert_int_equal(symlink("../run", inside(GUEST_RESOLV)), 0);
		mount_at(engines, at);
		install();
		assert_int_equal(umount2(inside(at), MNT_DETACH), 0);
		assert_non_null(strstr(text_of(engines), "nameserver 10.1.2.1"));
		unlink(inside(GUEST_RESOLV));
	}
}

/* A volume that others have too: its files are neither written nor read through names of ours. */
static void test_volume(void **state)
{
	char volume[128], victim[160];
	FILE *out;

	(void)state;
	if (!own_mounts())
		skip();
	snprintf(volume, sizeof(volume), "%s/volume", f.top);
	snprintf(victim, sizeof(victim), "%s/victim", volume);
	mkdir(volume, 0755);
	out = fopen(victim, "w");
	fputs("untouched", out);
	fclose(out);
	directories();
	mkdir(inside("/data"), 0755);
	mount_at(volume, "/data");
	assert_int_equal(symlink("/data/victim", inside(GUEST_RESOLV)), 0);
	assert_int_equal(symlink("/data/victim", inside(GUEST_BUNDLE)), 0);
	install();
	assert_int_equal(umount2(inside("/data"), MNT_DETACH), 0);
	assert_string_equal(text_of(victim), "untouched");
	reported("-" GUEST_RESOLV ": it is mounted there");
	reported("-" GUEST_BUNDLE ": it is mounted there");
}

struct outcome {
	struct loop *loop;
	char written[4096], faults[4096];
};

static void on_done(void *context, const struct guest_files_report *report)
{
	struct outcome *outcome = context;

	snprintf(outcome->written, sizeof(outcome->written), "%s", report->written);
	snprintf(outcome->faults, sizeof(outcome->faults), "%s", report->faults);
	loop_stop(outcome->loop);
}

static struct outcome outcome_of(pid_t pid, uint64_t start_time)
{
	struct outcome outcome = {.loop = loop_new()};
	struct guest_files *files;

	f.plan.pid = pid;
	f.plan.start_time = start_time;
	assert_int_equal(guest_files_write(outcome.loop, &f.plan, on_done, &outcome, &files), 0);
	assert_int_equal(loop_run(outcome.loop), 0);
	guest_files_free(files);
	loop_free(outcome.loop);
	return outcome;
}

/* A process that shares the host's file system, or that is not the one that was meant. */
static void test_wrong_process(void **state)
{
	struct outcome outcome = outcome_of(getpid(), 0);

	(void)state;
	assert_string_equal(outcome.written, "");
	assert_string_equal(
	        outcome.faults, "the file system: it is the host's own, which is left alone\n");
	outcome = outcome_of(getpid(), 1);
	assert_string_equal(outcome.faults, "the file system: the process is gone\n");
	outcome = outcome_of(0x7ffffff0, 0);
	assert_string_equal(outcome.faults, "the file system: the process is gone\n");
}

/* A process in the file system that was built here. */
static pid_t somebody_inside(void)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && chroot(f.root) == 0 &&
		        chdir("/") == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* How often the pipe's end is open in a process. */
static unsigned ends_in(pid_t pid, const char *link)
{
	char path[64], to[128];
	unsigned found = 0;

	for (int fd = 0; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		ssize_t n = readlink(path, to, sizeof(to) - 1);

		to[n > 0 ? n : 0] = '\0';
		found += strcmp(to, link) == 0;
	}
	return found;
}

/* A file of a process's, as somebody writes numbers into proc(5). */
static bool write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) > 0;

	close(fd);
	return written;
}

/* A user's process, root in a user namespace of its own (for the group as well where it has one),
 * whose root directory is the one here. 0: the kernel has no such namespaces for users. */
static pid_t root_of_its_own(uid_t user, bool group)
{
	char map[32];
	int ends[2], ready = 0;
	pid_t pid;

	snprintf(map, sizeof(map), "0 %u 1\n", (unsigned)user);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		ready = setgroups(0, NULL) == 0 && setresgid(user, user, user) == 0 &&
		        setresuid(user, user, user) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0 &&
		        unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of ids clears it */
		ready = ready && write_map("/proc/self/uid_map", map) &&
		        (!group || (write_map("/proc/self/setgroups", "deny") &&
		                           write_map("/proc/self/gid_map", map))) &&
		        chroot(f.root) == 0;
		(void)!write(ends[1], &ready, sizeof(ready));
		pause();
		_exit(0);
	}
	close(ends[1]);
	(void)!read(ends[0], &ready, sizeof(ready));
	close(ends[0]);
	if (!ready) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return ready ? pid : 0;
}

/* Its root directory is its own choice; root's files in it are not its own all the same, and nobody
 * writes them for it. */
static void nothing_of_others(bool group, const char *fault)
{
	struct outcome outcome;
	pid_t pid;

	directories();
	make(GUEST_RESOLV, "root's\n");
	make(GUEST_BUNDLE, "root's too\n");
	chmod(f.top, 0711);
	pid = getuid() == 0 ? root_of_its_own(65534, group) : 0;
	if (!pid)
		skip();
	outcome = outcome_of(pid, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_string_equal(text_of(inside(GUEST_RESOLV)), "root's\n");
	assert_string_equal(text_of(inside(GUEST_BUNDLE)), "root's too\n");
	assert_string_equal(text_of(inside(GUEST_CA)), "(none)");
	assert_string_equal(outcome.written, "");
	assert_non_null(strstr(outcome.faults, fault));
}

static void test_owners_it_does_not_know(void **state)
{
	(void)state;
	nothing_of_others(true, GUEST_RESOLV ": Permission denied");
}

static void test_namespace_without_a_root(void **state)
{
	(void)state;
	nothing_of_others(false, "the process has a user namespace that nobody is root in");
}

/* Files that the user owns are written, and stay the user's. */
static void test_owner_it_knows(void **state)
{
	struct outcome outcome;
	struct stat st;
	pid_t pid;

	(void)state;
	directories();
	make(GUEST_RESOLV, "its own\n");
	chmod(f.top, 0711);
	for (const char *const *path = (const char *const[]){"", "/etc", "/etc/ssl",
	             "/etc/ssl/certs", GUEST_RESOLV, NULL};
	        *path; path++)
		if (getuid() == 0)
			assert_int_equal(chown(inside(*path), 65534, 65534), 0);
	pid = getuid() == 0 ? root_of_its_own(65534, true) : 0;
	if (!pid)
		skip();
	outcome = outcome_of(pid, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_string_equal(outcome.faults, "");
	assert_string_equal(text_of(inside(GUEST_CA)), PEM);
	assert_memory_equal(text_of(inside(GUEST_RESOLV)), "nameserver ", 11);
	assert_int_equal(stat(inside(GUEST_RESOLV), &st), 0);
	assert_int_equal(st.st_uid, 65534);
}

static struct {
	struct loop_io io;
	int fd;
	char link[64];
	unsigned asked, held;
} perm;

/* Somebody opens the bundle, and waits: it is looked at what the child has open then. */
static void on_open(struct loop_io *io, unsigned events)
{
	struct fanotify_event_metadata event;

	(void)io, (void)events;
	while (read(perm.fd, &event, sizeof(event)) == sizeof(event)) {
		const struct fanotify_response yes = {event.fd, FAN_ALLOW};

		perm.asked++;
		perm.held += ends_in(event.pid, perm.link);
		assert_int_equal(write(perm.fd, &yes, sizeof(yes)), sizeof(yes));
		close(event.fd);
	}
}

/* A child that hangs in a sandbox's file system for good must not hold the daemon's lock and
 * sockets.
 */
static void test_nothing_of_the_daemons(void **state)
{
	struct outcome outcome = {.loop = loop_new()};
	struct guest_files *files;
	char name[32];
	int ends[2];
	ssize_t n;

	(void)state;
	directories();
	make(GUEST_BUNDLE, PEM);
	perm.fd = getuid() == 0
	                  ? fanotify_init(FAN_CLASS_CONTENT | FAN_NONBLOCK | FAN_CLOEXEC, O_RDONLY)
	                  : -1;
	if (perm.fd < 0 || fanotify_mark(perm.fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD,
	                           inside(GUEST_BUNDLE)) < 0) {
		loop_free(outcome.loop);
		skip();
	}
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[0]);
	n = readlink(name, perm.link, sizeof(perm.link) - 1);
	assert_true(n > 0);
	perm.link[n] = '\0';
	assert_int_equal(ends_in(getpid(), perm.link), 2);
	f.plan.pid = somebody_inside();
	f.plan.start_time = 0;
	assert_int_equal(
	        loop_io_open_level(outcome.loop, &perm.io, perm.fd, LOOP_READ, on_open), 0);
	assert_int_equal(guest_files_write(outcome.loop, &f.plan, on_done, &outcome, &files), 0);
	assert_int_equal(loop_run(outcome.loop), 0);
	assert_true(perm.asked > 0);
	assert_int_equal(perm.held, 0);
	assert_non_null(strstr(outcome.written, GUEST_CA));
	guest_files_free(files);
	loop_io_close(&perm.io);
	close(perm.fd);
	close(ends[0]);
	close(ends[1]);
	kill(f.plan.pid, SIGKILL);
	waitpid(f.plan.pid, NULL, 0);
	loop_free(outcome.loop);
}

static void stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

/* The caller leaves before the child has ended: the child is reaped when it has. */
static void test_none_stays_a_zombie(void **state)
{
	struct loop *loop = loop_new();
	struct loop_timer look = {0};
	struct guest_files *files;

	(void)state;
	f.plan.pid = getpid();
	f.plan.start_time = 0;
	assert_int_equal(loop_timer_open(loop, &look, stop), 0);
	assert_int_equal(guest_files_write(loop, &f.plan, on_done, NULL, &files), 0);
	guest_files_free(files);
	while (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0) {
		loop_timer_set(&look, 5);
		assert_int_equal(loop_run(loop), 0);
	}
	helper_child_close_all(loop);
	loop_timer_close(&look);
	loop_free(loop);
}

int main(void)
{
	alarm(900);
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        CASE(test_empty_root),
	        CASE(test_none_stays_a_zombie),
	        CASE(test_bundles_grow_once),
	        CASE(test_two_roots),
	        CASE(test_links_within),
	        CASE(test_links_out),
	        CASE(test_links_while_others_rename),
	        CASE(test_directory_out),
	        CASE(test_strange_files),
	        CASE(test_huge_bundle),
	        CASE(test_hosts_own),
	        CASE(test_engines_own),
	        CASE(test_volume),
	        CASE(test_wrong_process),
	        CASE(test_nothing_of_the_daemons),
	        CASE(test_owners_it_does_not_know),
	        CASE(test_namespace_without_a_root),
	        CASE(test_owner_it_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
