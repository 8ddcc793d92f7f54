/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines, where a sidecar may be, what it sees of itself, and the files that it shares. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/sidecar/sidecar.h"
#include "privileges.h"

static struct sidecar_options options;
static int status;

static int init(char *first, ...)
{
	char *argv[16] = {first};
	va_list more;

	va_start(more, first);
	for (size_t i = 1; i < 15 && argv[i - 1]; i++)
		argv[i] = va_arg(more, char *);
	va_end(more);
	return sidecar_init_options(argv, &options, &status);
}

static int run(char *first, ...)
{
	char *argv[16] = {first};
	va_list more;

	va_start(more, first);
	for (size_t i = 1; i < 15 && argv[i - 1]; i++)
		argv[i] = va_arg(more, char *);
	va_end(more);
	return sidecar_run_options(argv, &options, &status);
}

#define W(text) ((char[]){text})

static void init_takes_the_fences_options(void **state)
{
	(void)state;
	assert_int_equal(init(W("--uid"), W("1337"), NULL), 0);
	assert_int_equal(options.fence.uid, 1337);
	assert_true(options.fence.loopback_all);
	assert_int_equal(options.fence.tcp_port, 3128);
	assert_int_equal(options.fence.dns_port, 7653);
	assert_int_equal(options.fence.synthetic4.bits, 15);
	assert_int_equal(options.fence.udp_count, 0);
	assert_int_equal(init(W("-u"), W("5"), W("--loopback"), W("80,65535"), W("--inbound"),
	                         W("8080"), W("--check"), NULL),
	        0);
	assert_false(options.fence.loopback_all);
	assert_int_equal(options.fence.loopback_count, 2);
	assert_int_equal(options.fence.loopback_ports[1], 65535);
	assert_int_equal(options.fence.inbound_ports[0], 8080);
	assert_true(options.check);
	assert_int_equal(init(W("-u"), W("5"), W("--loopback"), W("none"), NULL), 0);
	assert_false(options.fence.loopback_all);
	assert_int_equal(options.fence.loopback_count, 0);
	assert_int_equal(
	        init(W("-u"), W("5"), W("--udp"), W("123"), W("--udp"), W("443"), NULL), 0);
	assert_int_equal(options.fence.udp_count, 2);
	assert_int_equal(options.fence.udp_ports[1], 443);
}

static void init_refuses_what_makes_no_fence(void **state)
{
	(void)state;
	assert_int_equal(init(NULL), -1);
	assert_int_equal(status, CLI_USAGE);
	assert_int_equal(init(W("--uid"), W("0"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("2147483648"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("root"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("more"), NULL), -1);
	assert_int_equal(
	        init(W("--uid"), W("5"), W("--loopback"), W("1,2,3,4,5,6,7,8,9"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--loopback"), W("1,,2"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--loopback"), W(""), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--inbound"), W("0"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--inbound"), W("7653"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--udp"), W("0"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--udp"), W("53"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--udp"), W("7653"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--udp"), W("65536"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--udp"), W("1,2"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--watch"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--dns-port"), W("3128"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--dns-port"), W("7677"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--config"), W("/nonexistent"), NULL), -1);
	assert_int_equal(init(W("--uid"), W("5"), W("--policy"), W("p"), NULL), -1);
}

static void run_takes_a_policy_and_the_fence_only_with_init(void **state)
{
	(void)state;
	assert_int_equal(run(W("--policy"), W("p"), NULL), 0);
	assert_int_equal(options.run.shared_dns_port, 7653);
	assert_int_equal(options.run.shared_packets, -1);
	assert_int_equal(run(W("-p"), W("p"), W("--udp"), W("5000"), W("--watch"), NULL), 0);
	assert_true(options.watch);
	assert_int_equal(options.run.shared_udp_count, 1);
	assert_int_equal(options.run.shared_udp_ports[0], 5000);
	assert_int_equal(run(NULL), -1);
	assert_int_equal(status, CLI_FAILED);
	assert_int_equal(run(W("-p"), W("p"), W("--uid"), W("5"), NULL), -1);
	assert_int_equal(run(W("-p"), W("p"), W("--inbound"), W("80"), NULL), -1);
	assert_int_equal(run(W("-p"), W("p"), W("--init"), NULL), -1);
	assert_int_equal(run(W("-p"), W("p"), W("--init"), W("-u"), W("5"), NULL), 0);
	assert_int_equal(run(W("-p"), W("p"), W("--share-as"), W("/x"), NULL), -1);
	assert_int_equal(run(W("-p"), W("p"), W("-s"), W("/s"), W("--share-as"), W("x"), NULL), -1);
	assert_int_equal(run(W("-p"), W("p"), W("--name"), W("a b"), NULL), -1);
}

/* The machine's own namespace is not fenced if it can be recognized as such. */
static void the_machines_own_namespace_is_refused(void **state)
{
	struct failure failure = {""};
	bool own = access("/proc/sys/net/core/netdev_budget", F_OK) == 0;

	(void)state;
	assert_int_equal(sidecar_place(false, &failure), 0);
	assert_int_equal(sidecar_place(true, &failure) == 0, !own);
	if (own)
		assert_non_null(strstr(failure.text, "machine's own network namespace"));
	if (!privileges_for_namespaces())
		return;
	assert_int_equal(sidecar_place(true, &failure), 0);
}

static void without_a_fence_there_is_no_witness(void **state)
{
	struct fence_shared_spec spec = {.tcp_port = 3128, .dns_port = 7653};
	struct failure failure = {""};

	(void)state;
	assert_false(sidecar_witness_again());
	assert_int_not_equal(sidecar_witness(&spec, &failure), 0);
	assert_non_null(strstr(failure.text, "no fence is in force"));
}

static char *read_file(const char *directory, const char *name)
{
	static char text[8192];
	char path[512];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	return text;
}

static void the_share_has_placeholders_quoted_and_follows_no_link(void **state)
{
	char directory[] = "/tmp/vethguard-share-XXXXXX", path[512], command[600];
	struct sidecar_options o = {.run = {.proxy_env = true}, .share_as = "/guard"};
	struct failure failure = {""};
	struct message_run_ready ready = {.sandbox = SLICE("box"),
	        .gate4 = {.family = 4, .bytes = {127, 0, 0, 1}},
	        .proxy_port = 3128,
	        .root_pem = SLICE("-----BEGIN CERTIFICATE-----\n"),
	        .env_count = 1,
	        .env = {{SLICE("API_KEY"), SLICE("it's $(x)")}}};

	(void)state;
	assert_non_null(mkdtemp(directory));
	o.share = directory;
	snprintf(path, sizeof(path), "%s/ca.pem", directory);
	assert_int_equal(symlink("/tmp/vethguard-nowhere", path), 0);
	assert_int_equal(sidecar_share_begin(&o, &failure), 0);
	assert_int_equal(sidecar_share(&o, &ready, &failure), 0);
	assert_int_not_equal(access("/tmp/vethguard-nowhere", F_OK), 0);
	assert_string_equal(read_file(directory, "ca.pem"), "-----BEGIN CERTIFICATE-----\n");
	assert_non_null(strstr(read_file(directory, "env"), "\nAPI_KEY=it's $(x)\n"));
	assert_non_null(strstr(read_file(directory, "env"), "SSL_CERT_FILE=/guard/bundle.pem\n"));
	assert_non_null(
	        strstr(read_file(directory, "env.sh"), "\nexport API_KEY='it'\\''s $(x)'\n"));
	assert_non_null(strstr(read_file(directory, "env.sh"), "'http://127.0.0.1:3128'\n"));
	assert_string_equal(read_file(directory, "ready"), "box");
	sidecar_share_end(&o);
	snprintf(path, sizeof(path), "%s/ready", directory);
	assert_int_not_equal(access(path, F_OK), 0);
	ready.env[0].value = SLICE("two\nlines"); /* env has no way to write it */
	assert_int_not_equal(sidecar_share(&o, &ready, &failure), 0);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
	assert_int_not_equal(sidecar_share_begin(&o, &failure), 0);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Puts the file's times well before now, as for one that nobody has touched lately. */
static void make_old(const char *path)
{
	const struct timespec times[2] = {{1000, 0}, {1000, 0}};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	usleep(20000); /* its ctime is now, which the clock has to leave behind */
}

static void files_of_the_policy_are_watched(void **state)
{
	char directory[] = "/tmp/vethguard-watch-XXXXXX", one[64], two[64], gone[64];
	struct sidecar_watch w = {0};
	struct failure failure = {""};
	struct message_paths paths = {.count = 3}, last = {.count = 1}, none = {.count = 0};

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(one, sizeof(one), "%s/one", directory);
	snprintf(two, sizeof(two), "%s/two", directory);
	snprintf(gone, sizeof(gone), "%s/gone", directory);
	write_file(one, "1");
	write_file(two, "2");
	make_old(one);
	make_old(two);
	assert_false(sidecar_watch_changed(&w)); /* nothing is watched yet */
	paths.paths[0] = slice_from_string(one);
	paths.paths[1] = slice_from_string(two);
	paths.paths[2] = last.paths[0] = slice_from_string(gone);
	sidecar_watch_begin(&w);
	assert_int_equal(sidecar_watch_take(&w, &paths, &failure), 0);
	assert_false(sidecar_watch_changed(&w));
	write_file(two, "other"); /* not the policy's own file */
	assert_true(sidecar_watch_changed(&w));
	sidecar_watch_begin(&w); /* a reading that is refused: the list stays */
	assert_false(sidecar_watch_changed(&w));
	assert_int_equal(unlink(two), 0);
	assert_false(sidecar_watch_changed(&w));
	write_file(gone, "3"); /* one that was missing */
	assert_true(sidecar_watch_changed(&w));
	sidecar_watch_begin(&w);
	paths.count = 1;
	assert_int_equal(sidecar_watch_take(&w, &paths, &failure), 0);
	write_file(gone, "three"); /* it belongs to the policy no longer */
	assert_false(sidecar_watch_changed(&w));
	sidecar_watch_begin(&w);
	write_file(gone, "four"); /* after the beginning: perhaps after it was read */
	assert_int_equal(sidecar_watch_take(&w, &last, &failure), 0);
	assert_true(sidecar_watch_changed(&w));
	assert_int_equal(sidecar_watch_take(&w, &none, &failure), 0);
	assert_false(sidecar_watch_changed(&w));
	sidecar_watch_end(&w);
	assert_int_equal(unlink(one), 0);
	assert_int_equal(unlink(gone), 0);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(init_takes_the_fences_options),
	        cmocka_unit_test(init_refuses_what_makes_no_fence),
	        cmocka_unit_test(run_takes_a_policy_and_the_fence_only_with_init),
	        cmocka_unit_test(without_a_fence_there_is_no_witness),
	        cmocka_unit_test(the_share_has_placeholders_quoted_and_follows_no_link),
	        cmocka_unit_test(files_of_the_policy_are_watched),
	        cmocka_unit_test(the_machines_own_namespace_is_refused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
