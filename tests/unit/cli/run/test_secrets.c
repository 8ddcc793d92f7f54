/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables look like secrets, and which do not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/run/secrets.h"

static bool is_one(const char *name, const char *value)
{
	return run_secrets_is_one(slice_from_string(name), slice_from_string(value));
}

static void names_tell(void **state)
{
	static const char *const secret[] = {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	        "NPM_TOKEN", "NODE_AUTH_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "OPENAI_API_KEY",
	        "ANTHROPIC_API_KEY", "CLIENT_SECRET", "db_password", "PGPASSWORD", "MYSQL_PWD",
	        "API_KEY", "TOKEN", "GITHUB_PAT", "SSH_KEY_PASSPHRASE", "TLS_PRIVATE_KEY",
	        "TWINE_PASSWORD", "npm_config_//registry.example/:_authToken", "X_TOKEN"};
	static const char *const plain[] = {"PATH", "HOME", "COLORTERM", "AWS_ACCESS_KEY_ID",
	        "AWS_WEB_IDENTITY_TOKEN_FILE", "MAX_OUTPUT_TOKENS",
	        "GOOGLE_APPLICATION_CREDENTIALS", "SSH_AUTH_SOCK", "XDG_SESSION_ID", "TOKENIZER",
	        "SECRETARY", "_TOKEN", "APIKEYS", "TOKENX", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		if (!is_one(secret[i], "0123456789abcdef"))
			fail_msg("%s is not told", secret[i]);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (is_one(plain[i], "0123456789abcdef"))
			fail_msg("%s is told", plain[i]);
}

static void short_values_are_switches(void **state)
{
	(void)state;
	assert_false(is_one("USE_TOKEN", ""));
	assert_false(is_one("USE_TOKEN", "1"));
	assert_false(is_one("USE_TOKEN", "false"));
	assert_true(is_one("USE_TOKEN", "false!"));
}

static void urls_with_passwords(void **state)
{
	static const char *const secret[] = {"postgres://u:p@host/db", "redis://:p@host",
	        "amqps://user:p%40ss@h", "a=1 mongodb+srv://u:p@h/x", "http://x/ https://u:p@h",
	        "https://user:p:q@h", "x://u:p@"};
	static const char *const plain[] = {"postgres://host/db", "postgres://u@host/db",
	        "postgres://u:@host", "http://host:80/a@b", "http://host/u:p@x", "http://h?u:p@x",
	        "http://h#u:p@x", "://u:p@h", " ://u:p@h", "u:p@host", "mailto:u:p@h", "http://",
	        "http://u:p", "", "http://u :p@h"};

	(void)state;
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		if (!is_one("DATABASE", secret[i]))
			fail_msg("%s is not told", secret[i]);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (is_one("DATABASE", plain[i]))
			fail_msg("%s is told", plain[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(names_tell),
	        cmocka_unit_test(short_values_are_switches),
	        cmocka_unit_test(urls_with_passwords),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
