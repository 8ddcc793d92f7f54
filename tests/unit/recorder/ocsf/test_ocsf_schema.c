/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders every kind and variant of event and lets tests/lib/ocsf_validate.py check the lines
 * against the published schema. Without the schema beside the checkout that one test is skipped, as
 * the validator says.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ocsf_fixture.h"

static void render_http_variants(void)
{
	static const char *const names[] = {"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH",
	        "OPTIONS", "CONNECT", "TRACE", "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN",
	        "CHECKOUT", "COPY", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR",
	        "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PRI", "PROPFIND",
	        "PROPPATCH", "QUERY", "REBIND", "REPORT", "SEARCH", "UNBIND", "UNCHECKOUT",
	        "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL", "BREW", "get",
	        ""};
	struct event e;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		e = sample_http();
		e.method = slice_from_string(names[i]);
		render(e);
	}
	e = sample_denied();
	e.target = e.host = e.scheme = e.method = e.sni = (struct slice){0};
	e.dst = e.src = (struct ip){0};
	e.status = 0;
	e.http_version = 0;
	render(e);
	e.http_version = 20;
	e.policy_reason = POLICY_REASON_BAD_REQUEST;
	e.target = SLICE("?");
	render(e);
}

static void render_decisions(void)
{
	static const enum event_kind kinds[] = {
	        EVENT_HTTP, EVENT_DNS, EVENT_CONNECTION, EVENT_FLOW, EVENT_INBOUND};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct event e = kinds[k] == EVENT_HTTP  ? sample_http()
		                 : kinds[k] == EVENT_DNS ? sample_dns()
		                                         : sample_connection();

		e.kind = kinds[k];
		for (int decision = 0; decision < EVENT_DECISION_COUNT; decision++) {
			e.decision = (enum event_decision)decision;
			for (int cause = 0; cause < EVENT_CAUSE_COUNT; cause++) {
				e.cause = (enum event_cause)cause;
				render(e);
			}
			e.cause = EVENT_CAUSE_POLICY;
			for (int reason = 0; reason < POLICY_REASON_COUNT; reason++) {
				e.policy_reason = (uint8_t)reason;
				render(e);
			}
		}
	}
}

static void render_lifecycles(void)
{
	for (int what = 0; what < EVENT_LIFECYCLE_COUNT; what++) {
		struct event e = sample_lifecycle((enum event_lifecycle)what);

		render(e);
		e.detail = SLICE("The worker died (signal 9)");
		e.policy = SLICE("coding-agent");
		e.fingerprint = SLICE("fedcba9876543210");
		e.old_policy = SLICE("strict");
		e.old_fingerprint = SLICE("0123456789abcdef");
		e.generation = UINT64_MAX;
		render(e);
	}
}

static void render_calls(void)
{
	static const char *const operations[] = {"sandboxes.attach", "sandboxes.list",
	        "sandboxes.reload", "sandboxes.detach", "brew", ""};

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		struct event e = sample_call();

		e.operation = slice_from_string(operations[i]);
		render(e);
		e.decision = EVENT_DENIED;
		e.cause = EVENT_CAUSE_CALLER;
		e.status = 409;
		e.detail = SLICE("there is a sandbox of that name");
		e.user = e.user_agent = e.target = e.method = e.host = (struct slice){0};
		render(e);
		e.status = 0;
		e.process_id = 0;
		render(e);
	}
}

static void render_dns_variants(void)
{
	static const uint16_t types[] = {1, 2, 5, 6, 12, 15, 16, 28, 33, 64, 65, 255, 4242};
	static const uint16_t dns_classes[] = {0, 1, 3, 4, 255, 999};
	struct event e = sample_dns();

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		e.dns_type = types[i];
		render(e);
	}
	for (size_t i = 0; i < sizeof(dns_classes) / sizeof(dns_classes[0]); i++) {
		e.dns_class = dns_classes[i];
		render(e);
	}
	for (int rcode = 0; rcode < 256; rcode += 3) {
		e.dns_rcode = (uint8_t)rcode;
		e.answer = (struct ip){0};
		e.host = (struct slice){0};
		render(e);
	}
}

static void render_network_variants(void)
{
	struct event e = sample_connection();

	e.decision = EVENT_OBSERVED;
	e.cause = EVENT_CAUSE_RESOLVE;
	e.passthrough = true;
	render(e);
	e = sample_connection();

	e.tls_version = 0x0302;
	render(e);
	e.tls_version = 0x7f1c;
	render(e);
	e.host = e.sni = (struct slice){0};
	e.tls_version = 0;
	e.upstream = e.dst;
	render(e);
	e.src = e.dst = e.upstream = sample_ip("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff");
	render(e);
	e.src = e.dst = e.upstream = (struct ip){0};
	e.src_port = e.dst_port = e.upstream_port = 0;
	render(e);
	e = sample_packet();
	for (int protocol = 0; protocol < 256; protocol++) {
		e.protocol = (uint8_t)protocol;
		e.count = (uint64_t)protocol + 1;
		e.last_ms = e.time_ms + protocol;
		render(e);
	}
	e = (struct event){.kind = EVENT_PACKET,
	        .time_ms = SAMPLE_TIME,
	        .decision = EVENT_DROPPED,
	        .ethertype = 0x88cc,
	        .count = UINT64_MAX,
	        .verdict_rule = SLICE("ethertype")};
	render(e);
}

static void render_findings(void)
{
	for (int finding = 1; finding < EVENT_FINDING_COUNT; finding++) {
		struct event e = sample_finding((enum event_finding)finding);

		render(e);
		e.dns_type = DNS_A;
		e.dns_class = 1;
		render(e);
		e = (struct event){.kind = EVENT_FINDING,
		        .finding = (enum event_finding)finding,
		        .time_ms = SAMPLE_TIME};
		render(e);
	}
	render_lifecycles();
	render_calls();
}

static int run_validator(const char *arguments)
{
	char command[512];
	int status;

	snprintf(command, sizeof(command), "/usr/bin/python3 tests/lib/ocsf_validate.py %s >&2",
	        arguments);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_every_line_is_valid_ocsf(void **state)
{
	char path[] = "/tmp/test_ocsf.XXXXXX";
	int fd = mkstemp(path), status;

	(void)state;
	assert_true(fd >= 0);
	render_http_variants();
	render_decisions();
	render_dns_variants();
	render_network_variants();
	render_findings();
	assert_int_equal(write(fd, buf_bytes(&out), out.len), (ssize_t)out.len);
	close(fd);
	status = run_validator(path);
	unlink(path);
	if (status == 3)
		skip();
	assert_int_equal(status, 0);
}

static void test_validator_refuses_each_broken_line(void **state)
{
	int status = run_validator("--each-must-fail tests/unit/recorder/ocsf_broken.jsonl");

	(void)state;
	if (status == 3)
		skip();
	assert_int_equal(status, 0);
}

static void test_validator_says_where_no_schema_is(void **state)
{
	(void)state;
	assert_int_equal(
	        run_validator("--schema /nonexistent tests/unit/recorder/ocsf_broken.jsonl"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_every_line_is_valid_ocsf, set_up, tear_down),
	        cmocka_unit_test(test_validator_refuses_each_broken_line),
	        cmocka_unit_test(test_validator_says_where_no_schema_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
