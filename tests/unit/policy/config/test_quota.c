/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's server of budgets that hosts share: every key, defaults, and what is wrong.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "key_test.h"

static int load(const char *quota, struct config *config)
{
	return key_load("quota", quota, config);
}

static void test_good(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(
	        load("{server: 'rediss://Quota.Example:7000/15', user: me, password: 'file:p', "
	             "hosts: 3}",
	                &config),
	        0);
	assert_string_equal(config.quota.host, "quota.example");
	assert_true(config.quota.tls);
	assert_int_equal(config.quota.port, 7000);
	assert_int_equal(config.quota.database, 15);
	assert_string_equal(config.quota.user, "me");
	assert_string_equal(config.quota.password_file, "/etc/vethguard/p");
	assert_int_equal(config.quota.hosts, 3);
	assert_int_equal(config.quota.address.family, 0);
	config_fini(&config);
	assert_int_equal(load("{server: 'redis://[2001:db8::7]'}", &config), 0);
	assert_false(config.quota.tls);
	assert_string_equal(config.quota.host, "2001:db8::7");
	assert_int_equal(config.quota.address.family, 6);
	assert_int_equal(config.quota.port, 6379);
	assert_int_equal(config.quota.hosts, 0);
	config_fini(&config);
	assert_int_equal(load("{server: 'redis://10.0.0.1/'}", &config), 0);
	assert_string_equal(config.quota.host, "10.0.0.1");
	config_fini(&config);
	assert_string_equal(config.quota.host, "");
}

static void test_bad(void **state)
{
#define SERVER "server: 'redis://a.example'"
	static const struct {
		const char *text, *says;
	} rows[] = {{"[]", "must be a mapping"}, {"{}", "needs a server"},
	        {"{server: 'http://a.example'}", "server must be redis://HOST"},
	        {"{server: a.example}", "server must be"},
	        {"{server: 'redis://'}", "server must be"},
	        {"{server: 'redis://a.example/16'}", "0 to 15"},
	        {"{server: 'redis://a.example/x'}", "server must be"},
	        {"{server: 'redis://a.example/1/2'}", "server must be"},
	        {"{server: 'redis://a.example:0'}", "server must be"},
	        {"{server: 'redis://a.example:70000'}", "server must be"},
	        {"{server: 'redis://a b'}", "server must be"},
	        {"{server: 'redis://me@a.example'}", "keys of their own"},
	        {"{" SERVER ", user: me}", "user needs a password"},
	        {"{" SERVER ", user: 'm e', password: 'file:p'}", "must not hold a space"},
	        {"{" SERVER ", password: plain}", "file:PATH"},
	        {"{" SERVER ", password: 'env:P'}", "file:PATH"},
	        {"{" SERVER ", password_file: p}", "write password: file:PATH"},
	        {"{" SERVER ", hosts: 1}", "from 2 to 10000"},
	        {"{" SERVER ", hosts: 10001}", "from 2 to 10000"},
	        {"{" SERVER ", sever: x}", "unknown key"}};
#undef SERVER
	struct config config;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = NULL;
		size_t n;
		FILE *out;

		assert_int_equal(load(rows[i].text, &config), -EINVAL);
		out = open_memstream(&text, &n);
		diag_print(&diags, out);
		fclose(out);
		if (!strstr(text, rows[i].says))
			fail_msg("%s: %s", rows[i].text, text);
		free(text);
		config_fini(&config);
	}
}

/* A URL that holds a password is refused without quoting it. */
static void test_password_in_the_url(void **state)
{
	struct config config;
	char *text = NULL;
	size_t n;
	FILE *out;

	(void)state;
	assert_int_equal(load("{server: 'redis://me:hunter2@a.example'}", &config), -EINVAL);
	out = open_memstream(&text, &n);
	diag_print(&diags, out);
	fclose(out);
	assert_null(strstr(text, "hunter2"));
	free(text);
	config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad),
	        cmocka_unit_test(test_password_in_the_url)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
