/* SPDX-License-Identifier: Apache-2.0 */
/* The control API: the daemon itself, its roles, its audit log and its CAs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "control_fixture.h"
#include "vethguard/bundle/signed_bundle.h"

static int tell_roles(struct control_owner *owner, roles_told told, void *context)
{
	static char text[LABEL_BYTES + 1];
	static struct confinement_report reports[2 + CONTROL_ANSWER_MAX / LABEL_BYTES];

	(void)owner;
	memset(text, 'x', LABEL_BYTES);
	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++)
		reports[i] =
		        (struct confinement_report){.label = "a worker", .pid = 9, .text = text};
	told(context, 0, reports, all.many ? sizeof(reports) / sizeof(reports[0]) : 1);
	return 0;
}

static int tell_head(struct control_owner *owner, head_told told, void *context)
{
	(void)owner;
	if (all.many)
		return all.many == 1 ? -EBUSY : -ENOMEM;
	told(context, all.later ? NULL : "00ff");
	return 0;
}

static void test_audit(void **state)
{
	(void)state;
	f.owner.head = tell_head;
	assert_int_equal(call("GET", "/v1/audit", ""), 200);
	assert_non_null(
	        strstr(answer, "{\"path\":\"/a\",\"recording\":false,\"fingerprint\":\"00ff\"}"));
	all.later = true;
	assert_int_equal(call("GET", "/v1/audit", ""), 200);
	assert_non_null(strstr(answer, "\"fingerprint\":null}"));
	all.many = 1;
	refused(503, "GET", "/v1/audit", "", "too many callers ask for that");
	all.many = 2;
	refused(503, "GET", "/v1/audit", "", "no memory");
	refused(405, "POST", "/v1/audit", "", "Allow: GET\r\n");
	refused(404, "GET", "/v1/audit/x", "", "");
}

/* What the keeper has, and what it is asked for. */

#define PRINT "0123456789abcdef0123456789abcdef"

static struct message_keeper_ca cas;
static struct {
	char text[256];
	int rc;
	const char *error;
} change;

static const struct message_keeper_ca *tell_cas(struct control_owner *owner)
{
	(void)owner;
	return cas.count ? &cas : NULL;
}

static int change_cas(struct control_owner *owner, const struct message_keeper_ca_ask *q,
        ca_told told, void *context)
{
	(void)owner;
	snprintf(change.text, sizeof(change.text), "%u %u %.*s %.*s %.*s", q->what, q->overlap_s,
	        (int)q->name.n, q->name.p, (int)q->certificate.n, q->certificate.p, (int)q->root.n,
	        q->root.p);
	if (!change.rc)
		told(context, change.error, true);
	return change.rc;
}

static void test_cas(void **state)
{
	(void)state;
	f.owner.ca = tell_cas;
	cas = (struct message_keeper_ca){0};
	refused(503, "GET", "/v1/ca", "", "not reported its CAs yet");
	cas = (struct message_keeper_ca){.notes = SLICE("one\ntwo\n"),
	        .request = SLICE(""),
	        .trusted = SLICE("-----BEGIN"),
	        .count = 1};
	cas.cas[0].fingerprint = cas.cas[0].root = SLICE(PRINT);
	cas.cas[0].subject = cas.cas[0].root_subject = SLICE("CN=\"a\"");
	cas.cas[0].until_s = 1763762345;
	assert_int_equal(call("GET", "/v1/ca", ""), 200);
	assert_non_null(strstr(answer, "\"notes\":[\"one\",\"two\"]"));
	assert_non_null(strstr(answer, "\"request_pem\":null"));
	assert_non_null(
	        strstr(answer, "\"origin\":\"own\",\"current\":true,\"subject\":\"CN=\\\"a\\\"\""));
	assert_non_null(strstr(answer, "\"until\":\"2025-11-21T21:59:05.000Z\""));
	assert_non_null(strstr(answer, "\"fingerprint\":\"3031"));
	assert_non_null(strstr(answer, "\"sandboxes\":0}"));
	assert_true(f.looks);
	json_decref(json_answer());
	cas.unusable = true;
	assert_int_equal(call("GET", "/v1/ca", ""), 200);
	assert_non_null(strstr(answer, "\"usable\":false"));
	assert_non_null(strstr(answer, "\"current\":false"));
}

static void asks_for(const char *path, const char *body, const char *expected)
{
	change.text[0] = 0;
	assert_int_equal(call("POST", path, body), 200);
	assert_string_equal(change.text, expected);
	assert_false(f.looks);
}

static void test_changes_of_cas(void **state)
{
	(void)state;
	f.owner.ca = tell_cas;
	f.owner.change_ca = change_cas;
	memset(&change, 0, sizeof(change));
	cas.count = 1;
	asks_for("/v1/ca/csr", "", "2 0   ");
	asks_for("/v1/ca/csr", "{\"name\":\"n\"}", "2 0 n  ");
	asks_for("/v1/ca/install", "{\"certificate\":\"c\",\"root\":\"r\",\"overlap_s\":9}",
	        "3 9  c r");
	asks_for("/v1/ca/rotate", "{\"overlap_s\":315360000,\"name\":\"n\"}", "4 315360000 n  ");
	change.text[0] = 0;
	refused(422, "POST", "/v1/ca/csr", "{\"nmae\":\"n\"}", "did you mean \\\"name\\\"");
	refused(422, "POST", "/v1/ca/csr", "{\"name\":7}", "has to be a string");
	refused(422, "POST", "/v1/ca/csr", "{\"root\":\"r\"}", "no such member");
	refused(422, "POST", "/v1/ca/install", "", "certificate: the PEM text");
	refused(422, "POST", "/v1/ca/install", "{\"root\":\"r\"}", "certificate: the PEM text");
	refused(422, "POST", "/v1/ca/rotate", "{\"overlap_s\":0}", "out of range");
	refused(422, "POST", "/v1/ca/rotate", "{\"overlap_s\":315360001}", "out of range");
	refused(405, "POST", "/v1/ca", "", "Allow: GET\r\n");
	refused(404, "POST", "/v1/ca/drop", "", "");
	assert_string_equal(change.text, "");
	change.error = "the certificate has pathlen 0";
	refused(422, "POST", "/v1/ca/rotate", "", "pathlen 0");
	change.rc = -EBUSY;
	refused(503, "POST", "/v1/ca/rotate", "", "under way");
	change.rc = -EAGAIN;
	refused(503, "POST", "/v1/ca/rotate", "", "taking over");
	change.rc = -ENOSPC;
	refused(500, "POST", "/v1/ca/rotate", "", "cannot be made");
}

/* As many bytes as there may be, and one more. */
static void test_long_papers(void **state)
{
	static char text[MESSAGE_PAPERS_MAX + 2], body[2 * MESSAGE_PAPERS_MAX];

	(void)state;
	f.owner.ca = tell_cas;
	f.owner.change_ca = change_cas;
	memset(&change, 0, sizeof(change));
	cas.count = 1;
	memset(text, 'x', MESSAGE_NAME_MAX);
	snprintf(body, sizeof(body), "{\"name\":\"%s\"}", text);
	assert_int_equal(call("POST", "/v1/ca/csr", body), 200);
	snprintf(body, sizeof(body), "{\"name\":\"%sx\"}", text);
	refused(422, "POST", "/v1/ca/csr", body, "name: longer than 64 bytes");
	refused(422, "POST", "/v1/ca/rotate", body, "name: longer than 64 bytes");
	memset(text, 'x', MESSAGE_PAPERS_MAX);
	snprintf(body, sizeof(body), "{\"certificate\":\"%s\"}", text);
	assert_int_equal(call("POST", "/v1/ca/install", body), 200);
	snprintf(body, sizeof(body), "{\"certificate\":\"%sx\"}", text);
	refused(422, "POST", "/v1/ca/install", body, "more than 32768 bytes");
	snprintf(body, sizeof(body), "{\"certificate\":\"c\",\"root\":\"%sx\"}", text);
	refused(422, "POST", "/v1/ca/install", body, "more than 32768 bytes");
}

static void test_roles(void **state)
{
	(void)state;
	f.owner.roles = tell_roles;
	assert_int_equal(call("GET", "/v1/roles", ""), 200);
	assert_non_null(
	        strstr(answer, "{\"roles\":[{\"role\":\"a worker\",\"pid\":9,\"text\":\"xx"));
	all.many = 1;
	refused(503, "GET", "/v1/roles", "", "too large for one answer");
}

static void test_bundles(void **state)
{
	static struct signed_bundle active = {.serial = 7,
	        .expires_s = 1790000000,
	        .file_count = 2,
	        .files = {{SLICE("a.yaml"), SLICE("")}, {SLICE("k.jwks"), SLICE("")}},
	        .session_count = 3,
	        .token_count = 4};

	(void)state;
	assert_int_equal(call("GET", "/v1/bundles", ""), 200);
	assert_non_null(strstr(answer, "{\"bundles\":[]}"));
	assert_string_equal(f.operation, "bundles.list");
	all.bundle_count = 2;
	all.bundles[0] = (struct attach_bundle){.name = "fleet",
	        .source = "/f",
	        .active = &active,
	        .highest = 7,
	        .taken_ms = 1790000000000,
	        .looked_ms = 1790000001000};
	all.bundles[1] = (struct attach_bundle){.name = "b",
	        .source = "https://h/b",
	        .fault = "serial",
	        .why = "its serial \"5\" is lower"};
	assert_int_equal(call("GET", "/v1/bundles", ""), 200);
	assert_non_null(strstr(answer,
	        "{\"bundles\":[{\"name\":\"fleet\",\"source\":\"/f\",\"in_force\":"
	        "{\"serial\":7,\"since\":\"2026-09-21T14:13:20.000Z\",\"expires\":"
	        "\"2026-09-21T14:13:20.000Z\",\"expired\":true,\"policies\":[\"a.yaml\"],"
	        "\"key_sets\":[\"k.jwks\"],\"revoked_sessions\":3,\"revoked_tokens\":4},"
	        "\"highest_serial\":7,\"looked\":\"2026-09-21T14:13:21.000Z\",\"fault\":null},"
	        "{\"name\":\"b\",\"source\":\"https://h/b\",\"in_force\":null,"
	        "\"highest_serial\":null,\"looked\":null,\"fault\":{\"kind\":\"serial\","
	        "\"text\":\"its serial \\\"5\\\" is lower\"}}]}"));
	refused(405, "POST", "/v1/bundles", "", "Allow: GET");
	refused(400, "GET", "/v1/bundles", "{}", "takes no body");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(test_audit),
	        CASE(test_bundles),
	        CASE(test_cas),
	        CASE(test_changes_of_cas),
	        CASE(test_long_papers),
	        CASE(test_roles),
	};

	log_open("test_control_daemon", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
