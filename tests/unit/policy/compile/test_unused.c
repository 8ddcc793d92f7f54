/* SPDX-License-Identifier: Apache-2.0 */
/* Notes: rules that can never decide, reported only where that is certain; slips in methods;
 * paths and ports that mean something else than they look like. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy_test.h"

#define HEAD             \
	"vethguard: 1\n" \
	"credentials:\n" \
	"  k: {source: env:K, inject: bearer}\n"

/* Loads text with its notes; fails the test where it does not load. */
static void load(struct test_policy *t, const char *text, struct diag_list *notes)
{
	struct policy_reader reader = {(void *)(uintptr_t)text, test_read, NULL};
	struct policy_load_options options = {.notes = notes, .thorough = true};

	memset(t, 0, sizeof(*t));
	memset(notes, 0, sizeof(*notes));
	if (policy_load(&reader, "/test.yaml", &options, &t->image, &t->size, &t->diags) != 0) {
		diag_print(&t->diags, stderr);
		fail_msg("the policy does not load: %s", text);
	}
	assert_int_equal(policy_open(&t->policy, t->image, t->size), 0);
}

/* The notes of a policy with these allow and deny rules (flow sequences). */
static void load_rules_of(struct diag_list *notes, const char *allow, const char *deny)
{
	char text[2048];
	struct test_policy t;

	snprintf(text, sizeof(text), HEAD "allow: %s\ndeny: %s\n", allow, deny);
	load(&t, text, notes);
	test_unload(&t);
}

static void test_silent(void **state)
{
	static const char *const rows[][2] = {
	        /* a deny that leaves something */
	        {"[{to: a.example}]", "[{to: a.example, methods: [DELETE]}]"},
	        {"[{to: a.example}]", "[{to: a.example, paths: ['/**']}]"},
	        {"[{to: a.example}]", "[{to: 'https://*.example', except: a.example}]"},
	        {"[{to: a.example, methods: [GET, PUT]}]", "[{to: a.example, methods: [PUT]}]"},
	        {"[{to: a.example, paths: [/a, /b]}]", "[{to: a.example, paths: [/a]}]"},
	        {"[{to: a.example, paths: ['/a/**']}]", "[{to: a.example, paths: ['/a/*']}]"},
	        {"[{to: [a.example, b.example]}]", "[{to: a.example}]"},
	        {"[{to: 'https://*.example'}]", "[{to: a.example}]"},
	        {"[{to: b.example}]", "[{to: 'https://*.b.example'}]"},
	        {"[{to: ab.example}]", "[{to: 'https://*.b.example'}]"},
	        {"[{to: a.example, ports: [443, 8443]}]", "[{to: a.example}]"},
	        {"[{to: a.example, ports: [1000-2000]}]", "[{to: a.example, ports: [1000-1999]}]"},
	        {"[{to: 'http://a.example'}]", "[{to: 'https://a.example', ports: [80]}]"},
	        {"[{to: 'udp://a.example:5'}]", "[{to: 'tcp://a.example:5'}]"},
	        {"[{to: 'https://10.0.0.0/8'}]", "[{to: 'https://10.0.0.0/9'}]"},
	        {"[{to: 'https://10.0.0.0/9'}]", "[{to: 'https://10.128.0.0/9'}]"},
	        {"[{to: 'https://[a00::/8]'}]", "[{to: 'https://10.0.0.0/8'}]"},
	        /* allows that differ in what they say */
	        {"[{to: a.example}, {to: a.example, credential: k}]", "[]"},
	        {"[{to: a.example}, {to: a.example, paths: [/a]}]", "[]"},
	        {"[{to: 'https://*.example'}, {to: a.example}]", "[]"},
	        {"[{to: a.example, paths: ['/**']}, {to: a.example, paths: [/a]}]", "[]"},
	        {"[{to: a.example, methods: [GET]}, {to: a.example, methods: [GET, PUT]}]", "[]"},
	        {"[{to: 'https://a.example'}, {to: 'http://a.example'}]", "[]"},
	        /* the more specific deny is the one whose reason is told */
	        {"[]", "[{to: 'https://*.example'}, {to: a.example, reason: no}]"},
	        {"[]", "[{to: a.example, paths: [/a]}, {to: a.example, paths: ['/**']}]"},
	};
	struct diag_list notes;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		load_rules_of(&notes, rows[i][0], rows[i][1]);
		if (notes.count > 0)
			fail_msg("%s %s: %s", rows[i][0], rows[i][1], notes.items[0].message);
	}
}

static void test_told(void **state)
{
	static const char *const rows[][3] = {
	        {"[{to: a.example}]", "[{to: a.example}]", "allow[0]"},
	        {"[{to: a.example, methods: [GET]}]", "[{to: 'https://*.example'}]", "allow[0]"},
	        {"[{to: 'https://*.a.example'}]", "[{to: 'https://*.example'}]", "allow[0]"},
	        {"[{to: a.example}]", "[{to: 'tcp://a.example:443'}]", "allow[0]"},
	        {"[{to: a.example, paths: [/a/b]}]", "[{to: a.example, paths: ['/a/**']}]",
	                "allow[0]"},
	        {"[{to: a.example, ports: [80, 90]}]", "[{to: a.example, ports: [1-100]}]",
	                "allow[0]"},
	        {"[{to: 'https://10.200.1.0/24'}]", "[{to: 'https://10.192.0.0/10'}]", "allow[0]"},
	        {"[{to: 'https://[fd00::1]'}]", "[{to: 'https://[fd00::/8]'}]", "allow[0]"},
	        {"[{to: [a.example, b.example]}]", "[{to: [b.example, a.example]}]", "allow[0]"},
	        {"[{to: a.example}, {to: a.example}]", "[]", "allow[1]"},
	        {"[{to: a.example, credential: k}, {to: a.example, methods: [GET]}]", "[]",
	                "allow[1]"},
	        {"[{to: a.example, paths: [/a, /b]}, {to: a.example, paths: [/b]}]", "[]",
	                "allow[1]"},
	        {"[]", "[{to: a.example}, {to: a.example, methods: [PUT]}]", "deny[1]"},
	        {"[]", "[{to: a.example, methods: [PUT]}, {to: a.example}]", "deny[0]"},
	};
	struct diag_list notes;
	char begin[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		load_rules_of(&notes, rows[i][0], rows[i][1]);
		snprintf(begin, sizeof(begin), "rule \"%s\" decides no request: rule ", rows[i][2]);
		if (notes.count != 1 || !strstr(notes.items[0].message, begin))
			fail_msg("%s %s: %zu notes", rows[i][0], rows[i][1], notes.count);
	}
}

/* A deny for some requests of a place that only tcp:// opens: relayed unread it has none. */
static void test_unread(void **state)
{
	static const struct {
		const char *allow, *deny;
		bool told;
	} rows[] = {
	        {"[{to: 'tcp://a.example:443'}]", "[{to: a.example, methods: [DELETE]}]", true},
	        {"[{to: 'tcp://a.example:443'}]", "[{to: a.example, paths: [/a]}]", true},
	        {"[{to: 'tcp://*.example:443'}]", "[{to: a.example, paths: [/a]}]", true},
	        {"[{to: 'tcp://a.example:443'}]", "[{to: 'https://*.example', paths: [/a]}]", true},
	        {"[{to: 'tcp://a.example', ports: [1-90]}]",
	                "[{to: 'http://a.example', methods: [PUT]}]", true},
	        {"[{to: 'tcp://10.0.0.0/8:443'}]", "[{to: 'https://10.1.0.0/16', paths: [/a]}]",
	                true},
	        {"[{to: 'tcp://a.example:443'}]", "[{to: [b.example, a.example], paths: [/a]}]",
	                true},
	        {"[{to: 'tcp://a.example:443'}, {to: b.example}]",
	                "[{to: a.example, paths: [/a]}, {to: a.example, paths: [/b], methods: "
	                "[PUT]}]",
	                true},
	        /* somebody reads it, or nobody may */
	        {"[{to: 'tcp://a.example:443'}, {to: a.example}]",
	                "[{to: a.example, methods: [DELETE]}]", false},
	        {"[{to: 'tcp://a.example:443'}, {to: 'https://*.example'}]",
	                "[{to: a.example, methods: [DELETE]}]", false},
	        {"[{to: 'tcp://a.example:80'}, {to: 'https://a.example:80'}]",
	                "[{to: 'http://a.example', methods: [DELETE]}]", false},
	        {"[{to: 'tcp://a.example:443'}]",
	                "[{to: a.example, methods: [PUT]}, {to: 'tcp://*.example:443'}]", false},
	        /* another place, or the whole of it */
	        {"[{to: 'tcp://a.example:5432'}]", "[{to: a.example, methods: [PUT]}]", false},
	        {"[{to: 'tcp://b.example:443'}]", "[{to: a.example, methods: [PUT]}]", false},
	        {"[{to: 'udp://a.example:443'}]", "[{to: a.example, methods: [PUT]}]", false},
	        {"[{to: 'tcp://a.example:443'}]", "[{to: a.example}]", false},
	};
	struct diag_list notes;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool told = false;

		load_rules_of(&notes, rows[i].allow, rows[i].deny);
		for (size_t k = 0; k < notes.count; k++)
			told |= strstr(notes.items[k].message,
			                "rule \"deny[0]\" refuses nothing") != NULL;
		if (told != rows[i].told)
			fail_msg("%s %s: told %d", rows[i].allow, rows[i].deny, told);
	}
}

/* Where the note appears nothing is refused: the proxy's own function relays. */
static void test_unread_is_relayed(void **state)
{
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("db.example"),
	        .port = 5432,
	        .method = SLICE("DELETE"),
	        .path = SLICE("/a")};
	struct policy_decision decision;
	struct diag_list notes;
	struct test_policy t;

	(void)state;
	load(&t,
	        "vethguard: 1\n"
	        "allow:\n"
	        "  - {name: db, to: 'tcp://db.example:5432'}\n"
	        "deny:\n"
	        "  - {name: keep, to: ['https://db.example:5432'], methods: [DELETE]}\n",
	        &notes);
	assert_int_equal(notes.count, 1);
	assert_int_equal(notes.items[0].line, 5);
	assert_int_equal(notes.items[0].column, 23);
	assert_string_equal(notes.items[0].message,
	        "rule \"keep\" refuses nothing at \"https://db.example:5432\": only the tcp:// "
	        "rule \"db\" at /test.yaml:3 allows that place, and what it relays is not read; "
	        "allow the place by https:// or http:// too, or deny it without methods and paths");
	assert_true(policy_relays_unread(&t.policy, &request, &decision));
	assert_int_equal(decision.verdict, POLICY_ALLOW);
	assert_true(slice_equals(policy_rule_name(&t.policy, decision.rule), SLICE("db")));
	request.scheme = POLICY_HTTP;
	assert_true(policy_relays_unread(&t.policy, &request, &decision));
	request.scheme = POLICY_TCP;
	assert_false(policy_relays_unread(&t.policy, &request, &decision));
	request.scheme = POLICY_HTTPS;
	request.port = 443;
	assert_false(policy_relays_unread(&t.policy, &request, &decision));
	test_unload(&t);
}

static void test_place(void **state)
{
	struct test_policy t;
	struct diag_list notes;

	(void)state;
	load(&t,
	        "vethguard: 1\n"
	        "allow:\n"
	        "  - {name: pull, to: a.example, methods: [GET]}\n"
	        "deny:\n"
	        "  - {name: shut, to: a.example}\n",
	        &notes);
	assert_int_equal(notes.count, 1);
	assert_string_equal(notes.items[0].file, "/test.yaml");
	assert_int_equal(notes.items[0].line, 3);
	assert_int_equal(notes.items[0].column, 5);
	assert_string_equal(notes.items[0].message,
	        "rule \"pull\" decides no request: rule \"shut\" at /test.yaml:5 denies all that "
	        "it allows, and deny beats allow; remove one of them, or narrow \"shut\"");
	test_unload(&t);
}

/* Valid but seldom meant: one note with this text, or none. */
static void test_slips(void **state)
{
	static const struct {
		const char *allow, *deny, *told;
	} rows[] = {
	        {"[{to: a.example, methods: [ANY]}]", "[]",
	                "method \"ANY\" is not a method of HTTP; leave methods out"},
	        {"[]", "[{to: a.example, methods: ALL}]",
	                "method \"ALL\" is not a method of HTTP; leave methods out"},
	        {"[{to: a.example, methods: [GET, TRACE]}]", "[]",
	                "method \"TRACE\" is refused whatever a rule says"},
	        {"[{to: a.example, methods: PRI}]", "[]",
	                "method \"PRI\" is refused whatever a rule says"},
	        {"[]", "[{to: a.example, methods: [TRACE, PRI]}]", NULL},
	        {"[{to: a.example, methods: [GET, LIST, QUERY, M-SEARCH]}]", "[]", NULL},
	        {"[{to: 'https://*.com'}]", "[]",
	                "\"https://*.com\" covers every name that ends in \".com\", whoever owns "
	                "it"},
	        {"[{to: 'tcp://*.dev:22'}]", "[]", "every name that ends in \".dev\""},
	        {"[{to: 'https://*.example.com'}, {to: 'https://*.internal'}]", "[]", NULL},
	        {"[]", "[{to: 'https://*.com'}]", NULL},
	        {"[{to: 'http://localhost:8080'}]", "[]",
	                "\"http://localhost:8080\" means the sandbox itself to programs inside"},
	        {"[{to: 'http://a.localhost'}]", "[]", "means the sandbox itself"},
	        {"[{to: 'http://127.0.0.1:8080'}]", "[]", "means the sandbox itself"},
	        {"[{to: 'http://127.1.0.0/16'}]", "[]", "means the sandbox itself"},
	        {"[{to: 'http://[::1]:8080'}]", "[]", "means the sandbox itself"},
	        {"[{to: ['http://[::2]:8080', 'http://[::]', "
	         "'http://128.0.0.1', mylocalhost]}]",
	                "[{to: localhost}]", NULL},
	        {"[{to: 'http://126.0.0.0/7'}]", "[]",
	                "covers more than a private or special range, so only its public addresses "
	                "are allowed; name"},
	        {"[{to: 'udp://[::/0]:53'}]", "[]", "for which \"[public]\" stands"},
	        {"[{to: 'tcp://10.0.0.0/7:22'}]", "[]",
	                "name private ones by networks of their own"},
	        {"[{to: 'http://169.254.0.0/16'}]", "[]",
	                "opens nothing: link-local addresses are dialed only where a rule names "
	                "them"},
	        {"[{to: 'http://[2002::/16]'}]", "[]", "opens nothing: 6to4 addresses"},
	        {"[{to: ['https://[public]', 'http://10.0.0.0/8', 'http://8.0.0.0/8', "
	         "'http://[fd00::/8]', 'http://[64:ff9b::/96]', 'http://100.64.0.0/10', "
	         "'http://169.254.169.254', 'http://198.18.0.0/15']}]",
	                "[{to: ['https://0.0.0.0/0', 'https://10.0.0.0/7']}]", NULL},
	        {"[{to: a.example, paths: [/v1/]}]", "[]",
	                "path \"/v1/\" matches only itself; what lies below it is "
	                "\"/v1/**\""},
	        {"[]", "[{to: a.example, paths: [/admin/, /user]}]", "\"/admin/**\""},
	        {"[{to: a.example, paths: [/, /v1, '/v*/', /v2/, '/v2/**', /v3/, /v3/models]}]",
	                "[]", NULL},
	        {"[{to: a.example, paths: [/$k/x]}]\nvariables: {k: {default: v}}", "[]",
	                "path \"/$k/x\": the variable is written ${k}; without braces"},
	        {"[{to: a.example, paths: [/$/$a/x, /$batch]}]", "[]", NULL},
	        {"[{to: a.example, paths: ['/a/$', '/v/.*']}]", "[]",
	                "is not a regular expression"},
	        {"[{to: all}, {to: b.example}]\ngroups: {all: [c.example]}", "[]",
	                "destination \"all\" is a host here; the group of that name is "
	                "\"group:all\""},
	        {"[{to: 'group:all'}]\ngroups: {all: [c.example]}", "[]", NULL},
	};
	struct diag_list notes;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *told;

		load_rules_of(&notes, rows[i].allow, rows[i].deny);
		told = notes.count ? notes.items[0].message : "";
		if (!rows[i].told != !notes.count || (rows[i].told && !strstr(told, rows[i].told)))
			fail_msg("%s %s: %s", rows[i].allow, rows[i].deny, told);
	}
}

/* Callers that do not ask for notes get none: attach and reload do not. */
static void test_not_asked(void **state)
{
	static const char text[] = "vethguard: 1\nallow: [{to: a.example}, {to: a.example}, "
	                           "{to: 'https://*.com', paths: [/v1/]}, {to: localhost}]\n";
	struct policy_reader reader = {(void *)(uintptr_t)text, test_read, NULL};
	struct diag_list notes = {.count = 0};
	struct policy_load_options options = {.notes = &notes};
	struct test_policy t = {.size = 0};

	(void)state;
	assert_int_equal(
	        policy_load(&reader, "/test.yaml", &options, &t.image, &t.size, &t.diags), 0);
	assert_int_equal(notes.count, 0);
	test_unload(&t);
}

/* What a rule is made of in the test below. */
static const char *const hosts[] = {"a.example", "'https://*.example'", "'https://*.a.example'"};
static const char *const methods[] = {"", ", methods: [GET]", ", methods: [GET, PUT]"};
static const char *const paths[] = {
        "", ", paths: ['/**']", ", paths: ['/x/*']", ", paths: [/x/y, '/z/**']"};
#define SHAPES (2 * 3 * 3 * 4)

static void write_rule(char *out, size_t size, const char *name, unsigned shape)
{
	snprintf(out, size, "%s: [{name: %s, to: %s%s%s}]", shape % 2 ? "deny" : "allow", name,
	        hosts[shape / 2 % 3], methods[shape / 6 % 3], paths[shape / 18]);
}

static void ask_all(const struct policy *policy, const char *message)
{
	static const char *const words[] = {"GET", "PUT", "get", "POST"};
	static const char *const urls[] = {"https://a.example/", "https://a.example/x/y",
	        "https://a.example/x/y;p", "https://a.example/x//y", "https://a.example/x%2Fy",
	        "https://a.example/z", "https://b.a.example/x/y", "https://b.a.example/z/%2F",
	        "https://b.example/x/w"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (size_t k = 0; k < sizeof(urls) / sizeof(urls[0]); k++) {
			struct policy_decision d = test_ask(policy, words[i], urls[k]);
			char begin[64];

			if (d.rule == POLICY_NONE)
				continue;
			snprintf(begin, sizeof(begin), "rule \"%.*s\" decides",
			        SLICE_ARG(policy_rule_name(policy, d.rule)));
			if (strncmp(message, begin, strlen(begin)) == 0)
				fail_msg("%s %s is decided: %s", words[i], urls[k], message);
		}
}

/* Any two rules: if a note is about one, the proxy's own function never names it. */
static void test_decides_nothing(void **state)
{
	char first[256], second[256], text[600];
	size_t told = 0;

	(void)state;
	for (unsigned i = 0; i < SHAPES; i++)
		for (unsigned k = 0; k < SHAPES; k++) {
			struct test_policy t;
			struct diag_list notes;

			write_rule(first, sizeof(first), "one", i);
			write_rule(second, sizeof(second), "two", k);
			if (i % 2 == k % 2) /* one list of two */
				snprintf(text, sizeof(text), "vethguard: 1\n%.*s, %s\n",
				        (int)strlen(first) - 1, first, strchr(second, '{'));
			else
				snprintf(text, sizeof(text), "vethguard: 1\n%s\n%s\n", first,
				        second);
			load(&t, text, &notes);
			for (size_t n = 0; n < notes.count; n++)
				ask_all(&t.policy, notes.items[n].message);
			told += notes.count;
			test_unload(&t);
		}
	assert_true(told > 100);
}

/* A slip in a deny rule would refuse nothing. Words that are methods somewhere are left alone. */
static void test_methods(void **state)
{
	static const char *const silent[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE",
	        "OPTIONS", "CONNECT", "TRACE", "TRACK", "QUERY", "PURGE", "LIST", "LOCK", "COPY",
	        "MOVE", "MERGE", "REPORT", "SEARCH", "PROPPATCH", "UPDATE", "LINK", "BIND", "ACL"};
	static const char *const slips[][2] = {{"GTE", "GET"}, {"DELTE", "DELETE"},
	        {"POTS", "POST"}, {"OPTION", "OPTIONS"}, {"PUTT", "PUT"}, {"PACTH", "PATCH"}};
	struct diag_list notes;
	char rule[128], wanted[128];

	(void)state;
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		snprintf(rule, sizeof(rule), "[{to: a.example, methods: [%s]}]", silent[i]);
		load_rules_of(&notes, "[]", rule);
		if (notes.count > 0)
			fail_msg("%s: %s", silent[i], notes.items[0].message);
	}
	for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
		snprintf(rule, sizeof(rule), "[{to: a.example, methods: [GET, %s]}]", slips[i][0]);
		snprintf(wanted, sizeof(wanted),
		        "method \"%s\" is not a method of HTTP; did you mean \"%s\"?", slips[i][0],
		        slips[i][1]);
		load_rules_of(&notes, "[]", rule);
		assert_int_equal(notes.count, 1);
		assert_string_equal(notes.items[0].message, wanted);
		assert_int_equal(notes.items[0].line, 5);
		assert_int_equal(notes.items[0].column, 39);
	}
}

static void test_regular_expressions(void **state)
{
	static const char *const silent[] = {
	        "/v1/*.json", "/v1/a.*", "/**", "/.well-known/*", "/$a"};
	static const char *const told[] = {"/v1/.*", "/.*/x", "/v1/x$"};
	struct diag_list notes;
	char rule[128];

	(void)state;
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		snprintf(rule, sizeof(rule), "[{to: a.example, paths: ['%s']}]", silent[i]);
		load_rules_of(&notes, rule, "[]");
		assert_int_equal(notes.count, 0);
	}
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		snprintf(rule, sizeof(rule), "[{to: a.example, paths: [/a, '%s']}]", told[i]);
		load_rules_of(&notes, rule, "[]");
		assert_int_equal(notes.count, 1);
		assert_non_null(strstr(notes.items[0].message, told[i]));
		assert_non_null(strstr(notes.items[0].message, "is not a regular expression"));
		assert_int_equal(notes.items[0].column, 37);
	}
}

/* Noted once; a deny rule, or one for TCP, means no more than it says. */
static void test_port_of_names(void **state)
{
	static const char *const silent[][2] = {{"[{to: 'udp://a.example:54'}]", "[]"},
	        {"[{to: 'tcp://a.example:53'}]", "[]"}, {"[]", "[{to: 'udp://a.example:53'}]"}};
	static const char *const told[] = {"[{to: 'udp://a.example:53'}]",
	        "[{to: 'udp://a.example', ports: [50-60]}]",
	        "[{to: ['udp://a.example:53', 'udp://b.example:53']}, {to: 'udp://c.example:53'}]"};
	struct diag_list notes;

	(void)state;
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		load_rules_of(&notes, silent[i][0], silent[i][1]);
		assert_int_equal(notes.count, 0);
	}
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		load_rules_of(&notes, told[i], "[]");
		assert_int_equal(notes.count, 1);
		assert_non_null(strstr(notes.items[0].message, "port 53 is vethguard's own"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_silent),
	        cmocka_unit_test(test_told),
	        cmocka_unit_test(test_methods),
	        cmocka_unit_test(test_unread),
	        cmocka_unit_test(test_unread_is_relayed),
	        cmocka_unit_test(test_regular_expressions),
	        cmocka_unit_test(test_port_of_names),
	        cmocka_unit_test(test_place),
	        cmocka_unit_test(test_slips),
	        cmocka_unit_test(test_not_asked),
	        cmocka_unit_test(test_decides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
