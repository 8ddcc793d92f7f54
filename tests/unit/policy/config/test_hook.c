/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's endpoints that are told what waits for a person: every key, defaults, what is
 * wrong; and how their text is filled in. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/buf.h"
#include "key_test.h"

#define HOOK "url: 'https://a.example/x', key: 'file:k'"

static int load(const char *ask, struct config *config)
{
	return key_load("ask", ask, config);
}

static void test_good(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(
	        load("{webhook: {" HOOK ", timeout: 2s, text: '{\"t\": \"${id} ${url}\"}'}, "
	             "decider: {" HOOK "}}",
	                &config),
	        0);
	assert_string_equal(config.ask.webhook.url, "https://a.example/x");
	assert_string_equal(config.ask.webhook.key_file, "/etc/vethguard/k");
	assert_int_equal(config.ask.webhook.timeout_ms, 2000);
	assert_int_equal(config.ask.decider.timeout_ms, CONFIG_HOOK_TIMEOUT_MS);
	config_fini(&config);
	assert_int_equal(load("{decider: {program: [/bin/a, b], user: nobody}}", &config), 0);
	assert_int_equal(config.ask.decider.program.count, 2);
	assert_string_equal(config.ask.decider.user, "nobody");
	config_fini(&config);
	assert_int_equal(load("{webhook: {url: 'https://a.example/'}}", &config), 0);
	assert_string_equal(config.ask.decider.url, "");
	config_fini(&config);
}

static void test_bad(void **state)
{
	static const char *const rows[] = {"[]", "{hook: {" HOOK "}}", "{webhook: {}}",
	        "{webhook: {url: 'http://a.example/'}}", "{webhook: {url: a.example}}",
	        "{webhook: {url: 'https://u@a.example/'}}",
	        "{decider: {url: 'https://a.example/'}}", "{decider: {program: [/bin/a]}}",
	        "{decider: {program: [a], user: nobody}}", "{decider: {program: [], user: nobody}}",
	        "{decider: {program: /bin/a, user: nobody}}",
	        "{decider: {program: [/bin/a], user: root}}",
	        "{decider: {program: [/bin/a], user: nobody, key: 'file:k'}}",
	        "{webhook: {program: [/bin/a], user: nobody}}", "{decider: {" HOOK ", text: '{}'}}",
	        "{webhook: {" HOOK ", key2: x}}",
	        "{webhook: {url: 'https://a.example/', key: secret}}",
	        "{webhook: {url: 'https://a.example/', key: 'env:KEY'}}",
	        "{webhook: {" HOOK ", timeout: 61s}}", "{webhook: {" HOOK ", timeout: 1ms}}",
	        "{webhook: {" HOOK ", text: '{'}}", "{webhook: {" HOOK ", text: 'x ${id}'}}",
	        "{webhook: {" HOOK ", text: '{\"t\": \"${nobody}\"}'}}",
	        "{webhook: {" HOOK ", text: '{\"t\": \"${id\"}'}}",
	        "{webhook: {" HOOK ", text: '{\"t\": 1, \"t\": 2}'}}"};
	struct config config;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (load(rows[i], &config) != -EINVAL || !diags.count)
			fail_msg("loaded: %s", rows[i]);
		config_fini(&config);
	}
}

static bool value(void *context, struct slice name, struct slice *out)
{
	*out = slice_from_string(context);
	return slice_equals(name, SLICE("x"));
}

static int fill(const char *text, const char *with, char out[256])
{
	struct buf b;
	int rc;

	buf_init(&b, 200);
	rc = config_hook_fill(slice_from_string(text), value, (void *)(uintptr_t)with, &b);
	snprintf(out, 256, "%.*s", (int)b.len, b.len ? (const char *)buf_bytes(&b) : "");
	buf_fini(&b);
	return rc;
}

/* A value that is filled in cannot end the JSON string around it. */
static void test_filling(void **state)
{
	char out[256], longer[256];

	(void)state;
	assert_int_equal(fill("{\"a\": \"${x}$x\"}", "\"}, {\"\\\n", out), 0);
	assert_string_equal(out, "{\"a\": \"\\\"}, {\\\"\\\\\\u000a$x\"}");
	assert_int_equal(fill("${x}${x}", "1", out), 0);
	assert_string_equal(out, "11");
	assert_int_equal(fill("${y}", "1", out), -EINVAL);
	assert_int_equal(fill("${x", "1", out), -EINVAL);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_not_equal(fill("${x}", longer, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_good),
	        cmocka_unit_test(test_bad),
	        cmocka_unit_test(test_filling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
