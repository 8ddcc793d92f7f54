/* SPDX-License-Identifier: Apache-2.0 */
/* The messages about limits and about requests that a person has to approve: each message passes
 * encoding and decoding, and each field is refused beyond its bound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "message_fixture.h"

static void limits(void **state)
{
	struct message_worker_limits m = {1, {SLICE("")}};

	(void)state;
	ROUNDTRIP(worker_limits, &m, NOTHING);
	m.count = MESSAGE_LIMITS_MAX;
	for (size_t i = 0; i < MESSAGE_LIMITS_MAX; i++)
		m.shared[i] = SLICE("team");
	m.has_quotas[MESSAGE_LIMITS_MAX - 1] = true;
	ROUNDTRIP(worker_limits, &m, NOTHING);
	m.shared[3] = longer(POLICY_NAME_MAX + 1);
	REFUSES_TO_ENCODE(worker_limits, &m);
	m.shared[3] = SLICE("te\0am");
	REFUSES_TO_ENCODE(worker_limits, &m);
	m.count = 0;
	REFUSES_TO_ENCODE(worker_limits, &m);
	m.count = MESSAGE_LIMITS_MAX + 1;
	REFUSES_TO_ENCODE(worker_limits, &m);
}

static void team(void **state)
{
	struct message_worker_team m = {.seat = 0, .further = 0};

	(void)state;
	ROUNDTRIP(worker_team, &m, NOTHING);
	m = (struct message_worker_team){.seat = MESSAGE_SEATS_MAX - 1, .further = 1};
	ROUNDTRIP(worker_team, &m, NOTHING);
	m.seat = MESSAGE_SEATS_MAX;
	REFUSES_TO_ENCODE(worker_team, &m);
	m = (struct message_worker_team){.seat = 1, .further = 2};
	REFUSES_TO_ENCODE(worker_team, &m);
}

static struct message_worker_ask question(void)
{
	return (struct message_worker_ask){.rule = SLICE("pulls"),
	        .method = SLICE("POST"),
	        .host = SLICE("api.example.com"),
	        .path = SLICE("/repos/a/pulls"),
	        .query = SLICE("a=b"),
	        .scheme = POLICY_HTTPS,
	        .port = 443,
	        .bytes = 5000,
	        .wait_s = 300};
}

static void questions(void **state)
{
	struct message_worker_ask m = question();

	(void)state;
	ROUNDTRIP(worker_ask, &m, NOTHING);
	m.path = m.query = SLICE("");
	ROUNDTRIP(worker_ask, &m, NOTHING);
#define BEYOND(field, max)           \
	m = question();              \
	m.field = longer((max) + 1); \
	REFUSES_TO_ENCODE(worker_ask, &m)
	BEYOND(rule, POLICY_NAME_MAX + 256);
	BEYOND(method, POLICY_METHOD_MAX);
	BEYOND(host, POLICY_HOST_MAX);
	BEYOND(path, POLICY_PATH_MAX);
	BEYOND(query, MESSAGE_ASK_QUERY_MAX);
#undef BEYOND
	m = question();
	m.host = SLICE("");
	REFUSES_TO_ENCODE(worker_ask, &m);
	m = question();
	m.method = SLICE("");
	REFUSES_TO_ENCODE(worker_ask, &m);
	m = question();
	m.scheme = POLICY_TCP;
	REFUSES_TO_ENCODE(worker_ask, &m);
	m = question();
	m.wait_s = POLICY_ASK_WAIT_MAX_S + 1;
	REFUSES_TO_ENCODE(worker_ask, &m);
}

static void answers(void **state)
{
	struct message_worker_answer m = {1, SLICE("approved by uid 0")};

	(void)state;
	ROUNDTRIP(worker_answer, &m, NOTHING);
	REFUSES_BYTE(worker_answer, &m, HEAD_BYTES + 3, 2);
	m.approved = 2;
	REFUSES_TO_ENCODE(worker_answer, &m);
	m.approved = 0;
	m.text = longer(MESSAGE_ASK_TEXT_MAX + 1);
	REFUSES_TO_ENCODE(worker_answer, &m);
}

static void grants(void **state)
{
	struct message_worker_grant m = {
	        .whole = 1, .until_ms = 5, .ask = question(), .text = SLICE("by uid 0")};

	(void)state;
	ROUNDTRIP(worker_grant, &m, NOTHING);
	m.ends = 1;
	m.ask = (struct message_worker_ask){0};
	ROUNDTRIP(worker_grant, &m, NOTHING);
	m.ends = 0; /* unless it ends, a grant must name a request */
	REFUSES_TO_ENCODE(worker_grant, &m);
	m.ask = question();
	m.whole = 2;
	REFUSES_TO_ENCODE(worker_grant, &m);
	m.whole = 0;
	m.until_ms = UINT64_MAX;
	REFUSES_TO_ENCODE(worker_grant, &m);
	m.until_ms = 0;
	m.text = longer(MESSAGE_ASK_TEXT_MAX + 1);
	REFUSES_TO_ENCODE(worker_grant, &m);
}

static struct message_worker_proposal proposal(void)
{
	return (struct message_worker_proposal){.to = SLICE("https://*.example.com:8443"),
	        .methods = SLICE("GET HEAD"),
	        .paths = SLICE("/v1/** /x"),
	        .reason = SLICE("because")};
}

static void proposals(void **state)
{
	struct message_worker_proposal m = proposal();

	(void)state;
	ROUNDTRIP(worker_proposal, &m, NOTHING);
#define BEYOND(field, max)                      \
	m = proposal();                         \
	m.field = longer((max) + 1);            \
	REFUSES_TO_ENCODE(worker_proposal, &m); \
	m.field = SLICE("");                    \
	REFUSES_TO_ENCODE(worker_proposal, &m)
	BEYOND(to, PROPOSAL_TO_MAX);
	BEYOND(methods, PROPOSAL_METHODS_TEXT_MAX - 1);
	BEYOND(paths, PROPOSAL_PATHS_TEXT_MAX - 1);
	BEYOND(reason, PROPOSAL_REASON_MAX);
#undef BEYOND
	m = proposal();
	m.to = SLICE("https://a\0b");
	REFUSES_TO_ENCODE(worker_proposal, &m);
}

static void what_became_of_proposals(void **state)
{
	struct message_worker_proposed m = {MESSAGE_PROPOSAL_REFUSED, SLICE("https://a.example"),
	        SLICE("refused by uid 0: no")};

	(void)state;
	ROUNDTRIP(worker_proposed, &m, NOTHING);
	m.text = SLICE("");
	ROUNDTRIP(worker_proposed, &m, NOTHING);
	m.outcome = MESSAGE_PROPOSAL_KINDS;
	REFUSES_TO_ENCODE(worker_proposed, &m);
	m.outcome = 0;
	m.to = SLICE("");
	REFUSES_TO_ENCODE(worker_proposed, &m);
	m.to = longer(PROPOSAL_TO_MAX + 1);
	REFUSES_TO_ENCODE(worker_proposed, &m);
	m.to = SLICE("x");
	m.text = longer(MESSAGE_ASK_TEXT_MAX + 1);
	REFUSES_TO_ENCODE(worker_proposed, &m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(team),
	        cmocka_unit_test(limits),
	        cmocka_unit_test(questions),
	        cmocka_unit_test(answers),
	        cmocka_unit_test(grants),
	        cmocka_unit_test(proposals),
	        cmocka_unit_test(what_became_of_proposals),
	};

	memset(long_text, 'x', sizeof(long_text));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
