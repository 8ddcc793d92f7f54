/* SPDX-License-Identifier: Apache-2.0 */
/* A registry and its token service through a whole proxy: who gets the login, who gets the token,
 * and what the sandbox sees of both. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"

#define HOLDER "vethguard-hub-0123456789abcdef0123456789abcdef"
#define TOKEN "registry-token-0123456789"
#define ASK "/token?service=reg&scope=repository:acme/app:pull"
#define MANIFEST "GET /v2/acme/app/manifests/latest"

static const char registry_policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "credentials:\n"
        "  hub:\n"
        "    source: \"env:KEY\"\n"
        "    inject: docker-registry\n"
        "    username: agent\n"
        "    realm: \"https://c.test:%1$u/token\"\n"
        "    service: reg\n"
        "    repositories: [acme/*]\n"
        "allow:\n"
        "  - {name: registry, to: \"https://a.test:%1$u\", credential: hub}\n"
        "  - {name: token, to: \"https://c.test:%1$u\", paths: [/token], credential: hub}\n"
        "  - {name: elsewhere, to: \"https://d.test:%1$u\"}\n";

static int set_up_registry(void **state)
{
	const struct world_options options = {.timeouts = patient_timeouts,
	        .limits = usual_limits,
	        .send_bytes = 8192,
	        .policy = registry_policy};

	(void)state;
	world_open(&w, &options);
	return credential_store_set_placeholder(w.store, 0, SLICE(HOLDER));
}

/* "Basic " and the base64 of "agent:" SECRET_VALUE */
#define LOGIN "Authorization: Basic YWdlbnQ6czNjcjN0LVRPS0VOLXZhbHVlLzAxMjM0NTY3ODk=\r\n"

static char text[256]; /* what the sandbox got for the token */

/* The client asks for a token with these fields, and the service sends this answer. */
static struct peer *ask_for_token(const char *fields, const char *answer)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	ask(c, "GET " ASK, "c.test", fields);
	o = origin(&w, true);
	expect_head(o, "GET " ASK " ");
	assert_true(head_has(o, LOGIN));
	assert_true(head_has(o, "accept-encoding: identity"));
	say(o, answer);
	take_head(c);
	hang_up(o, false);
	return c;
}

static void respond(char *out, size_t cap, const char *content)
{
	snprintf(out, cap,
	        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
	        "%zu\r\n\r\n%s",
	        strlen(content), content);
}

/* Gets a token; leaves the text that stands for it in text[]. */
static void get_token(const char *fields, const char *token)
{
	char content[1024], answer[2048];
	const char *at, *end;
	struct peer *c;

	snprintf(content, sizeof(content),
	        "{\"token\":\"%s\",\"access_token\":\"%s\",\"refresh_token\":\"refresh-0123\","
	        "\"expires_in\":300,\"note\":\"" SECRET_VALUE "\"}",
	        token, token);
	respond(answer, sizeof(answer), content);
	c = ask_for_token(fields, answer);
	assert_true(head_has(c, "HTTP/1.1 200 "));
	UNTIL(&w, has(c, "}", 1));
	assert_false(has(c, token, strlen(token)) || has(c, "refresh-0123", 12) ||
	             has(c, SECRET_VALUE, sizeof(SECRET_VALUE) - 1));
	at = memmem(buf_bytes(&c->in), c->in.len, "{\"token\":\"", 10);
	assert_non_null(at);
	at += 10;
	end = memchr(at, '"', 250);
	assert_non_null(end);
	snprintf(text, sizeof(text), "%.*s", (int)(end - at), at);
	assert_true(strstr(text, "vethguard-") == text);
	hang_up(c, false);
}

/* The sandbox sends `shown` in Authorization; the registry gets `sent` there, or nothing if it is
 * NULL. */
static void use(const char *shown, const char *sent)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;
	char fields[512], expected[512];

	snprintf(fields, sizeof(fields), "Authorization: %s\r\n", shown);
	ask(c, MANIFEST, "a.test", fields);
	o = origin(&w, true);
	expect_head(o, MANIFEST " ");
	if (sent) {
		snprintf(expected, sizeof(expected), "Authorization: %s\r\n", sent);
		assert_true(head_has(o, expected));
	} else {
		assert_false(head_has(o, "authorization"));
	}
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Echo: " TOKEN "\r\n\r\n{}");
	take_head(c);
	if (sent)
		assert_false(head_has(c, TOKEN));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_pull(void **state)
{
	char shown[512];

	(void)state;
	get_token("", TOKEN);
	snprintf(shown, sizeof(shown), "Bearer %s", text);
	use(shown, "Bearer " TOKEN);
	snprintf(shown, sizeof(shown), "bEARER  %s ", text);
	use(shown, "Bearer " TOKEN);
	assert_null(find_finding(&w, EVENT_FINDING_PLACEHOLDER_LEAK));
	assert_int_equal(w.asked, 1);
}

/* The sandbox's own logins are not sent, wherever they are shown. */
static void test_what_the_sandbox_brings(void **state)
{
	char shown[512];

	(void)state;
	get_token("Authorization: Basic bWU6bXktb3du\r\n", TOKEN);
	use("Basic bWU6bXktb3du", NULL);
	use("Bearer something-else", NULL);
	use("Bearer " HOLDER, NULL);
	use("Bearer " TOKEN, NULL);
	snprintf(shown, sizeof(shown), "Bearer %s,x", text);
	use(shown, NULL);
	snprintf(shown, sizeof(shown), "Bearer x%s", text);
	use(shown, NULL);
	snprintf(shown, sizeof(shown), "Basic %s", text);
	use(shown, NULL);
	snprintf(shown, sizeof(shown), "%s", text);
	use(shown, NULL);
}

/* A service may hand out the same token again; both texts are the same then. */
static void test_the_same_token_again(void **state)
{
	char first[sizeof(text)], shown[512];

	(void)state;
	get_token("", TOKEN);
	memcpy(first, text, sizeof(first));
	get_token("", TOKEN);
	assert_string_equal(first, text);
	get_token("", "another-token-98765");
	snprintf(shown, sizeof(shown), "Bearer %s", first);
	use(shown, "Bearer " TOKEN);
	snprintf(shown, sizeof(shown), "Bearer %s", text);
	use(shown, "Bearer another-token-98765");
}

/* When the operator rotates the login, the tokens from before are gone. */
static void test_rotated(void **state)
{
	char shown[512];

	(void)state;
	get_token("", TOKEN);
	snprintf(shown, sizeof(shown), "Bearer %s", text);
	use(shown, "Bearer " TOKEN);
	credential_store_rotate(w.store, 0);
	use(shown, NULL);
	get_token("", TOKEN);
	snprintf(shown, sizeof(shown), "Bearer %s", text);
	use(shown, "Bearer " TOKEN);
	credential_store_revoke(w.store, 0);
	assert_null(credential_store_held(w.store, 0));
}

static void test_other_places(void **state)
{
	char fields[512];
	struct peer *c;

	(void)state;
	get_token("", TOKEN);
	snprintf(fields, sizeof(fields), "Authorization: Bearer %s\r\n", text);
	c = client(&w, NAME_D, "d.test");
	ask(c, "GET /", "d.test", fields);
	expect_head(c, "HTTP/1.1 403 ");
	assert_non_null(find_finding(&w, EVENT_FINDING_PLACEHOLDER_LEAK));
	hang_up(c, false);
	assert_false(origin_is_asked(&w));
}

static void expect_refused(unsigned name, const char *host, const char *line, const char *why)
{
	struct peer *c = client(&w, name, host);

	ask(c, line, host, "");
	expect_head(c, "HTTP/1.1 403 ");
	UNTIL(&w, find_event(&w, EVENT_HTTP));
	assert_int_equal(find_event(&w, EVENT_HTTP)->policy_reason, POLICY_REASON_SCOPE);
	UNTIL(&w, has(c, why, strlen(why)));
	hang_up(c, false);
	assert_false(origin_is_asked(&w));
	assert_int_equal(w.asked, 0);
}

static void test_scopes(void **state)
{
	(void)state;
	expect_refused(NAME_C, "c.test", "GET /token?service=reg&scope=repository:evil/app:pull",
	        "does not name");
	expect_refused(NAME_C, "c.test", "GET /token?service=reg&scope=repository:acme/app:push",
	        "an action");
	expect_refused(NAME_C, "c.test", "POST " ASK, "by GET");
	expect_refused(NAME_A, "a.test", "GET /v2/evil/app/manifests/latest", "does not name");
	expect_refused(NAME_A, "a.test", "PUT /v2/acme/app/manifests/latest", "an action");
	expect_refused(NAME_A, "a.test", "GET /v2/_catalog", "no repository");
}

/* --- answers --- */

static void challenge(const char *fields, bool passes)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;
	char answer[9000];

	ask(c, "GET /v2/", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /v2/ ");
	snprintf(answer, sizeof(answer), "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n%s\r\n",
	        fields);
	say(o, answer);
	expect_head(c, passes ? "HTTP/1.1 401 " : "HTTP/1.1 502 ");
	if (!passes)
		assert_false(head_has(c, "www-authenticate"));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_challenges(void **state)
{
	static const struct {
		const char *before, *realm, *after;
		bool passes;
	} rows[] = {
	        {"WWW-Authenticate: Bearer realm=\"https://c.test:", "/token\"", ",service=\"reg\"",
	                true},
	        {"Www-Authenticate: bearer REALM=\"https://C.test:", "/token\"",
	                ",scope=\"repository:evil/app:pull\"", true},
	        {"WWW-Authenticate: Basic realm=x, Bearer realm=\"https://c.test:", "/token\"", "",
	                true},
	        {"WWW-Authenticate: Bearer realm=\"http://c.test:", "/token\"", "", false},
	        {"WWW-Authenticate: Bearer realm=\"https://d.test:", "/token\"", "", false},
	        {"WWW-Authenticate: Bearer realm=\"https://c.test:", "/token2\"", "", false},
	        {"WWW-Authenticate: Bearer realm=\"https://c.test:", "/token?x=y\"", "", false},
	        {"WWW-Authenticate: Basic realm=x, Bearer realm=\"https://d.test:", "/token\"", "",
	                false},
	        {"WWW-Authenticate: Bearer realm=\"https://c.test:", "/token\"",
	                ", Bearer realm=\"https://d.test/token\"", false},
	        {"WWW-Authenticate: Bearer realm=\"https://c.test:", "/token\"",
	                ", realm=\"https://d.test/token\"", false},
	        {"WWW-Authenticate: Bearer realm=\"https://c.test:", "/token\"",
	                "\r\nWWW-Authenticate: Bearer realm=\"https://d.test/token\"", false},
	};
	char fields[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(fields, sizeof(fields), "%s%u%s%s\r\n", rows[i].before, w.port,
		        rows[i].realm, rows[i].after);
		challenge(fields, rows[i].passes);
	}
	challenge("WWW-Authenticate: Basic realm=x\r\n", true);
	challenge("", true);
	challenge("WWW-Authenticate: Bearer\r\n", false);
	challenge("WWW-Authenticate: Bearer service=x\r\n", false);
	challenge("WWW-Authenticate: Bearer realm=\"\r\n", false);
}

static void test_broken_answers(void **state)
{
	static const char *const answers[] = {
	        "HTTP/1.1 302 Found\r\nLocation: https://d.test/\r\nContent-Length: 0\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}",
	        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
	        "Content-Length: 2\r\n\r\n{}",
	        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
	        "{\"token\":",
	        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"
	        "{\"token\":\"abc\"}",
	        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
	        "{\"token\":[]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		struct peer *c = ask_for_token("", answers[i]);

		if (!head_has(c, "HTTP/1.1 502 "))
			fail_msg("%zu: %s", i, c->head);
		hang_up(c, false);
	}
}

#define REGISTRY(name) cmocka_unit_test_setup_teardown(name, set_up_registry, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        REGISTRY(test_a_pull),
	        REGISTRY(test_what_the_sandbox_brings),
	        REGISTRY(test_the_same_token_again),
	        REGISTRY(test_rotated),
	        REGISTRY(test_other_places),
	        REGISTRY(test_scopes),
	        REGISTRY(test_challenges),
	        REGISTRY(test_broken_answers),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
