/* SPDX-License-Identifier: Apache-2.0 */
/* What a credential for a registry allows: requests for tokens, and requests to the registry. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy_test.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/registry.h"

static const char policy_text[] =
        "vethguard: 1\n"
        "name: main\n"
        "credentials:\n"
        "  hub:\n"
        "    source: \"env:A\"\n"
        "    inject: docker-registry\n"
        "    username: agent\n"
        "    realm: https://Auth.example/%74oken\n"
        "    service: registry.example\n"
        "    repositories: [acme/*, tools/**, \"*/public-*\", alone]\n"
        "    actions: [push, pull]\n"
        "  same:\n"
        "    source: \"env:A\"\n"
        "    inject: docker-registry\n"
        "    realm: https://one.example:5000/v2/token\n"
        "    service: one\n"
        "    repositories: acme/app\n"
        "allow:\n"
        "  - {name: registry, to: \"https://registry.example\", credential: hub}\n"
        "  - {name: token, to: \"https://auth.example\", paths: [/token], credential: hub}\n"
        "  - {name: one, to: \"https://one.example:5000\", credential: same}\n";

static struct test_policy t;

static int set_up(void **state)
{
	(void)state;
	test_load(&t, policy_text, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	test_unload(&t);
	return 0;
}

static struct policy_decision decide(const char *host, uint16_t port, const char *method,
        const char *path, const char *query, const struct policy_body *body)
{
	const struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = slice_from_string(host),
	        .port = port,
	        .method = slice_from_string(method),
	        .path = slice_from_string(path),
	        .query = slice_from_string(query),
	        .body = body};
	struct policy_decision d;

	policy_decide(&t.policy, &request, &d);
	return d;
}

static void expect(struct policy_decision d, const char *why, const char *what)
{
	if (!why && (d.verdict != POLICY_ALLOW || d.credential == POLICY_NONE || d.why))
		fail_msg("denied: %s (%s)", what, d.why ? d.why : "");
	if (why && (d.verdict != POLICY_DENY || d.reason != POLICY_REASON_SCOPE ||
	                   d.credential != POLICY_NONE || d.seals || !d.why || !strstr(d.why, why)))
		fail_msg("not denied for \"%s\": %s (%s)", why, what, d.why ? d.why : "");
}

#define ASK "service=registry.example&scope=repository:"

static void test_tokens(void **state)
{
	static const struct {
		const char *query, *why;
	} rows[] = {
	        {ASK "acme/app:pull", NULL},
	        {ASK "acme/app:pull,push&account=me&client_id=docker&offline_token=true", NULL},
	        {"scope=repository%3Aacme%2Fapp%3Apull&service=registry.example", NULL},
	        {ASK "tools/a/b/c:pull", NULL},
	        {ASK "any/public-x:pull", NULL},
	        {ASK "alone:push", NULL},
	        {ASK "acme/a:pull&scope=repository:acme/b:pull", NULL},
	        {ASK "acme/a:pull+repository:acme/b:pull,push", NULL},
	        {ASK "acme/a:pull%20repository:alone:pull", NULL},
	        /* other repositories */
	        {ASK "evil/app:pull", "repository"},
	        {ASK "acme:pull", "repository"},
	        {ASK "acme/a/b:pull", "repository"},
	        {ASK "acmex/a:pull", "repository"},
	        {ASK "acme/:pull", "repository"},
	        {ASK "acme/..:pull", "repository"},
	        {ASK "acme/a.:pull", "repository"},
	        {ASK "acme/_a:pull", "repository"},
	        {ASK "Acme/app:pull", "repository"},
	        {ASK "acme/*:pull", "repository"},
	        {ASK "acme%2Fapp%00:pull", "parameters"},
	        {ASK "host:5000/acme/app:pull", "repository"},
	        {ASK "alone/x:pull", "repository"},
	        {ASK "acme/a:pull&scope=repository:evil/b:pull", "repository"},
	        {ASK "acme/a:pull+repository:evil/b:pull", "repository"},
	        {"service=registry.example&scope=repository(plugin):acme/app:pull",
	                "not repository:NAME"},
	        {"service=registry.example&scope=registry:catalog:*", "not repository:NAME"},
	        /* other actions */
	        {ASK "acme/app:delete", "action"},
	        {ASK "acme/app:pull,delete", "action"},
	        {ASK "acme/app:*", "action"},
	        {ASK "acme/app:pull,*", "action"},
	        {ASK "acme/app:PULL", "action"},
	        {ASK "acme/app:pull%2C", "not repository:NAME"},
	        {ASK "acme/app:,pull", "action"},
	        {ASK "acme/app:pull push", "not repository:NAME"},
	        {ASK "acme/app:", "not repository:NAME"},
	        {ASK "acme/app", "not repository:NAME"},
	        {ASK ":pull", "not repository:NAME"},
	        {ASK, "not repository:NAME"},
	        /* no scope, and other parameters */
	        {"", "service"},
	        {"service=registry.example", "without a scope"},
	        {"service=registry.example&scope=", "without a scope"},
	        {"scope=repository:acme/app:pull", "service"},
	        {"service=other.example&scope=repository:acme/app:pull", "a service that"},
	        {"service=&scope=repository:acme/app:pull", "a service that"},
	        {ASK "acme/app:pull&service=registry.example", "twice"},
	        {ASK "acme/app:pull&account=a&account=b", "twice"},
	        {ASK "acme/app:pull&Scope=repository:evil/app:pull", "parameters"},
	        {ASK "acme/app:pull&%73cope=repository:evil/app:pull", "parameters"},
	        {ASK "acme/app:pull&scope[]=repository:evil/app:pull", "parameters"},
	        {ASK "acme/app:pull&grant_type=password", "parameters"},
	        {ASK "acme/app:pull&scope", "parameters"},
	        {ASK "acme/app:pull;scope=repository:evil/app:pull", "parameters"},
	        {ASK "acme/app:pull&account=%zz", "parameters"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy_decision d =
		        decide("auth.example", 443, "GET", "/token", rows[i].query, NULL);

		expect(d, rows[i].why, rows[i].query);
		assert_int_equal(d.seals, !rows[i].why);
	}
}

static void test_tokens_are_asked_for_by_get(void **state)
{
	static const char *const methods[] = {"POST", "HEAD", "PUT", "get", "DELETE"};
	const struct policy_body body = {.state = POLICY_BODY_UNREAD};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		expect(decide("auth.example", 443, methods[i], "/token", ASK "acme/app:pull", NULL),
		        "by GET", methods[i]);
	expect(decide("auth.example", 443, "GET", "/token", ASK "acme/app:pull", &body), "by GET",
	        "a body");
}

static void test_bounds(void **state)
{
	static char query[POLICY_QUERY_MAX + 64];
	size_t n;

	(void)state;
	for (size_t count = POLICY_SCOPES_MAX; count < POLICY_SCOPES_MAX + 2; count++) {
		n = (size_t)snprintf(query, sizeof(query), "service=registry.example");
		for (size_t i = 0; i < count; i++)
			n += (size_t)snprintf(query + n, sizeof(query) - n,
			        "%srepository:acme/a%zu:pull", i % 2 ? "+" : "&scope=", i);
		expect(decide("auth.example", 443, "GET", "/token", query, NULL),
		        count > POLICY_SCOPES_MAX ? "more than 16 scopes" : NULL, query);
	}
	n = (size_t)snprintf(query, sizeof(query), ASK "acme/app:pull&account=");
	memset(query + n, 'a', sizeof(query) - n - 1);
	query[POLICY_QUERY_MAX] = '\0';
	expect(decide("auth.example", 443, "GET", "/token", query, NULL), NULL, "a long query");
	query[POLICY_QUERY_MAX] = 'a';
	query[POLICY_QUERY_MAX + 1] = '\0';
	assert_int_equal(
	        decide("auth.example", 443, "GET", "/token", query, NULL).verdict, POLICY_DENY);
	for (size_t more = 0; more < 2; more++) { /* a repository's name */
		n = (size_t)snprintf(query, sizeof(query), ASK "acme/");
		memset(query + n, 'a', POLICY_REPOSITORY_MAX - 5 + more);
		strcpy(query + n + POLICY_REPOSITORY_MAX - 5 + more, ":pull");
		expect(decide("auth.example", 443, "GET", "/token", query, NULL),
		        more ? "repository" : NULL, query);
	}
}

static void test_requests(void **state)
{
	static const struct {
		const char *method, *path, *query, *why;
	} rows[] = {
	        {"GET", "/v2/", "", NULL},
	        {"HEAD", "/v2", "", NULL},
	        {"GET", "/v2/acme/app/manifests/latest", "", NULL},
	        {"HEAD", "/v2/acme/app/manifests/sha256:0123", "ns=docker.io", NULL},
	        {"GET", "/v2/tools/a/b/blobs/sha256:0123", "", NULL},
	        {"GET", "/v2/alone/tags/list", "n=10&last=x", NULL},
	        {"GET", "/v2/alone/referrers/sha256:0123", "artifactType=x", NULL},
	        {"POST", "/v2/acme/app/blobs/uploads/", "", NULL},
	        {"POST", "/v2/acme/app/blobs/uploads/", "mount=sha256:1&from=acme/other", NULL},
	        {"PATCH", "/v2/acme/app/blobs/uploads/0123", "_state=x", NULL},
	        {"PUT", "/v2/acme/app/manifests/latest", "", NULL},
	        /* other repositories, and paths that two servers could read in two ways */
	        {"GET", "/v2/evil/app/manifests/latest", "", "repository"},
	        {"GET", "/v2/acme/manifests/latest", "", "repository"},
	        {"GET", "/v2/acme/a/b/manifests/latest", "", "repository"},
	        {"GET", "/v2/acme/app/manifests/x/blobs/sha256:0", "", "no repository"},
	        {"GET", "/v2/acme/manifests/tags/list", "", "no repository"},
	        {"GET", "/v2/manifests/latest", "", "no repository"},
	        {"GET", "/v2/acme%2Fapp/manifests/latest", "", "no repository"},
	        {"GET", "/v2/acme/app/manifests/a%2Fb", "", "no repository"},
	        {"GET", "/v2/Acme/app/manifests/latest", "", "no repository"},
	        {"GET", "/v2//acme/app/manifests/latest", "", "no repository"},
	        {"GET", "/v2/acme//manifests/latest", "", "no repository"},
	        {"GET", "/v2/_catalog", "", "no repository"},
	        {"GET", "/v2/acme/app", "", "no repository"},
	        {"GET", "/v1/acme/app/manifests/latest", "", "no repository"},
	        {"GET", "/V2/acme/app/manifests/latest", "", "no repository"},
	        {"GET", "/", "", "no repository"},
	        {"GET", "/token", "", "no repository"},
	        {"POST", "/v2/", "", "no repository"},
	        /* other actions */
	        {"DELETE", "/v2/acme/app/manifests/latest", "", "action"},
	        {"OPTIONS", "/v2/acme/app/manifests/latest", "", "action"},
	        {"LINK", "/v2/acme/app/manifests/latest", "", "action"},
	        {"get", "/v2/acme/app/manifests/latest", "", "action"},
	        /* mounts from elsewhere */
	        {"POST", "/v2/acme/app/blobs/uploads/", "mount=sha256:1&from=evil/app", "mounts"},
	        {"POST", "/v2/acme/app/blobs/uploads/", "mount=sha256:1", "mounts"},
	        {"POST", "/v2/acme/app/blobs/uploads/", "mount=sha256:1&from=", "mounts"},
	        {"POST", "/v2/acme/app/blobs/uploads/", "from=evil/app", "mounts"},
	        {"POST", "/v2/acme/app/blobs/uploads/", "mount=sha256:1&from=acme/a&from=evil/app",
	                "mounts"},
	        {"POST", "/v2/acme/app/blobs/uploads/", "Mount=sha256:1&%66rom=evil%2Fapp",
	                "mounts"},
	        {"POST", "/v2/acme/app/blobs/uploads/", "mount=sha256:1&from=acme%2", "mounts"},
	        {"POST", "/v2/acme/app/blobs/uploads/", "mount=sha256:1;from[]=evil/app", "mounts"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy_decision d = decide(
		        "registry.example", 443, rows[i].method, rows[i].path, rows[i].query, NULL);

		expect(d, rows[i].why, rows[i].path);
		assert_false(d.seals);
	}
}

/* A token service at the registry's own host; actions as they are if none are named. */
static void test_one_host(void **state)
{
	(void)state;
	assert_true(decide("one.example", 5000, "GET", "/v2/token",
	        "service=one&scope=repository:acme/app:pull", NULL)
	                    .seals);
	expect(decide("one.example", 5000, "GET", "/v2/token",
	               "service=one&scope=repository:acme/app:push", NULL),
	        "action", "push");
	expect(decide("one.example", 5000, "GET", "/v2/token/", "", NULL), "no repository",
	        "slash");
	expect(decide("one.example", 5000, "PUT", "/v2/acme/app/manifests/x", "", NULL), "action",
	        "PUT");
	expect(decide("one.example", 5000, "GET", "/v2/acme/app/manifests/x", "", NULL), NULL,
	        "GET");
}

static void test_observe(void **state)
{
	struct policy_decision d;

	(void)state;
	test_unload(&t);
	test_load(&t, policy_text, true);
	d = decide("registry.example", 443, "GET", "/v2/evil/app/manifests/latest", "", NULL);
	assert_int_equal(d.verdict, POLICY_ALLOW);
	assert_true(d.observed && !d.seals);
	assert_int_equal(d.reason, POLICY_REASON_SCOPE);
	assert_int_equal(d.credential, POLICY_NONE);
}

static void test_realms(void **state)
{
	static const struct {
		const char *url;
		bool same;
	} rows[] = {
	        {"https://auth.example/token", true},
	        {"https://AUTH.example:443/token", true},
	        {"https://auth.example/a/../token", true},
	        {"http://auth.example/token", false},
	        {"https://auth.example/token?x=y", false},
	        {"https://auth.example/token?", false},
	        {"https://auth.example/token#x", false},
	        {"https://auth.example:8443/token", false},
	        {"https://auth.example.evil/token", false},
	        {"https://user@auth.example/token", false},
	        {"https://auth.example/token/", false},
	        {"https://auth.example", false},
	        {"//auth.example/token", false},
	        {"/token", false},
	        {"", false},
	};
	struct policy_credential credential;
	struct policy_registry registry;

	(void)state;
	policy_credential(&t.policy, 0, &credential);
	policy_registry(&credential, &registry);
	assert_true(slice_equals(registry.service, SLICE("registry.example")));
	assert_true(slice_equals(registry.actions, SLICE("pull push")));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (policy_is_realm(&registry, slice_from_string(rows[i].url)) != rows[i].same)
			fail_msg("%s", rows[i].url);
}

/* `policy check` notes a token service that no rule allows. */
static void test_note(void **state)
{
	static const char text[] =
	        "vethguard: 1\n"
	        "name: main\n"
	        "credentials:\n"
	        "  hub: {source: \"env:A\", inject: docker-registry, service: s, repositories: a, "
	        "realm: \"https://auth.example/token\"}\n"
	        "allow:\n"
	        "  - {to: \"https://registry.example\", credential: hub}\n"
	        "  - {to: \"https://auth.example%s\"%s}\n";
	static const struct {
		const char *port, *credential;
		size_t notes;
	} rows[] = {{"", ", credential: hub", 0}, {"", "", 1}, {":8443", ", credential: hub", 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char made[1024];
		struct policy_reader reader = {made, test_read, NULL};
		struct diag_list notes = {.count = 0}, diags = {.count = 0};
		struct policy_load_options options = {.notes = &notes, .thorough = true};
		uint8_t *image;
		size_t size;

		snprintf(made, sizeof(made), text, rows[i].port, rows[i].credential);
		assert_int_equal(
		        policy_load(&reader, "/test.yaml", &options, &image, &size, &diags), 0);
		assert_int_equal(notes.count, rows[i].notes);
		if (notes.count)
			assert_non_null(strstr(notes.items[0].message,
			        "allows its realm https://auth.example/token, so"));
		free(image);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_tokens),
	        TEST(test_tokens_are_asked_for_by_get),
	        TEST(test_bounds),
	        TEST(test_requests),
	        TEST(test_one_host),
	        TEST(test_observe),
	        TEST(test_realms),
	        TEST(test_note),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
