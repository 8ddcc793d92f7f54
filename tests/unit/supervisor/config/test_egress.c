/* SPDX-License-Identifier: Apache-2.0 */
/* What settings refuse for egress: invalid passwords, addresses of others, and a proxy for
 * traffic that it cannot carry. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/config/settings.h"

static char dir[64], policy[128], config[128], password[128];

static void put(const char *path, const char *text, mode_t mode)
{
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/vethguard-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(policy, sizeof(policy), "%s/policy.yaml", dir);
	snprintf(config, sizeof(config), "%s/config.yaml", dir);
	snprintf(password, sizeof(password), "%s/password", dir);
	put(policy, "vethguard: 1\nname: one\nallow:\n  - name: a\n    to: https://a.example\n",
	        0600);
	put(config,
	        "egress: {proxy: \"http://127.0.0.1:8080\", user: me, password_file: password}\n",
	        0600);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(policy);
	unlink(config);
	unlink(password);
	rmdir(dir);
	return 0;
}

/* refusal NULL: expected to load, with "user:password" as pair; else refused with these words. */
static void loads(const char *refusal, const char *pair)
{
	const struct identity own = {.uid = getuid(), .gid = getgid()};
	const struct policy_load_options options = {0};
	struct settings *registry = NULL, *s;
	char *error = NULL;

	s = settings_load(&registry, &own, policy, config, &options, NULL, &error);
	if (refusal) {
		assert_null(s);
		if (!error || !strstr(error, refusal))
			fail_msg("not \"%s\": %s", refusal, error ? error : "no memory");
	} else {
		assert_non_null(s);
		assert_int_equal(s->egress_pair.n, strlen(pair));
		assert_memory_equal(s->egress_pair.p, pair, strlen(pair));
		settings_put(s);
	}
	free(error);
}

static void passwords_of_a_file(void **state)
{
	char text[2048];

	(void)state;
	loads("No such file", NULL);
	put(password, "", 0600);
	loads("is empty", NULL);
	put(password, "\n", 0600);
	loads("is empty", NULL);
	put(password, "one\ntwo\n", 0600);
	loads("a second line", NULL);
	put(password, "a-tab\there\n", 0600);
	loads("control character", NULL);
	put(password, "x", 0600);
	loads("is too short together with egress.user", NULL);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	put(password, text, 0600);
	loads("is too long", NULL);
	put(password, "a-long-password\n", 0604);
	loads("can be read by everybody", NULL);
	put(password, "a-long-password\n", 0600);
	loads(NULL, "me:a-long-password");
}

static void passwords_of_the_url(void **state)
{
	(void)state;
	put(config, "egress: {proxy: \"http://u:x@127.0.0.1:8080\"}\n", 0600);
	loads("is too short together with its user", NULL);
	put(config, "egress: {proxy: \"http://u:a-long-password@127.0.0.1:8080\"}\n", 0600);
	loads(NULL, "u:a-long-password");
}

static void an_address_of_somebody_else(void **state)
{
	(void)state;
	put(config, "egress: {address: 192.0.2.77}\n", 0600);
	loads("this host has no such address", NULL);
}

static void a_proxy_carries_no_datagrams(void **state)
{
	(void)state;
	put(policy, "vethguard: 1\nname: one\nallow:\n  - name: a\n    to: udp://a.example:123\n",
	        0600);
	put(config, "egress: {proxy: \"http://127.0.0.1:8080\"}\n", 0600);
	loads("carries TCP only", NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(passwords_of_a_file),
	        T(passwords_of_the_url),
	        T(an_address_of_somebody_else),
	        T(a_proxy_carries_no_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
