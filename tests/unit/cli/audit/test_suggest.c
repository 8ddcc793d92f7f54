/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard audit suggest: what is suggested allows what was denied and nothing beside it; what may
 * be an attack, and what no rule can say, is not. Every suggestion is loaded and asked as a policy.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/audit/audit.h"
#include "cli/policy/policy.h"
#include "cli/audit/suggest.h"
#include "vethguard/policy/url.h"

#define TEXT_MAX 65536

static char path[64], printed[TEXT_MAX];
static unsigned id;
static const struct policy *today; /* --policy, or NULL */

/* One HTTP event; code: its status_code. */
static json_t *http(const char *method, const char *scheme, const char *host, int port,
        const char *where, const char *code)
{
	char uid[SUGGEST_ID_SIZE];
	json_t *event;

	snprintf(uid, sizeof(uid), "%016x", ++id);
	event = json_pack("{s:I, s:i, s:i, s:i, s:s, s:{s:s}, s:{s:s}, s:{s:s, s:s}, s:{s:s, "
	                  "s:{s:s, s:s, s:i, s:s}}}",
	        "time", (json_int_t)1732120000000 + id, "class_uid", CLASS_HTTP, "action_id",
	        ACTION_DENIED, "disposition_id", 2, "status_code", code, "metadata", "uid", uid,
	        "policy", "name", "lab", "device", "name", "box", "uid", "1", "http_request",
	        "http_method", method, "url", "scheme", scheme, "hostname", host, "port", port,
	        "path", where);
	assert_non_null(event);
	return event;
}

static json_t *connection(const char *protocol, const char *host, int port, int disposition)
{
	json_t *event =
	        json_pack("{s:i, s:i, s:i, s:i, s:s, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s, s:i}}",
	                "time", 1, "class_uid", CLASS_NETWORK, "action_id", ACTION_DENIED,
	                "disposition_id", disposition, "status_code", "default", "metadata", "uid",
	                "00000000000000aa", "policy", "name", "lab", "connection_info",
	                "protocol_name", protocol, "dst_endpoint", "hostname", host, "port", port);

	assert_non_null(event);
	return event;
}

static json_t *query(const char *name)
{
	json_t *event = json_pack("{s:i, s:i, s:i, s:i, s:s, s:{s:s}, s:{s:s}, s:{s:s, s:s}}",
	        "time", 1, "class_uid", CLASS_DNS, "action_id", ACTION_DENIED, "disposition_id", 2,
	        "status_code", "default", "metadata", "uid", "00000000000000bb", "policy", "name",
	        "lab", "query", "hostname", name, "type", "A");

	assert_non_null(event);
	return event;
}

static void read_event(struct suggest *s, json_t *event)
{
	assert_int_equal(suggest_read(s, event, true), 0);
	json_decref(event);
}

/* Reads events (ended by NULL, consumed), leaves the text in printed. Returns how many rules. */
static size_t suggest_of(json_t *first, ...)
{
	struct suggest_rules rules;
	struct suggest s;
	va_list more;
	FILE *out;
	size_t n;

	assert_int_equal(suggest_init(&s), 0);
	va_start(more, first);
	for (json_t *event = first; event; event = va_arg(more, json_t *))
		read_event(&s, event);
	va_end(more);
	assert_int_equal(suggest_make(&s, today, &rules), 0);
	out = fmemopen(printed, sizeof(printed), "w");
	assert_non_null(out);
	suggest_print(&s, &rules, out);
	fclose(out);
	n = rules.count;
	suggest_rules_free(&rules);
	suggest_fini(&s);
	return n;
}

static void load(const char *text, struct policy_loaded *loaded)
{
	static const struct policy_options options = {.quiet = true};
	struct diag_list diags = {.count = 0};
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	if (policy_load_file(path, &options, loaded, &diags) != 0) {
		diag_print(&diags, stderr);
		fail_msg("not a policy: %s", text);
	}
}

/* The verdict of the policy in `printed`. */
static bool allows(const char *method, const char *text)
{
	struct policy_request request = {0};
	struct policy_decision decision;
	struct policy_loaded loaded;
	struct url url;

	load(printed, &loaded);
	assert_true(url_parse(slice_from_string(text), &url));
	request.scheme = url.scheme;
	request.host = slice_of(url.authority.host, url.authority.host_n);
	request.address = url.authority.address;
	request.port = url.authority.port;
	if (method) {
		request.method = slice_from_string(method);
		request.path = url.path;
	}
	policy_decide(&loaded.policy, &request, &decision);
	policy_unload(&loaded);
	return decision.verdict == POLICY_ALLOW;
}

static void test_just_what_was_denied(void **state)
{
	(void)state;
	assert_int_equal(suggest_of(http("GET", "https", "a.example", 443, "/x/y", "default"),
	                         http("GET", "https", "a.example", 443, "/x/y", "default"), NULL),
	        1);
	assert_non_null(strstr(printed, "# 2 x, "));
	assert_true(allows("GET", "https://a.example/x/y"));
	assert_false(allows("POST", "https://a.example/x/y"));
	assert_false(allows("GET", "https://a.example/x"));
	assert_false(allows("GET", "https://a.example/x/y/z"));
	assert_false(allows("GET", "https://b.a.example/x/y"));
	assert_false(allows("GET", "https://a.example:8443/x/y"));
	assert_false(allows("GET", "http://a.example/x/y"));
}

static void test_every_reason_that_a_rule_can_change(void **state)
{
	static const char *const codes[] = {"default", "port", "method", "path"};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		assert_int_equal(
		        suggest_of(http("PUT", "http", "a.example", 8080, "/", codes[i]), NULL), 1);
		assert_true(allows("PUT", "http://a.example:8080/"));
		assert_false(allows("PUT", "http://a.example/"));
	}
}

static void test_reasons_that_no_rule_changes(void **state)
{
	static const char *const codes[] = {"rule", "bad-request", "binding", "credential",
	        "address", "limit", "policy-changed", "closing", "", "defaults", "upgrade",
	        "condition"};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		assert_int_equal(
		        suggest_of(http("GET", "https", "a.example", 443, "/", codes[i]), NULL), 0);
		assert_non_null(strstr(printed, "Not suggested"));
		assert_non_null(strstr(printed, "GET https://a.example/"));
	}
}

/* Without its conditions the rule would allow more than anybody meant. */
static void test_conditions_are_not_taken_off(void **state)
{
	(void)state;
	assert_int_equal(
	        suggest_of(http("POST", "https", "a.example", 443, "/", "condition"), NULL), 0);
	assert_non_null(strstr(printed, "under conditions"));
}

static void test_hosts_that_are_never_suggested(void **state)
{
	static const char *const hosts[] = {"169.254.169.254", "100.100.100.200", "fd00:ec2::254",
	        "metadata.google.internal", "127.0.0.1", "::1", "10.0.0.5", "192.168.1.1",
	        "169.254.1.1", "0.0.0.0", "224.0.0.1", "::ffff:8.8.8.8", "A.example", "a..example",
	        "a.example\"\n  - to: evil", "*.example", "${x}.example", "group:all", "127.1", "",
	        "vethguard-api-bde0ac86e737dd1f02f16ebf373c60f8.example",
	        "0123456789abcdef0123456789abcdef0123456789.example"};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (suggest_of(http("GET", "https", hosts[i], 443, "/", "default"), NULL) != 0)
			fail_msg("suggested: %s", printed);
}

static void test_paths_and_methods_that_are_never_suggested(void **state)
{
	static const struct {
		const char *method, *path;
	} bad[] = {{"GET", "/*"}, {"GET", "/a/**"}, {"GET", "x"}, {"GET", ""}, {"GET", "/a/../b"},
	        {"GET", "/%41"}, {"GET", "/a b"}, {"GET", "/\"]\n"}, {"GET", "/a\\b"},
	        {"GET", "/vethguard-api-bde0ac86e737dd1f02f16ebf373c60f8"},
	        {"GET", "/ghp_VETHGUARD0123"}, {"get", "/"}, {"TRACE", "/"}, {"PRI", "/"},
	        {"", "/"}, {"GET,PUT", "/"}, {"GET]", "/"}, {"1", "/"},
	        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "/"}};
	char *longer = calloc(1, SUGGEST_PATH_MAX + 2);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (suggest_of(
		            http(bad[i].method, "https", "a.example", 443, bad[i].path, "default"),
		            NULL) != 0)
			fail_msg("suggested: %s", printed);
	memset(longer, 'a', SUGGEST_PATH_MAX + 1);
	longer[0] = '/';
	assert_int_equal(
	        suggest_of(http("GET", "https", "a.example", 443, longer, "default"), NULL), 0);
	longer[SUGGEST_PATH_MAX] = '\0';
	assert_int_equal(
	        suggest_of(http("GET", "https", "a.example", 443, longer, "default"), NULL), 1);
	free(longer);
}

static void test_a_placeholder_in_the_query(void **state)
{
	json_t *event = http("GET", "https", "a.example", 443, "/", "default");

	(void)state;
	json_object_set_new(json_object_get(json_object_get(event, "http_request"), "url"),
	        "query_string", json_string("k=sk-vethguard-0123"));
	assert_int_equal(suggest_of(event, NULL), 0);
}

/* The same, with the credential that the worker has told beside it. */
static json_t *with_placeholder_of(json_t *event, const char *credential)
{
	json_object_set_new(event, "unmapped", json_pack("{s:s}", "credential", credential));
	return event;
}

#define LINE_OF(name) "\n    # credential: " name "\n"

static void test_a_placeholder_at_its_own_host(void **state)
{
	json_t *event = http("GET", "https", "a.example", 443, "/x", "path");

	(void)state;
	json_object_set_new(json_object_get(json_object_get(event, "http_request"), "url"),
	        "query_string", json_string("k=sk-vethguard-0123"));
	assert_int_equal(suggest_of(with_placeholder_of(event, "github"), NULL), 1);
	assert_non_null(strstr(printed, LINE_OF("github")));
	assert_true(allows("GET", "https://a.example/x")); /* loads: the line is a comment */
	/* the line is there once for a rule of several requests, whichever of them had it */
	assert_int_equal(
	        suggest_of(http("GET", "https", "a.example", 443, "/x", "path"),
	                with_placeholder_of(
	                        http("GET", "https", "a.example", 443, "/x", "path"), "one"),
	                with_placeholder_of(
	                        http("POST", "https", "a.example", 443, "/x", "method"), "one"),
	                NULL),
	        1);
	assert_non_null(strstr(printed, LINE_OF("one")));
	/* two credentials: nobody knows which one the rule should have */
	assert_int_equal(
	        suggest_of(with_placeholder_of(
	                           http("GET", "https", "a.example", 443, "/x", "path"), "one"),
	                with_placeholder_of(
	                        http("GET", "https", "a.example", 443, "/y", "path"), "two"),
	                NULL),
	        1);
	assert_null(strstr(printed, "credential:"));
}

/* The log may be written by anybody. */
static void test_what_is_no_credential(void **state)
{
	static const char *const names[] = {"", "a b", "a\n  - to: evil", "a#b", "a: b", "\"a\"",
	        "0123456789012345678901234567890123456789012345678901234567890123x"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *event = http("GET", "https", "a.example", 443, "/x", "path");

		assert_int_equal(suggest_of(with_placeholder_of(event, names[i]), NULL), 1);
		assert_null(strstr(printed, "credential:"));
		assert_false(allows("GET", "https://evil/"));
	}
	/* a placeholder in the path would become part of the rule; deny rules stay as they are */
	assert_int_equal(suggest_of(with_placeholder_of(http("GET", "https", "a.example", 443,
	                                                        "/sk-vethguard-0123", "path"),
	                                    "one"),
	                         NULL),
	        0);
	assert_int_equal(
	        suggest_of(with_placeholder_of(
	                           http("GET", "https", "a.example", 443, "/x", "rule"), "one"),
	                NULL),
	        0);
}

static void test_a_text_does_not_end_at_its_nul(void **state)
{
	json_t *event = http("GET", "https", "a.example", 443, "/", "default");

	(void)state;
	json_object_set_new(json_object_get(json_object_get(event, "http_request"), "url"),
	        "hostname", json_stringn("a.example\0.evil", 15));
	assert_int_equal(suggest_of(event, NULL), 0);
}

static void test_what_is_not_suggested_is_escaped_once(void **state)
{
	(void)state;
	assert_int_equal(
	        suggest_of(http("GET", "https", "a.example", 443, "/a\nb\\c\033", "default"), NULL),
	        0);
	assert_non_null(strstr(printed, "  GET https://a.example/a\\x0ab\\x5cc\\x1b\n"));
}

static void test_findings_forbid(void **state)
{
	json_t *denial = http("POST", "https", "a.example", 443, "/", "default");
	const char *uid = json_string_value(audit_member(denial, "metadata.uid"));
	json_t *about = json_pack("{s:i, s:{s:[{s:s}]}}", "class_uid", CLASS_FINDING,
	        "finding_info", "related_events", "uid", uid);
	json_t *of_host = json_pack("{s:i, s:[{s:{s:s}}]}", "class_uid", CLASS_FINDING, "evidences",
	        "dst_endpoint", "hostname", "b.example");
	json_t *tunnel = json_pack("{s:i, s:[{s:{s:s}}]}", "class_uid", CLASS_FINDING, "evidences",
	        "query", "hostname", "0011.t.c.example");

	(void)state;
	/* The finding stands behind its denial. */
	assert_int_equal(suggest_of(denial, about, NULL), 0);
	assert_non_null(strstr(printed, "a finding is about it"));
	assert_int_equal(suggest_of(http("GET", "https", "b.example", 443, "/", "default"), of_host,
	                         http("GET", "https", "d.example", 443, "/", "default"), NULL),
	        1);
	assert_null(strstr(printed, "\"https://b.example"));
	assert_int_equal(
	        suggest_of(tunnel, http("GET", "https", "t.c.example", 443, "/", "default"),
	                http("GET", "https", "c.example", 443, "/", "default"), NULL),
	        0);
}

static void test_methods_share_a_rule_only_where_paths_are_the_same(void **state)
{
	(void)state;
	assert_int_equal(suggest_of(http("GET", "https", "a.example", 443, "/x", "default"),
	                         http("POST", "https", "a.example", 443, "/x", "default"),
	                         http("PUT", "https", "a.example", 443, "/y", "default"), NULL),
	        2);
	assert_true(allows("POST", "https://a.example/x"));
	assert_true(allows("PUT", "https://a.example/y"));
	assert_false(allows("PUT", "https://a.example/x"));
	assert_false(allows("GET", "https://a.example/y"));
}

/* n paths PREFIX0, PREFIX1, ... */
static size_t suggest_many(const char *prefix, int n)
{
	struct suggest_rules rules;
	struct suggest s;
	FILE *out;
	size_t count;

	assert_int_equal(suggest_init(&s), 0);
	for (int i = 0; i < n; i++) {
		char where[64];

		snprintf(where, sizeof(where), "%s%d", prefix, i);
		read_event(&s, http("GET", "https", "a.example", 443, where, "path"));
	}
	assert_int_equal(suggest_make(&s, today, &rules), 0);
	out = fmemopen(printed, sizeof(printed), "w");
	suggest_print(&s, &rules, out);
	fclose(out);
	count = rules.count;
	suggest_rules_free(&rules);
	suggest_fini(&s);
	return count;
}

static void test_many_paths_become_one_pattern_and_say_so(void **state)
{
	(void)state;
	assert_int_equal(suggest_many("/repos/acme/n", SUGGEST_PATHS_MAX), 1);
	assert_null(strstr(printed, "more than was asked for"));
	assert_false(allows("GET", "https://a.example/repos/acme/n99"));
	assert_int_equal(suggest_many("/repos/acme/n", SUGGEST_PATHS_MAX + 1), 1);
	assert_non_null(strstr(printed, "more than was asked for"));
	assert_true(allows("GET", "https://a.example/repos/acme/n0"));
	assert_false(allows("GET", "https://a.example/repos/other"));
	assert_int_equal(suggest_many("/", SUGGEST_PATHS_MAX + 1), 1);
	assert_true(allows("GET", "https://a.example/0"));
}

static void test_connections(void **state)
{
	(void)state;
	assert_int_equal(suggest_of(connection("tcp", "db.example", 5432, 2),
	                         connection("udp", "ntp.example", 123, 2), NULL),
	        2);
	assert_true(allows(NULL, "tcp://db.example:5432"));
	assert_false(allows(NULL, "tcp://db.example:5433"));
	assert_true(allows(NULL, "udp://ntp.example:123"));
	/* No rule is suggested that would relay HTTP unread, nor for packets of the fence, other
	 * protocols or ports out of range. */
	assert_int_equal(suggest_of(connection("tcp", "a.example", 443, 2),
	                         connection("tcp", "b.example", 80, 2),
	                         connection("icmp", "c.example", 7, 2),
	                         connection("udp", "d.example", 9, DISPOSITION_DROPPED),
	                         connection("tcp", "e.example", 0, 2),
	                         connection("tcp", "e.example", 65536, 2), NULL),
	        0);
}

static void test_a_name_alone_is_no_request(void **state)
{
	(void)state;
	assert_int_equal(suggest_of(query("a.example"), NULL), 0);
	assert_non_null(strstr(printed, "only its name was resolved"));
	assert_int_equal(suggest_of(query("a.example"),
	                         http("GET", "https", "a.example", 443, "/", "default"), NULL),
	        1);
	assert_null(strstr(printed, "only its name was resolved"));
}

static json_t *observed(json_t *event, bool failed)
{
	json_object_set_new(event, "action_id", json_integer(ACTION_OBSERVED));
	json_object_set_new(event, "disposition_id", json_integer(failed ? DISPOSITION_ERROR : 17));
	return event;
}

static void test_what_the_log_cannot_know_is_said(void **state)
{
	static const char each[] = "failed each time";

	(void)state;
	assert_int_equal(suggest_of(observed(connection("tcp", "mail.example", 25, 2), true),
	                         observed(connection("tcp", "mail.example", 25, 2), true), NULL),
	        1);
	assert_true(allows(NULL, "tcp://mail.example:25"));
	assert_non_null(strstr(printed, each));
	assert_int_equal(suggest_of(observed(connection("tcp", "mail.example", 25, 2), true),
	                         observed(connection("tcp", "mail.example", 25, 2), false), NULL),
	        1);
	assert_non_null(strstr(printed, "1 of them failed"));
	assert_int_equal(
	        suggest_of(observed(http("GET", "https", "a.example", 443, "/x", "default"), true),
	                observed(http("GET", "https", "a.example", 443, "/y", "default"), true),
	                observed(http("PUT", "https", "a.example", 443, "/z", "default"), false),
	                NULL),
	        2);
	assert_non_null(strstr(printed, each));
	/* A denial in mode enforce is not a failure, whatever became of it. */
	assert_int_equal(
	        suggest_of(connection("tcp", "mail.example", 25, DISPOSITION_ERROR), NULL), 1);
	assert_null(strstr(printed, "failed"));
	assert_int_equal(suggest_of(connection("tcp", "192.168.1.7", 25, 2), NULL), 0);
	assert_int_equal(suggest_of(connection("tcp", "8.8.8.8", 25, 2), NULL), 1);
	assert_non_null(strstr(printed, "no name was asked for"));
}

static json_t *unseen(const char *host, int port, const char *code)
{
	json_t *event = connection("tcp", host, port, DISPOSITION_ERROR);

	json_object_set_new(event, "status_code", json_string(code));
	return event;
}

static void test_a_connection_without_a_request(void **state)
{
	static const char words[] = "no request was seen: ";

	(void)state;
	assert_int_equal(suggest_of(unseen("a.example", 443, "client"), NULL), 0);
	assert_non_null(strstr(printed, words));
	assert_int_equal(suggest_of(unseen("a.example", 22, "timeout"), NULL), 0);
	assert_non_null(strstr(printed, words));
	assert_int_equal(suggest_of(connection("tcp", "a.example", 443, 2), NULL), 0);
	assert_non_null(strstr(printed, words));
	assert_int_equal(suggest_of(unseen("a.example", 443, "limit"), NULL), 0);
	assert_null(strstr(printed, words));
	/* Beside a request to the same host it says nothing. */
	assert_int_equal(suggest_of(unseen("a.example", 443, "client"),
	                         http("GET", "https", "a.example", 443, "/", "default"), NULL),
	        1);
	assert_null(strstr(printed, words));
}

static void test_a_name_of_a_search_list_is_no_ask(void **state)
{
	json_t *event = query("a.example.corp.example");

	(void)state;
	json_object_set_new(event, "status_code", json_string("search-list"));
	assert_int_equal(suggest_of(event, query("b.example"), NULL), 0);
	assert_null(strstr(printed, "corp.example"));
	assert_non_null(strstr(printed, "b.example"));
}

static void test_attributes_of_wrong_types(void **state)
{
	static const char *const lines[] = {"{\"time\":1,\"class_uid\":4002,\"action_id\":2}",
	        "{\"time\":1,\"class_uid\":4002,\"action_id\":2,\"status_code\":\"default\",\"http_"
	        "request\":[]}",
	        "{\"time\":1,\"class_uid\":4001,\"action_id\":2,\"status_code\":\"default\",\"dst_"
	        "endpoint\":7}",
	        "{\"time\":1,\"class_uid\":4003,\"action_id\":2,\"status_code\":1,\"query\":null}",
	        "{\"time\":\"1\",\"class_uid\":4002,\"action_id\":2,\"status_code\":\"default\"}",
	        "{\"class_uid\":2004,\"finding_info\":{\"related_events\":{}},\"evidences\":"
	        "\"x\"}"};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(suggest_of(json_loads(lines[i], 0, NULL), NULL), 0);
}

static void test_too_many_are_refused(void **state)
{
	struct suggest s;
	char where[32];
	int rc = 0;

	(void)state;
	assert_int_equal(suggest_init(&s), 0);
	for (int i = 0; i <= SUGGEST_ASKS_MAX && rc == 0; i++) {
		json_t *event;

		snprintf(where, sizeof(where), "/%d", i);
		event = http("GET", "https", "a.example", 443, where, "default");
		rc = suggest_read(&s, event, true);
		json_decref(event);
	}
	assert_int_equal(rc, -E2BIG);
	assert_int_equal(s.count, SUGGEST_ASKS_MAX);
	suggest_fini(&s);
}

/* How many rules are suggested for one event beside a policy with these rules. */
static size_t suggest_beside(const char *rules, json_t *event)
{
	struct policy_loaded loaded;
	char text[512];
	size_t n;

	snprintf(text, sizeof(text), "vethguard: 1\n%s", rules);
	load(text, &loaded);
	today = &loaded.policy;
	n = suggest_of(event, NULL);
	today = NULL;
	policy_unload(&loaded);
	return n;
}

static void test_what_a_policy_allows_by_now_is_left_out(void **state)
{
	static const char get[] = "allow: [{to: \"https://a.example\", methods: [GET]}]\n";
	static const char tcp[] = "allow: [{to: \"tcp://a.example:443\"}]\n";
	static const char address[] = "allow: [{to: \"http://10.0.0.5\"}]\n";
	static const char left_out[] =
	        "# Nothing to suggest.\n# Left out: 1 that the policy allows "
	        "by now.\n";

	(void)state;
	assert_int_equal(
	        suggest_beside(get, http("GET", "https", "a.example", 443, "/x", "default")), 0);
	assert_string_equal(printed, left_out);
	/* Unread inside of TLS, whatever is asked. */
	assert_int_equal(
	        suggest_beside(tcp, http("PUT", "https", "a.example", 443, "/x", "default")), 0);
	assert_string_equal(printed, left_out);
	assert_int_equal(suggest_beside("allow: [{to: \"tcp://a.example:22\"}]\n",
	                         connection("tcp", "a.example", 22, 2)),
	        0);
	assert_string_equal(printed, left_out);
	assert_int_equal(
	        suggest_beside(address, http("GET", "http", "10.0.0.5", 80, "/", "default")), 0);
	assert_string_equal(printed, left_out);
	/* So is plain http, where the policy does not speak of http there. */
	assert_int_equal(suggest_beside("allow: [{to: \"tcp://a.example:80\"}]\n",
	                         http("PUT", "http", "a.example", 80, "/x", "default")),
	        0);
	assert_string_equal(printed, left_out);
	/* A deny rule that is gone. */
	assert_int_equal(
	        suggest_beside(get, http("GET", "https", "a.example", 443, "/x", "rule")), 0);
	assert_string_equal(printed, left_out);
}

static void test_what_a_policy_does_not_allow_stays(void **state)
{
	static const char get[] = "allow: [{to: \"https://a.example\", methods: [GET]}]\n";
	static const char observe[] = "mode: observe\nallow: [{to: \"https://b.example\"}]\n";
	static const char web_and_tcp[] = "allow: [{to: \"http://a.example\", methods: [GET]}, "
	                                  "{to: \"tcp://a.example:80\"}]\n";
	static const char tls_and_tcp[] = "allow: [{to: \"https://a.example:80\"}, "
	                                  "{to: \"tcp://a.example:80\"}]\n";

	(void)state;
	assert_int_equal(
	        suggest_beside(get, http("PUT", "https", "a.example", 443, "/x", "default")), 1);
	assert_null(strstr(printed, "Left out"));
	assert_int_equal(
	        suggest_beside(get, http("GET", "http", "a.example", 80, "/x", "default")), 1);
	assert_int_equal(
	        suggest_beside(get, http("GET", "https", "b.example", 443, "/x", "default")), 1);
	assert_int_equal(suggest_beside(get, connection("tcp", "a.example", 22, 2)), 1);
	/* A destination of an http rule is read, also if a tcp:// rule names it too. */
	assert_int_equal(
	        suggest_beside(web_and_tcp, http("PUT", "http", "a.example", 80, "/x", "default")),
	        1);
	/* So it is where https is spoken of at that port: the first bytes decide. */
	assert_int_equal(
	        suggest_beside(tls_and_tcp, http("PUT", "http", "a.example", 80, "/x", "default")),
	        1);
	assert_int_equal(suggest_beside("allow: [{to: \"tcp://a.example:81\"}]\n",
	                         http("PUT", "http", "a.example", 80, "/x", "default")),
	        1);
	/* An observed request is not an allowed one. */
	assert_int_equal(
	        suggest_beside(observe, http("GET", "https", "a.example", 443, "/x", "default")),
	        1);
}

static void test_a_deny_rule_of_the_policy_is_told(void **state)
{
	static const char deny[] = "deny: [{to: \"https://a.example\"}]\n";
	static const char observe[] = "mode: observe\ndeny: [{to: \"https://a.example\"}]\n";

	(void)state;
	assert_int_equal(
	        suggest_beside(deny, http("GET", "https", "a.example", 443, "/x", "default")), 0);
	assert_non_null(strstr(printed, "a deny rule refuses it on purpose"));
	assert_int_equal(
	        suggest_beside(observe, http("GET", "https", "a.example", 443, "/x", "default")),
	        0);
	assert_non_null(strstr(printed, "a deny rule refuses it on purpose"));
}

static void test_an_attack_is_named_whatever_a_policy_allows(void **state)
{
	static const char all[] =
	        "allow: [{to: \"https://a.example\"}, {to: \"http://169.254.169.254\"}]\n";

	(void)state;
	assert_int_equal(suggest_beside(all, http("GET", "https", "a.example", 443,
	                                             "/vethguard-api-bde0", "default")),
	        0);
	assert_non_null(strstr(printed, "placeholder"));
	assert_int_equal(
	        suggest_beside(all, http("GET", "http", "169.254.169.254", 80, "/", "default")), 0);
	assert_non_null(strstr(printed, "metadata"));
	assert_int_equal(
	        suggest_beside(all, http("GET", "https", "a.example", 443, "/x", "binding")), 0);
	assert_non_null(strstr(printed, "no rule would allow it"));
	assert_null(strstr(printed, "Left out"));
}

static void test_a_finding_counts_whatever_a_policy_allows(void **state)
{
	json_t *denial = http("GET", "https", "a.example", 443, "/x", "default");
	json_t *finding = json_pack("{s:i, s:{s:[{s:O}]}}", "class_uid", CLASS_FINDING,
	        "finding_info", "related_events", "uid", audit_member(denial, "metadata.uid"));
	struct policy_loaded loaded;

	(void)state;
	load("vethguard: 1\nallow: [{to: \"https://a.example\"}]\n", &loaded);
	today = &loaded.policy;
	assert_int_equal(suggest_of(denial, finding, NULL), 0);
	today = NULL;
	policy_unload(&loaded);
	assert_non_null(strstr(printed, "a finding is about it"));
	assert_null(strstr(printed, "Left out"));
}

static int suggest(const char *a, const char *b, const char *c)
{
	return audit_suggest(2, (char **)(const char *[]){"suggest", a, b, c, NULL});
}

static int run_on(const char *text, const char *option, const char *value)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return suggest(path, option, value);
}

static void test_usage(void **state)
{
	(void)state;
	assert_int_equal(run_on("", NULL, NULL), 1);
	assert_int_equal(run_on("nonsense\n", NULL, NULL), 1);
	assert_int_equal(run_on("", "--json", NULL), 1);
	assert_int_equal(run_on("", "--since", "soon"), 2);
	assert_int_equal(run_on("", "--nonsense", NULL), 2);
	assert_int_equal(run_on("", "second-file", NULL), 2);
	assert_int_equal(run_on("", "--policy", "/no/such/file"), 2);
	assert_int_equal(run_on("no policy\n", "--policy", path), 2);
	assert_int_equal(run_on("vethguard: 1\n", "--policy", path), 1); /* a log of no events */
	assert_int_equal(run_on("", "--var", "=x"), 2);
	assert_int_equal(run_on("", "--var", "name=value"), 2); /* of which policy? */
	assert_int_equal(suggest("/no/such/file", NULL, NULL), 2);
	assert_int_equal(suggest("--socket=/nonexistent/control.sock", NULL, NULL), 3);
	assert_int_equal(suggest("--socket=/nonexistent/control.sock", "log", NULL), 2);
	assert_int_equal(suggest("--help", NULL, NULL), 0);
}

static int set_path(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_suggest.%d.yaml", getpid());
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_just_what_was_denied),
	        cmocka_unit_test(test_every_reason_that_a_rule_can_change),
	        cmocka_unit_test(test_reasons_that_no_rule_changes),
	        cmocka_unit_test(test_conditions_are_not_taken_off),
	        cmocka_unit_test(test_hosts_that_are_never_suggested),
	        cmocka_unit_test(test_paths_and_methods_that_are_never_suggested),
	        cmocka_unit_test(test_a_placeholder_in_the_query),
	        cmocka_unit_test(test_a_placeholder_at_its_own_host),
	        cmocka_unit_test(test_what_is_no_credential),
	        cmocka_unit_test(test_a_text_does_not_end_at_its_nul),
	        cmocka_unit_test(test_what_is_not_suggested_is_escaped_once),
	        cmocka_unit_test(test_findings_forbid),
	        cmocka_unit_test(test_methods_share_a_rule_only_where_paths_are_the_same),
	        cmocka_unit_test(test_many_paths_become_one_pattern_and_say_so),
	        cmocka_unit_test(test_connections),
	        cmocka_unit_test(test_a_name_alone_is_no_request),
	        cmocka_unit_test(test_what_the_log_cannot_know_is_said),
	        cmocka_unit_test(test_a_connection_without_a_request),
	        cmocka_unit_test(test_a_name_of_a_search_list_is_no_ask),
	        cmocka_unit_test(test_attributes_of_wrong_types),
	        cmocka_unit_test(test_too_many_are_refused),
	        cmocka_unit_test(test_what_a_policy_allows_by_now_is_left_out),
	        cmocka_unit_test(test_what_a_policy_does_not_allow_stays),
	        cmocka_unit_test(test_a_deny_rule_of_the_policy_is_told),
	        cmocka_unit_test(test_an_attack_is_named_whatever_a_policy_allows),
	        cmocka_unit_test(test_a_finding_counts_whatever_a_policy_allows),
	        cmocka_unit_test(test_usage),
	};

	return cmocka_run_group_tests(tests, set_path, remove_path);
}
