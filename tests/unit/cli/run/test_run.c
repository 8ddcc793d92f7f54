/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard run, from outside: exit statuses, environment, mounts, signals, and that nothing
 * survives. The supervisor is played by this program (run_fixture.h), so no network is made here.
 * Skipped where neither root nor user namespaces can be had.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/socket.h>

#include "run_fixture.h"

static struct fixture f;
static struct outcome o;

#define RUN(...) fixture_run(&f, (const char *const[]){__VA_ARGS__, NULL}, &o)
#define SHELL(script) RUN("--", "sh", "-c", script)

static bool said(const char *text)
{
	if (strstr(o.out, text) != NULL)
		return true;
	print_message("status %d, said: %s\n", o.status, o.out);
	return false;
}

static void the_commands_status_is_ours(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	RUN("--", "true");
	assert_string_equal(o.out, "");
	assert_int_equal(o.status, 0);
	SHELL("exit 42");
	assert_int_equal(o.status, 42);
	SHELL("kill -TERM $$");
	assert_int_equal(o.status, 128 + SIGTERM);
	SHELL("kill -KILL $$");
	assert_int_equal(o.status, 128 + SIGKILL);
}

static void what_cannot_run_is_told_apart(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	RUN("--", "vethguard-no-such-program");
	assert_int_equal(o.status, 127);
	assert_true(said("cannot run vethguard-no-such-program: No such file or directory"));
	RUN("--", "/etc/hostname/x");
	assert_int_equal(o.status, 126);
	RUN("--", f.policy);
	assert_int_equal(o.status, 126);
	assert_true(said("Permission denied"));
}

static void a_supervisor_that_refuses_is_125_and_its_words(void **state)
{
	(void)state;
	fixture_policy(&f, "refuse\n");
	RUN("--", "touch", "/tmp/vethguard-must-not-run");
	assert_int_equal(o.status, 125);
	assert_true(said("policy.yaml:1:1: error: it is no policy"));
	fixture_policy(&f, "many\n");
	RUN("--", "touch", "/tmp/vethguard-must-not-run");
	assert_int_equal(o.status, 125);
	assert_true(said("vethguard: error: policy.yaml:1:1: error: 000"));
	assert_true(said("\nvethguard: error: policy.yaml:2:1: error: 000"));
	assert_true(said("\nvethguard: error: policy.yaml:32:1: error: 000"));
	assert_true(said("00032\n"));
	fixture_policy(&f, "garbage\n");
	RUN("--", "touch", "/tmp/vethguard-must-not-run");
	assert_int_equal(o.status, 125);
	fixture_policy(&f, "leave\n");
	RUN("--", "touch", "/tmp/vethguard-must-not-run");
	assert_int_equal(o.status, 125);
	assert_true(said("ended without saying why"));
	assert_int_equal(access("/tmp/vethguard-must-not-run", F_OK), -1);
}

static void mistakes_on_the_command_line_are_125(void **state)
{
	const char *const no_command[] = {"--name", "x", NULL};

	(void)state;
	fixture_policy(&f, "ready\n");
	RUN("--polcy", "x", "--", "true");
	assert_int_equal(o.status, 125);
	assert_true(said("did you mean --policy?"));
	fixture_run(&f, no_command, &o);
	assert_int_equal(o.status, 125);
	RUN("--name", "bad name", "--", "true");
	assert_int_equal(o.status, 125);
	RUN("--name");
	assert_int_equal(o.status, 125);
	RUN("--observe=yes", "--", "true");
	assert_int_equal(o.status, 125);
	RUN("--env", "1X=2", "--", "true");
	assert_int_equal(o.status, 125);
	RUN("--user", "vethguard-no-such-user", "--", "true");
	assert_int_equal(o.status, 125);
	assert_true(said("there is no user"));
	RUN("--config", "/nonexistent.yaml", "--", "true");
	assert_int_equal(o.status, 125);
	assert_true(said("/nonexistent.yaml"));
}

static void environment_is_given_with_trust_and_placeholders(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	setenv("VG_ORDINARY", "passed", 1);
	setenv("TEST_TOKEN", "real-one", 1);
	setenv("https_proxy", "http://192.0.2.1:1", 1);
	RUN("--env", "ADDED=1", "--", "env");
	assert_true(said("VG_ORDINARY=passed\n"));
	assert_true(said("ADDED=1\n"));
	assert_true(said("TEST_TOKEN=vethguard-test-0123\n"));
	assert_null(strstr(o.out, "real-one"));
	assert_null(strstr(o.out, "https_proxy"));
	assert_true(said("SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\n"));
	assert_true(said("NODE_EXTRA_CA_CERTS=/etc/ssl/certs/vethguard.pem\n"));
	RUN("--proxy-env", "--no-env", "--env", "VG_ORDINARY", "--", "env");
	assert_true(said("https_proxy=http://10.9.8.1:3128\n"));
	assert_true(said("HTTP_PROXY=http://10.9.8.1:3128\n"));
	assert_true(said("VG_ORDINARY=passed\n"));
	RUN("--no-env", "--", "env");
	assert_null(strstr(o.out, "VG_ORDINARY"));
	assert_true(said("PATH="));
	unsetenv("TEST_TOKEN");
	unsetenv("https_proxy");
}

/* Many of them: twelve are named, the others counted; names as they may be shown. */
static void secrets_are_named_in_one_line(void **state)
{
	char name[32];

	(void)state;
	fixture_policy(&f, "ready\n");
	setenv("TEST_TOKEN", "real-one", 1); /* its variable has a placeholder */
	RUN("--", "true");
	assert_null(strstr(o.out, "looks like secrets"));
	for (int i = 0; i < 15; i++) {
		snprintf(name, sizeof(name), "VG\033%d_TOKEN", i);
		setenv(name, "hunter22", 1);
	}
	RUN("--", "true");
	assert_true(said("what looks like secrets: VG\\x1b"));
	assert_true(said("_TOKEN and 3 more; --clean-env leaves them out"));
	assert_null(strstr(o.out, "hunter22"));
	assert_null(strstr(o.out, "TEST_TOKEN"));
	RUN("--clean-env", "--", "true");
	assert_null(strstr(o.out, "looks like secrets"));
	for (int i = 0; i < 15; i++) {
		snprintf(name, sizeof(name), "VG\033%d_TOKEN", i);
		unsetenv(name);
	}
	RUN("--keep-env", "A=1", "--", "true");
	assert_int_equal(o.status, 125);
	assert_true(said("--keep-env A: not a variable's name"));
	RUN("--keep-env", "", "--", "true");
	assert_int_equal(o.status, 125);
	RUN("--keep-env", "1A", "--", "true");
	assert_int_equal(o.status, 125);
	unsetenv("TEST_TOKEN");
}

static void a_credentials_variable_goes_to_the_supervisor_and_nowhere_else(void **state)
{
	char path[PATH_MAX + 32], text[256] = "";
	FILE *file;

	(void)state;
	fixture_policy(&f, "env VG_SECRET VG_ABSENT\n");
	setenv("VG_SECRET", "s3cr3t-value", 1);
	RUN("--env", "VG_SECRET", "--", "sh", "-c",
	        "env; cat /proc/1/environ; cat /proc/self/environ; tr '\\0' '\\n' < "
	        "/proc/$PPID/environ");
	assert_null(strstr(o.out, "s3cr3t-value"));
	assert_true(said("does not get it"));
	snprintf(path, sizeof(path), "%s/values", f.directory);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_string_equal(text, "VG_SECRET=12:s3cr3t-value\n");
	unsetenv("VG_SECRET");
}

static void the_outside_process_shows_the_secret_no_more(void **state)
{
	char path[64], text[65536];
	ssize_t n;
	int output, fd;
	pid_t pid;

	(void)state;
	fixture_policy(&f, "env VG_SECRET\n");
	setenv("VG_SECRET", "s3cr3t-value", 1);
	memset(&o, 0, sizeof(o));
	pid = fixture_start(
	        &f, (const char *const[]){"--", "sh", "-c", "echo up; sleep 1", NULL}, &output);
	assert_true(fixture_await(output, o.out, sizeof(o.out), "up\n"));
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY); /* root may read it, others not even that */
	n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	assert_true(n <= 0 || memmem(text, (size_t)n, "s3cr3t-value", 12) == NULL);
	assert_true(n <= 0 || memmem(text, (size_t)n, "PATH=", 5) != NULL);
	unsetenv("VG_SECRET");
	fixture_finish(pid, output, &o);
	assert_int_equal(o.status, 0);
}

static void a_value_of_the_largest_size_passes_and_one_beyond_does_not(void **state)
{
	static char value[65536 + 2];
	char path[PATH_MAX + 32], text[32] = "";
	FILE *file;

	(void)state;
	memset(value, 'v', 65536);
	fixture_policy(&f, "env VG_SECRET\n");
	setenv("VG_SECRET", value, 1);
	RUN("--", "true");
	assert_int_equal(o.status, 0);
	snprintf(path, sizeof(path), "%s/values", f.directory);
	file = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_memory_equal(text, "VG_SECRET=65536:vvv", 19);
	value[65536] = 'v';
	setenv("VG_SECRET", value, 1);
	RUN("--", "true");
	assert_int_equal(o.status, 125);
	assert_true(said("too long"));
	unsetenv("VG_SECRET");
}

static void the_ca_is_in_every_store(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	if (access("/etc/ssl/certs/ca-certificates.crt", F_OK) != 0)
		skip();
	SHELL("set -e; cd /etc/ssl/certs; tail -n +1 vethguard.pem | openssl x509 -noout -subject;"
	      "h=$(openssl x509 -noout -hash -in vethguard.pem); readlink $h.0;"
	      "openssl verify -CAfile ca-certificates.crt vethguard.pem;"
	      "openssl verify -CApath /etc/ssl/certs vethguard.pem;"
	      "n=$(grep -c BEGIN ca-certificates.crt); test $n -gt 10; ls | wc -l;"
	      "! touch x 2>/dev/null; ! rm vethguard.pem 2>/dev/null; echo sealed");
	assert_true(said("vethguard test root"));
	assert_true(said("\nvethguard.pem\nvethguard.pem: OK\nvethguard.pem: OK\n"));
	assert_true(said("sealed\n"));
	assert_int_equal(o.status, 0);
	assert_int_equal(access("/etc/ssl/certs/vethguard.pem", F_OK), -1);
	if (access("/etc/ssl/certs/java/cacerts", F_OK) != 0 ||
	        access("/usr/bin/keytool", X_OK) != 0)
		return;
	SHELL("keytool -list -keystore /etc/ssl/certs/java/cacerts -storepass changeit 2>&1 | grep "
	      "-i vethguard");
	assert_int_equal(o.status, 0);
}

static void resolver_and_hosts_name_the_gate_only(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	/* A minimal system has no /etc/hosts. */
	SHELL("cat /etc/resolv.conf && { [ ! -e /etc/hosts ] || cat /etc/hosts; }");
	assert_true(said("nameserver 10.9.8.1\nnameserver fd00:9::1\n"));
	assert_int_equal(o.status, 0);
}

static void processes_and_interfaces_outside_are_not_seen(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	SHELL("ls /proc | grep -c '^[0-9]'; ls /sys/class/net; cat /proc/net/dev | wc -l; readlink "
	      "/proc/1/exe");
	assert_null(strstr(o.out, "eth0"));
	assert_true(o.out[0] >= '1' && o.out[0] <= '6' && o.out[1] == '\n');
}

static void mounts_are_locked_and_limits_hold(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	RUN("--user", "root", "--", "sh", "-c",
	        "id -u; umount /etc/resolv.conf; umount -l /etc/ssl/certs; umount -l /proc; mount "
	        "-t tmpfs none /mnt;"
	        "unshare -Urm sh -c 'umount /etc/resolv.conf' || echo nested-locked;"
	        "grep -q 10.9.8.1 /etc/resolv.conf && echo still; touch /sys/x 2>&1;"
	        "grep CapBnd /proc/self/status; grep Seccomp: /proc/self/status");
	assert_memory_equal(o.out, "0\n", 2);
	assert_true(said("nested-locked\nstill\n"));
	assert_true(said("Seccomp:\t2\n"));
	assert_int_equal(o.status, 0);
}

static void switches_of_the_machine_are_read_only(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	RUN("--user", "root", "--", "sh", "-c",
	        "for f in kernel/core_pattern kernel/modprobe vm/drop_caches; do echo 1 "
	        "2>/dev/null > /proc/sys/$f "
	        "&& echo WROTE $f; done; echo b 2>/dev/null > /proc/sysrq-trigger && echo WROTE; "
	        "echo done");
	assert_null(strstr(o.out, "WROTE"));
	assert_true(said("done\n"));
}

static void a_local_socket_cannot_be_reached(void **state)
{
	char path[] = "/tmp/vethguard-test-XXXXXX", script[512];
	struct sockaddr_un {
		unsigned short family;
		char path[108];
	} sa = {.family = 1};
	int fd = socket(1, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)state;
	assert_non_null(mkdtemp(path));
	chmod(path, 0755);
	snprintf(sa.path, sizeof(sa.path), "%s/s", path);
	assert_int_equal(bind(fd, (void *)&sa, sizeof(sa)), 0);
	chmod(sa.path, 0777);
	assert_int_equal(listen(fd, 1), 0);
	fixture_policy(&f, "ready\n");
	snprintf(script, sizeof(script),
	        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); "
	        "print connect(S, sockaddr_un(\"%s\")) ? \"reached\" : $!{ECONNREFUSED} ? "
	        "\"refused\" : \"$!\", \"\\n\"'",
	        sa.path);
	SHELL(script);
	assert_true(said("refused\n"));
	assert_int_equal(accept(fd, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
	unlink(sa.path);
	rmdir(path);
}

static void signals_reach_the_command(void **state)
{
	static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

	(void)state;
	fixture_policy(&f, "ready\n");
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		char script[128];
		int output;
		pid_t pid;

		memset(&o, 0, sizeof(o));
		snprintf(script, sizeof(script),
		        "trap 'echo caught; exit 7' %d; echo up; while :; do sleep 0.02; done",
		        signals[i]);
		pid = fixture_start(
		        &f, (const char *const[]){"--", "sh", "-c", script, NULL}, &output);
		assert_true(fixture_await(output, o.out, sizeof(o.out), "up\n"));
		kill(pid, signals[i]);
		fixture_finish(pid, output, &o);
		assert_true(said("caught\n"));
		assert_int_equal(o.status, 7);
	}
}

/* Starts a command that would run for ever, and leaves a daemon of its own beside it. */
static pid_t start_running(const char *mark, int *output)
{
	char script[256];
	pid_t pid;

	memset(&o, 0, sizeof(o));
	snprintf(script, sizeof(script),
	        "setsid sh -c 'while :; do sleep 1; done' %s & echo up; while :; do sleep 1; done",
	        mark);
	pid = fixture_start(
	        &f, (const char *const[]){"--", "sh", "-c", script, mark, NULL}, output);
	assert_true(fixture_await(*output, o.out, sizeof(o.out), "up\n"));
	return pid;
}

static void nothing_survives_when_vethguard_is_killed(void **state)
{
	int output;
	pid_t pid;

	(void)state;
	fixture_policy(&f, "ready\n");
	pid = start_running("vg-mark-killed", &output);
	kill(pid, SIGKILL);
	fixture_finish(pid, output, &o);
	assert_int_equal(o.signal, SIGKILL);
	assert_true(fixture_gone("vg-mark-killed"));
	assert_true(fixture_gone(f.directory));
}

static void nothing_survives_when_the_supervisor_dies(void **state)
{
	int output;
	pid_t pid;

	(void)state;
	fixture_policy(&f, "die-later\n");
	pid = start_running("vg-mark-orphan", &output);
	fixture_write(&f, "go", "");
	fixture_finish(pid, output, &o);
	assert_int_equal(o.status, 125);
	assert_true(said("vethguardd was ended by signal 9"));
	assert_true(fixture_gone("vg-mark-orphan"));
	fixture_policy(&f, "fail-later\n");
	pid = start_running("vg-mark-failed", &output);
	fixture_write(&f, "go", "");
	fixture_finish(pid, output, &o);
	assert_int_equal(o.status, 125);
	assert_true(said("the worker died"));
	assert_true(fixture_gone("vg-mark-failed"));
	assert_true(fixture_gone(f.directory));
}

static void a_killed_init_is_an_ended_command(void **state)
{
	char children[64], text[64] = "";
	int output, fd;
	pid_t pid, init = 0;

	(void)state;
	fixture_policy(&f, "ready\n");
	pid = start_running("vg-mark-init", &output);
	/* Of vethguard's two children, init is the later. */
	snprintf(children, sizeof(children), "/proc/%d/task/%d/children", pid, pid);
	fd = open(children, O_RDONLY);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		sscanf(text, "%*d %d", &init);
	if (fd >= 0)
		close(fd);
	if (init == 0) {
		kill(pid, SIGKILL);
		fixture_finish(pid, output, &o);
		skip();
	}
	kill(init, SIGKILL);
	fixture_finish(pid, output, &o);
	assert_int_equal(o.status, 128 + SIGKILL);
	assert_true(said("the sandbox was killed"));
	assert_true(fixture_gone("vg-mark-init"));
	assert_true(fixture_gone(f.directory));
}

static void what_the_command_leaves_behind_ends_with_it(void **state)
{
	(void)state;
	fixture_policy(&f, "ready\n");
	SHELL("setsid sh -c 'while :; do sleep 1; done' vg-mark-daemon & sleep 0.05; exit 3");
	assert_int_equal(o.status, 3);
	assert_true(fixture_gone("vg-mark-daemon"));
}

static void descriptors_and_directory(void **state)
{
	char expected[PATH_MAX + 8], here[PATH_MAX];
	int leak = open("/dev/null", O_RDONLY);

	(void)state;
	fixture_policy(&f, "ready\n");
	assert_true(leak > 2);
	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(expected, sizeof(expected), "%s\n", here);
	SHELL("pwd; ls /proc/self/fd | tr '\\n' ' '");
	assert_true(said(expected));
	assert_true(said("0 1 2 3 "));
	assert_null(strstr(o.out, " 4 "));
	close(leak);
}

static int open_fixture(void **state)
{
	(void)state;
	fixture_open(&f);
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	fixture_close(&f);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_commands_status_is_ours),
	        cmocka_unit_test(what_cannot_run_is_told_apart),
	        cmocka_unit_test(a_supervisor_that_refuses_is_125_and_its_words),
	        cmocka_unit_test(mistakes_on_the_command_line_are_125),
	        cmocka_unit_test(environment_is_given_with_trust_and_placeholders),
	        cmocka_unit_test(secrets_are_named_in_one_line),
	        cmocka_unit_test(a_credentials_variable_goes_to_the_supervisor_and_nowhere_else),
	        cmocka_unit_test(the_outside_process_shows_the_secret_no_more),
	        cmocka_unit_test(a_value_of_the_largest_size_passes_and_one_beyond_does_not),
	        cmocka_unit_test(the_ca_is_in_every_store),
	        cmocka_unit_test(resolver_and_hosts_name_the_gate_only),
	        cmocka_unit_test(processes_and_interfaces_outside_are_not_seen),
	        cmocka_unit_test(mounts_are_locked_and_limits_hold),
	        cmocka_unit_test(switches_of_the_machine_are_read_only),
	        cmocka_unit_test(a_local_socket_cannot_be_reached),
	        cmocka_unit_test(signals_reach_the_command),
	        cmocka_unit_test(nothing_survives_when_vethguard_is_killed),
	        cmocka_unit_test(nothing_survives_when_the_supervisor_dies),
	        cmocka_unit_test(a_killed_init_is_an_ended_command),
	        cmocka_unit_test(what_the_command_leaves_behind_ends_with_it),
	        cmocka_unit_test(descriptors_and_directory),
	};
	int status;

	if (fixture_play(argc, argv, &status))
		return status;
	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
