/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard policy explain`: exit statuses, what is printed, and JSON that parses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <jansson.h>

#include "commands_test.h"

#define EXPLAINED "tests/unit/cli/policy/explain/wide.yaml"

static void test_explain(void **state)
{
	(void)state;
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET",
	        "https://api.github.com/repos/acme/x");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, "verdict: allow, by rule \"read-acme\""));
	assert_non_null(strstr(r.out, "credential: github, from env:GITHUB_TOKEN\n"));
	assert_non_null(strstr(r.out, "never-delete"));
	RUN(&r, "explain", "policies/coding-agent.yaml", "DELETE",
	        "https://api.github.com/repos/acme/x");
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.out, "verdict: deny, by rule \"never-delete\""));
	assert_non_null(strstr(r.out, "reason: Agents never delete on GitHub."));
	RUN(&r, "explain", "policies/ci-runner.yaml", "CONNECT", "udp://time.cloudflare.com:123");
	assert_int_equal(r.status, 0);
	RUN(&r, "explain", "policies/ci-runner.yaml", "CONNECT", "tcp://time.cloudflare.com:123");
	assert_int_equal(r.status, 1);
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET", "https://api.github.com/a%00b");
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.out, "the request cannot be judged"));
	assert_non_null(strstr(r.out, "no rule can decide about this path"));
	assert_null(strstr(r.out, "another host"));
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET", "https://paste.example/a");
	assert_null(strstr(r.out, "cannot be judged"));
	assert_non_null(strstr(r.out, "another host"));
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET /", "https://paste.example/");
	assert_non_null(strstr(r.err, "vethguard: error: not a method"));
}

static void test_explain_accept(void **state)
{
	static const struct {
		const char *url;
		int status;
		const char *says;
	} rows[] = {{"tcp://host:8080", 0, "verdict: allow\n"},
	        {"tcp://127.0.0.1:8080", 0, "verdict: allow\n"},
	        {"tcp://10.1.2.3:8080", 0, "verdict: allow\n"},
	        {"tcp://two.sandbox.internal:8080", 0, "matches"},
	        {"tcp://11.1.2.3:8080", 1, "deny: no entry of from: names this source\n"},
	        {"tcp://[::1]:9000", 1, "another source"},
	        {"tcp://three.sandbox.internal:8080", 1, "deny: no entry"},
	        {"tcp://host:80", 1, "verdict: deny: the port is not exposed\n"},
	        {"tcp://two.example:8080", 2, "a source is host, an address or NAME.sandbox"},
	        {"https://10.1.2.3:8080", 2, "ports are exposed over TCP"},
	        {"udp://10.1.2.3:8080", 2, "ports are exposed over TCP"},
	        {"10.1.2.3", 2, "the scheme is missing"}};
	char path[] = "/tmp/vethguard-accept-XXXXXX";
	int fd = mkstemp(path);
	json_t *root;

	(void)state;
	dprintf(fd, "vethguard: 1\nexpose:\n"
	            "  - {port: 8080, from: [host, 10.0.0.0/8, \"sandbox:two\"], at: "
	            "\"0.0.0.0:80\"}\n"
	            "  - {port: 9000, from: [\"label:a=b\"]}\n");
	close(fd);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		RUN(&r, "explain", path, "ACCEPT", rows[i].url);
		assert_int_equal(r.status, rows[i].status);
		assert_non_null(strstr(rows[i].status == 2 ? r.err : r.out, rows[i].says));
	}
	RUN(&r, "explain", "--json", path, "ACCEPT", "tcp://11.0.0.1:8080");
	assert_int_equal(r.status, 1);
	root = json_loads(r.out, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(root, "verdict")), "deny");
	assert_true(json_is_true(json_object_get(root, "exposed")));
	json_decref(root);
	RUN(&r, "check", path);
	assert_non_null(strstr(r.out, "2 exposed ports"));
	unlink(path);
}

/* A place that only a tcp:// rule opens is relayed unread: the answer is what the proxy does,
 * whatever a deny rule for some requests says. A deny rule without methods and paths counts. */
static void test_explain_relayed(void **state)
{
	static const struct {
		const char *method, *url;
		int status;
		const char *says, *says_not;
	} rows[] = {
	        {"DELETE", "https://db.example:5432/a", 0, "allow, by rule \"db\"", "never"},
	        {"DELETE", "http://db.example:5432/a", 0, "allow, by rule \"db\"", "never"},
	        {"GET", "https://db.example:5432/", 0, "relayed: only a tcp:// rule", "default"},
	        {"GET", "https://db.example:5432/a%00b", 0, "relayed: ", "cannot be judged"},
	        {"CONNECT", "https://db.example:5432", 0, "relayed: ", NULL},
	        {"CONNECT", "tcp://db.example:5432", 0, "allow, by rule \"db\"", "relayed: "},
	        {"GET", "https://shut.example:5432/", 1, "deny, by rule \"shut\"", "relayed: "},
	        {"DELETE", "https://both.example:5432/", 1, "deny, by rule \"never2\"",
	                "relayed: "},
	        {"GET", "https://both.example:5432/", 0, "allow, by rule \"web\"", "relayed: "},
	};
	json_t *root;

	(void)state;
	remember("vethguard: 1\n"
	         "allow:\n"
	         "  - {name: db, to: ['tcp://db.example:5432', 'tcp://shut.example:5432']}\n"
	         "  - {name: both, to: 'tcp://both.example:5432'}\n"
	         "  - {name: web, to: 'https://both.example:5432'}\n"
	         "deny:\n"
	         "  - {name: never, to: ['https://db.example:5432', 'http://db.example:5432'], "
	         "methods: [DELETE], reason: never}\n"
	         "  - {name: shut, to: 'https://shut.example:5432'}\n"
	         "  - {name: never2, to: 'https://both.example:5432', methods: [DELETE]}\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *verdict;

		RUN(&r, "explain", policy_path, rows[i].method, rows[i].url);
		verdict = strstr(r.out, "verdict: ");
		if (r.status != rows[i].status || !verdict || !strstr(verdict, rows[i].says) ||
		        (rows[i].says_not && strstr(verdict, rows[i].says_not)))
			fail_msg("%s %s: %d: %s", rows[i].method, rows[i].url, r.status, r.out);
	}
	RUN(&r, "explain", policy_path, "DELETE", "https://db.example:5432/a", "--json");
	assert_int_equal(r.status, 0);
	root = json_loads(r.out, 0, NULL);
	assert_true(json_is_true(json_object_get(root, "relayed")));
	assert_string_equal(json_string_value(json_object_get(root, "rule")), "db");
	assert_true(json_is_true(
	        json_object_get(json_array_get(json_object_get(root, "rules"), 0), "matches")));
	assert_false(json_is_true(
	        json_object_get(json_array_get(json_object_get(root, "rules"), 3), "matches")));
	json_decref(root);
	forget();
}

/* A method in small letters gets a hint if only its case keeps a rule from
 * matching. */
static void test_explain_small_letters(void **state)
{
	static const char *const rows[][3] = {
	        {"get", "https://api.github.com/user", "GET would be allowed"},
	        {"Get", "https://api.github.com/user", "GET would be allowed"},
	        {"GET", "https://api.github.com/user", NULL},
	        {"get", "https://paste.example/", NULL},
	        {"delete", "https://api.github.com/user", NULL},
	        {"CONNECT", "https://paste.example/", NULL},
	};
	json_t *root;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		RUN(&r, "explain", "policies/coding-agent.yaml", rows[i][0], rows[i][1]);
		assert_int_equal(strstr(r.out, "hint:") != NULL, rows[i][2] != NULL);
		if (rows[i][2])
			assert_non_null(strstr(r.out, rows[i][2]));
		assert_int_equal(strstr(r.out, "note: methods are compared") != NULL,
		        !rows[i][2] && islower((unsigned char)rows[i][0][0]));
	}
	/* allowed as it is, by a rule for all methods */
	RUN(&r, "explain", EXPLAINED, "get", "https://open.example/");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, "note: methods are compared as they are written"));
	RUN(&r, "explain", EXPLAINED, "GET", "https://open.example/");
	assert_null(strstr(r.out, "note:"));
	RUN(&r, "explain", "policies/coding-agent.yaml", "get", "https://api.github.com/user",
	        "--json");
	assert_int_equal(r.status, 1);
	root = json_loads(r.out, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(root, "allowed_in_capitals")), "GET");
	assert_true(json_is_true(json_object_get(root, "small_letters")));
	json_decref(root);
}

/* Methods that the proxy refuses whatever the policy says; all other tokens are left to the policy.
 */
static void test_explain_methods(void **state)
{
	static const struct {
		const char *method, *told;
		int status;
	} rows[] = {
	        {"LIST", "allow", 0},
	        {"get", "allow", 0},
	        {"!#$%&'*+-.^_`|~", "allow", 0},
	        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "allow", 0},
	        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "the method is too long", 1},
	        {"TRACE", "TRACE is never forwarded", 1},
	        {"trace", "TRACE is never forwarded", 1},
	        {"PRI", "the method is reserved", 1},
	        {"head", "the method is reserved", 1},
	        {"connect", "the method is reserved", 1},
	        {"G(T", "vethguard: error: not a method", 2},
	        {"GET\x80", "vethguard: error: not a method", 2},
	        {"", "vethguard: error: not a method", 2},
	};

	(void)state;
	remember("vethguard: 1\nname: t\nmode: observe\nallow: [{to: a.example}]\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		RUN(&r, "explain", policy_path, rows[i].method, "https://a.example/");
		if (r.status != rows[i].status ||
		        !strstr(r.status == 2 ? r.err : r.out, rows[i].told))
			fail_msg("%s: %d\n%s%s", rows[i].method, r.status, r.out, r.err);
	}
	RUN(&r, "explain", policy_path, "TRACE", "https://a.example/", "--json");
	assert_non_null(strstr(r.out, "\"fault\":\"TRACE is never forwarded\""));
	assert_non_null(strstr(r.out, "\"verdict\":\"deny\""));
	assert_non_null(strstr(r.out, "\"rules\":[]"));
	forget();
}

/* Text that may be a user and a password is not shown, wherever it stands. */
static void test_explain_hides_passwords(void **state)
{
	static const char *const rows[][3] = {
	        {"GET", "https://me:hunter2@a.example/", "https://...@a.example/"},
	        {"GET", "https://me:hun/ter2@a.example/", "https://...@a.example/"},
	        {"GET", "https://me:hun@ter2@a.example/", "https://...@a.example/"},
	        {"GET", "https://me:hun#ter2@a.example/", "https://...@a.example/"},
	        {"GET", "ftp://me:hunter2@a.example/", "ftp://...@a.example/"},
	        {"GET", "https:/me:hunter2@a.example/", "\"...@a.example/\""},
	        {"GET", "me:hunter2@a.example", "\"...@a.example\""},
	        {"CONNECT", "tcp://me:hunter2@a.example:22", "tcp://...@a.example:22"},
	        {"https://me:hunter2@a.example/", "https://b.example/", "not a method"},
	        {"me:hunter2@a.example", "https://b.example/", "not a method"},
	        {"https://me:hunter2@a.example/", "GET", "this is not a URL"},
	        {"https://me:hunter2@a.example/", "tcp://b.example:1", "not a method"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int json = 0; json < 2; json++) {
			RUN(&r, "explain", EXPLAINED, rows[i][0], rows[i][1],
			        json ? "--json" : NULL);
			if (r.status != 2 || !strstr(r.err, rows[i][2]) || strstr(r.err, "hun") ||
			        strstr(r.err, "ter2") || strstr(r.out, "hun") ||
			        strstr(r.out, "ter2"))
				fail_msg("row %zu says \"%s\"", i, r.err);
		}
}

/* The verdict is what the proxy does when it dials. */
static void test_explain_wide_networks(void **state)
{
	static const struct {
		const char *method, *url;
		bool allowed;
	} rows[] = {
	        {"GET", "http://8.8.8.8/", true},
	        {"GET", "http://10.0.0.1/", false},
	        {"GET", "http://127.0.0.1/", false},
	        {"GET", "http://169.254.169.254/", false},
	        {"GET", "http://[::ffff:127.0.0.1]/", false},
	        {"GET", "http://[2002:7f00:1::]/", false},
	        {"CONNECT", "tcp://8.8.8.8:22", true},
	        {"CONNECT", "tcp://10.0.0.1:22", false},
	        {"CONNECT", "udp://[::1]:99", false},
	        {"CONNECT", "udp://[2606:4700::1]:99", true},
	};
	json_t *root;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		RUN(&r, "explain", EXPLAINED, rows[i].method, rows[i].url);
		if (r.status != (rows[i].allowed ? 0 : 1) ||
		        (strstr(r.out, "only a rule with a wide network") != NULL) ==
		                rows[i].allowed)
			fail_msg("row %zu says \"%s\"", i, r.out);
		RUN(&r, "explain", EXPLAINED, rows[i].method, rows[i].url, "--json");
		root = json_loads(r.out, 0, NULL);
		assert_non_null(root);
		assert_string_equal(json_string_value(json_object_get(root, "verdict")),
		        rows[i].allowed ? "allow" : "deny");
		json_decref(root);
	}
}

static void test_explain_json(void **state)
{
	json_t *root, *rules;

	(void)state;
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET", "https://api.github.com/user",
	        "--json");
	assert_int_equal(r.status, 0);
	root = json_loads(r.out, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "verdict")), "allow");
	assert_string_equal(json_string_value(json_object_get(root, "why")),
	        "an allow rule of the policy names it");
	assert_string_equal(json_string_value(json_object_get(root, "rule")), "read-acme");
	assert_string_equal(json_string_value(json_object_get(root, "credential")), "github");
	assert_string_equal(
	        json_string_value(json_object_get(root, "credential_source")), "env:GITHUB_TOKEN");
	rules = json_object_get(root, "rules");
	assert_true(json_array_size(rules) > 10);
	assert_true(json_is_true(json_object_get(json_array_get(rules, 0), "matches")));
	assert_string_equal(
	        json_string_value(json_object_get(json_array_get(rules, 1), "differs_in")),
	        "method");
	json_decref(root);
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET", "https://paste.example/", "--json");
	assert_int_equal(r.status, 1);
	root = json_loads(r.out, 0, NULL);
	assert_true(json_is_null(json_object_get(root, "rule")));
	assert_true(json_is_null(json_object_get(root, "credential")));
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_explain),
	        cmocka_unit_test(test_explain_accept),
	        cmocka_unit_test(test_explain_relayed),
	        cmocka_unit_test(test_explain_small_letters),
	        cmocka_unit_test(test_explain_methods),
	        cmocka_unit_test(test_explain_hides_passwords),
	        cmocka_unit_test(test_explain_wide_networks),
	        cmocka_unit_test(test_explain_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
