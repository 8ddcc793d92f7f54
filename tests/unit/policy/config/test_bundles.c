/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's bundles: every key, defaults, the messages for what is wrong, and who names
 * their files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/policy/config.h"

#define WHOLE "name: fleet, source: f.bundle, keys: f.pub"

static struct diag_list diags;

static int read_memory(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

static int load(const char *bundles, const char *more, struct config *config)
{
	static char text[65536];
	struct policy_reader reader = {text, read_memory, NULL};

	snprintf(text, sizeof(text), "bundles: %s\n%s", bundles, more);
	memset(&diags, 0, sizeof(diags));
	config_init(config);
	return config_load(&reader, "/etc/vethguard/config.yaml", config, &diags);
}

static void test_good(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(load("[{" WHOLE "}, {name: b-2, source: 'https://h/b', keys: [x, /y], "
	                      "refresh: 5s}, {name: c, source: 'https://h/c', keys: x}]",
	                         "", &config),
	        0);
	assert_int_equal(config.bundle_count, 3);
	assert_string_equal(config.bundles[0].name, "fleet");
	assert_string_equal(config.bundles[0].source, "/etc/vethguard/f.bundle");
	assert_string_equal(config.bundles[0].keys[0], "/etc/vethguard/f.pub");
	assert_int_equal(config.bundles[0].refresh_s, 0);
	assert_string_equal(config.bundles[1].source, "https://h/b");
	assert_int_equal(config.bundles[1].key_count, 2);
	assert_string_equal(config.bundles[1].keys[1], "/y");
	assert_int_equal(config.bundles[1].refresh_s, 5);
	assert_int_equal(config.bundles[2].refresh_s, 60);
	config_fini(&config);
	assert_null(config.bundles);
	assert_int_equal(load("[]", "", &config), 0);
	assert_int_equal(config.bundle_count, 0);
	config_fini(&config);
}

static void wrong(const char *bundles, const char *more, const char *words)
{
	struct config config;

	assert_int_equal(load(bundles, more, &config), -EINVAL);
	assert_true(diags.count > 0);
	if (!strstr(diags.items[0].message, words))
		fail_msg("%s %s: %s", bundles, more, diags.items[0].message);
	config_fini(&config);
}

static void test_wrong(void **state)
{
	(void)state;
	wrong("{" WHOLE "}", "", "list");
	wrong("[1]", "", "a bundle");
	wrong("[{source: x, keys: y}]", "", "name is missing");
	wrong("[{name: x, keys: y}]", "", "source is missing");
	wrong("[{name: x, source: y}]", "", "keys is missing");
	wrong("[{" WHOLE ", more: 1}]", "", "more");
	wrong("[{name: A, source: x, keys: y}]", "", "small letters");
	wrong("[{name: -a, source: x, keys: y}]", "", "small letters");
	wrong("[{name: a.b, source: x, keys: y}]", "", "small letters");
	wrong("[{name: aaaaaaaaaaaaaaaaaaaaaaaaa, source: x, keys: y}]", "", "name");
	wrong("[{name: a, source: 'http://h/x', keys: y}]", "", "https://");
	wrong("[{name: a, source: 'https://h/x#y', keys: y}]", "", "https://");
	wrong("[{name: a, source: 'bundle:b/x.yaml', keys: y}]", "", "https://");
	wrong("[{name: a, source: 'https://h/x', keys: y, refresh: 4s}]", "", "refresh");
	wrong("[{name: a, source: 'https://h/x', keys: y, refresh: 25h}]", "", "refresh");
	wrong("[{" WHOLE ", refresh: 1m}]", "", "five seconds");
	wrong("[{name: a, source: x, keys: []}]", "", "empty");
	wrong("[{name: a, source: x, keys: [1, 2, 3, 4, 5]}]", "", "more than 4 keys");
	wrong("[{" WHOLE "}, {" WHOLE "}]", "", "this name");
	wrong("[{name: a, source: x, keys: y}, {name: b, source: x, keys: y}, {name: c, source: x, "
	      "keys: y}, {name: d, source: x, keys: y}, {name: e, source: x, keys: y}]",
	        "", "more than 4 bundles");
}

#define SIGNER                                                                                \
	"gateway: {listen_plain: '127.0.0.1:1', signers: [{name: s, issuer: i, audience: g, " \
	"keys: '%s', rules: [{policy: '%s'}]}]}\n"

static const char *signer(const char *keys, const char *policy)
{
	static char text[1024];

	snprintf(text, sizeof(text), SIGNER, keys, policy);
	return text;
}

static void test_names(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(load("[{" WHOLE "}]", signer("bundle:fleet/k.jwks", "bundle:fleet/p.yaml"),
	                         &config),
	        0);
	assert_string_equal(config.gateway.signers[0].keys, "bundle:fleet/k.jwks");
	assert_int_equal(config.gateway.signers[0].refresh_s, 0);
	assert_string_equal(config.gateway.signers[0].rules[0].policy, "bundle:fleet/p.yaml");
	config_fini(&config);
	wrong("[{" WHOLE "}]", signer("bundle:other/k.jwks", "p.yaml"), "no bundle \"other\"");
	wrong("[{" WHOLE "}]", signer("k.jwks", "bundle:other/p.yaml"), "no bundle \"other\"");
	wrong("[{" WHOLE "}]", signer("bundle:fleet/p.yaml", "p.yaml"), "bundle:NAME/FILE.jwks");
	wrong("[{" WHOLE "}]", signer("k.jwks", "bundle:fleet/k.jwks"), "bundle:NAME/FILE.yaml");
	wrong("[{" WHOLE "}]", signer("k.jwks", "bundle:fleet/../p.yaml"), "bundle:NAME/FILE.yaml");
	wrong("[{" WHOLE "}]", signer("k.jwks", "bundle:fleet"), "bundle:NAME/FILE.yaml");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_good),
	        cmocka_unit_test(test_wrong), cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
