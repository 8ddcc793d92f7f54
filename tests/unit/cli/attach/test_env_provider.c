/* SPDX-License-Identifier: Apache-2.0 */
/* The options for the SDKs of providers: their fields, and what they are refused for; the file of a
 * token. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/attach/env.h"
#include "cli/commands.h"

#define TOKEN "vgs_a-b_c"
#define BY_NAME "{\"tls\":\"gw.test:8443\",\"plain\":\"gw.test:1080\"}"
#define BY_ADDRESS "{\"tls\":\"192.0.2.7:8443\",\"plain\":\"192.0.2.7:1080\"}"
#define BY_ADDRESS6 "{\"tls\":\"[2001:db8::7]:8443\",\"plain\":null}"

static json_t *answer_of(const char *gateway)
{
	json_t *answer = json_pack("{s:s}", "name", "one"), *member;

	member = json_loads(gateway, JSON_DECODE_ANY, NULL);
	assert_non_null(member);
	json_object_set_new(answer, "gateway", member);
	return answer;
}

/* What is printed for a sandbox with the variable A; NULL: refused. */
static json_t *options(const char *format, const char *gateway, const char *token)
{
	static char text[8192];
	json_t *answer = answer_of(gateway), *read;
	struct environment env;
	FILE *file = tmpfile();
	int own = dup(STDOUT_FILENO), rc;
	size_t n;

	environment_init(&env);
	environment_set(&env, slice_from_string("A"), slice_from_string("b=c"));
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	rc = env_provider_print(format, &env, answer, token);
	fflush(stdout);
	dup2(own, STDOUT_FILENO);
	close(own);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = 0;
	fclose(file);
	environment_fini(&env);
	json_decref(answer);
	read = json_loads(text, 0, NULL);
	assert_true(rc == 0 ? read != NULL : rc == CLI_USAGE && n == 0);
	return read;
}

static void test_fields(void **state)
{
	static const struct {
		const char *format, *gateway, *expected;
	} cases[] = {
	        {"e2b", BY_NAME,
	                "{\"network\":{\"egressProxy\":{\"address\":\"gw.test:1080\",\"username\":"
	                "\"session\",\"password\":\"" TOKEN "\"}},\"envs\":{\"A\":\"b=c\"}}"},
	        {"e2b", BY_ADDRESS,
	                "{\"network\":{\"egressProxy\":{\"address\":\"192.0.2.7:1080\","
	                "\"username\":\"session\",\"password\":\"" TOKEN
	                "\"}},\"envs\":{\"A\":\"b=c\"}}"},
	        {"modal", BY_NAME,
	                "{\"outboundDomainAllowlist\":[\"gw.test\"],\"env\":{\"A\":\"b=c\"}}"},
	        {"modal", BY_ADDRESS,
	                "{\"outboundCidrAllowlist\":[\"192.0.2.7/32\"],\"env\":{\"A\":\"b=c\"}}"},
	        {"daytona", BY_NAME,
	                "{\"domainAllowList\":\"gw.test\",\"envVars\":{\"A\":\"b=c\"}}"},
	        {"daytona", BY_ADDRESS,
	                "{\"networkAllowList\":\"192.0.2.7/32\",\"envVars\":{\"A\":\"b=c\"}}"},
	        {"deno", BY_NAME, "{\"allowNet\":[\"gw.test:8443\"],\"env\":{\"A\":\"b=c\"}}"},
	        {"deno", BY_ADDRESS6,
	                "{\"allowNet\":[\"[2001:db8::7]:8443\"],\"env\":{\"A\":\"b=c\"}}"},
	        {"runloop", BY_NAME,
	                "{\"network_policy\":{\"name\":\"vethguard-one\",\"allowed_hostnames\":["
	                "\"gw.test\"]},\"devbox\":{\"environment_variables\":{\"A\":\"b=c\"}}}"},
	        {"runloop", BY_ADDRESS,
	                "{\"network_policy\":{\"name\":\"vethguard-one\",\"allowed_cidrs\":[{"
	                "\"cidr\":\"192.0.2.7/32\",\"ports\":[{\"port\":8443}]}]},\"devbox\":{"
	                "\"environment_variables\":{\"A\":\"b=c\"}}}"},
	        {"langsmith", BY_NAME,
	                "{\"proxyConfig\":{\"access_control\":{\"allow_list\":[\"gw.test\"]}},"
	                "\"runConfig\":{\"env_vars\":{\"A\":\"b=c\"}}}"},
	        {"openai-agents", BY_NAME, "{\"env\":{\"A\":\"b=c\"}}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *expected = json_loads(cases[i].expected, 0, NULL);
		json_t *read = options(cases[i].format, cases[i].gateway, TOKEN);

		assert_non_null(expected);
		if (!json_equal(read, expected))
			fail_msg("%s %s", cases[i].format, cases[i].gateway);
		json_decref(read);
		json_decref(expected);
	}
}

static void test_refused(void **state)
{
	static const char *const formats[] = {
	        "e2b", "modal", "daytona", "deno", "runloop", "langsmith", "openai-agents"};
	/* No session; no address; addresses that nobody else can reach; invalid addresses. */
	static const char *const gateways[] = {"null", "7", "{}", "{\"tls\":null,\"plain\":null}",
	        "{\"tls\":\"127.0.0.1:8443\",\"plain\":\"127.0.0.1:1080\"}",
	        "{\"tls\":\"[::1]:8443\",\"plain\":\"[::1]:1080\"}",
	        "{\"tls\":\"gw.test\",\"plain\":\"gw.test\"}",
	        "{\"tls\":\"gw.test:x\",\"plain\":\"gw.test:65536\"}"};

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		assert_null(options(formats[i], BY_NAME, ""));
		for (size_t j = 0; j < sizeof(gateways) / sizeof(gateways[0]); j++)
			if (options(formats[i], gateways[j], TOKEN))
				fail_msg("%s %s", formats[i], gateways[j]);
		assert_true(env_provider_is_known(formats[i]));
	}
	/* An address of one kind is not one of the other. */
	assert_null(options("e2b", BY_ADDRESS6, TOKEN));
	assert_null(options("deno", "{\"tls\":null,\"plain\":\"gw.test:1080\"}", TOKEN));
	assert_false(env_provider_is_known("fly"));
	assert_false(env_provider_is_known(""));
	assert_true(env_provider_leads("e2b"));
	assert_false(env_provider_leads("modal"));
	assert_false(env_provider_leads("shell"));
}

static bool token(const char *bytes, size_t n, const char *gateway, char out[ENV_TOKEN_MAX + 1])
{
	char path[] = "/tmp/vethguard-token-XXXXXX";
	json_t *answer = answer_of(gateway);
	int fd = mkstemp(path);
	bool read;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	read = env_token_read(path, answer, out);
	unlink(path);
	json_decref(answer);
	return read;
}

static void test_token(void **state)
{
	static const char *const wrong[] = {"", "\n", "\r\n\n", "a b", "a\nb", " a", "a:b", "a@b",
	        "a/b", "a%20b", "a'b", "a\"b", "a\\b", "$(id)", "`id`", "a;b", "\x7f", "\xc3\xa4",
	        "\x1b[2J"};
	char out[ENV_TOKEN_MAX + 1], big[ENV_TOKEN_MAX + 9];
	json_t *answer = answer_of(BY_NAME);

	(void)state;
	assert_true(token(TOKEN, strlen(TOKEN), BY_NAME, out));
	assert_string_equal(out, TOKEN);
	assert_true(token("a.b.c\r\n", 7, BY_NAME, out));
	assert_string_equal(out, "a.b.c");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (token(wrong[i], strlen(wrong[i]), BY_NAME, out))
			fail_msg("%zu", i);
	assert_false(token("a\0b", 3, BY_NAME, out));
	memset(big, 'a', sizeof(big));
	assert_true(token(big, ENV_TOKEN_MAX, BY_NAME, out));
	assert_false(token(big, ENV_TOKEN_MAX + 1, BY_NAME, out));
	assert_false(token(TOKEN, strlen(TOKEN), "null", out));
	assert_false(token(TOKEN, strlen(TOKEN), "{\"tls\":null,\"plain\":null}", out));
	assert_false(env_token_read("/tmp/vethguard-no-such-token", answer, out));
	assert_false(env_token_read("/", answer, out));
	json_decref(answer);
}

static void test_proxy(void **state)
{
	static const struct {
		const char *gateway, *expected;
	} cases[] = {{BY_NAME, "https://session:" TOKEN "@gw.test:8443"},
	        {BY_ADDRESS6, "https://session:" TOKEN "@[2001:db8::7]:8443"},
	        {"{\"tls\":null,\"plain\":\"127.0.0.1:8080\"}",
	                "http://session:" TOKEN "@127.0.0.1:8080"},
	        {"{\"tls\":null,\"plain\":null}", ""}, {"null", ""}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *answer = answer_of(cases[i].gateway);
		struct environment env;

		environment_init(&env);
		env_set_gateway(&env, answer, TOKEN);
		for (size_t j = 0; j < 2; j++) {
			const char *url = environment_get(&env, j ? "HTTPS_PROXY" : "http_proxy");

			assert_string_equal(url ? url : "", cases[i].expected);
		}
		environment_fini(&env);
		json_decref(answer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_fields),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_token),
	        cmocka_unit_test(test_proxy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
