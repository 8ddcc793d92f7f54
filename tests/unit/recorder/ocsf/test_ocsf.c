/* SPDX-License-Identifier: Apache-2.0 */
/* Single members of an event's line. test_ocsf_schema.c checks whole lines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ocsf_fixture.h"

/* The event's line as a tree; the caller drops it. */
static json_t *rendered(struct event event)
{
	size_t start = out.len;
	json_error_t error;
	json_t *tree;

	render(event);
	tree = json_loadb((const char *)buf_bytes(&out) + start, out.len - start,
	        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	assert_non_null(tree);
	return tree;
}

/* Text at a path of keys like "a.b.0.c", or NULL. */
static const json_t *at(const json_t *tree, const char *path)
{
	char copy[128], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key = strtok_r(copy, ".", &save); key && tree; key = strtok_r(NULL, ".", &save))
		tree = json_is_array(tree) ? json_array_get(tree, (size_t)atoi(key))
		                           : json_object_get(tree, key);
	return tree;
}

static void assert_text(const json_t *tree, const char *path, const char *expected)
{
	const char *text = json_string_value(at(tree, path));

	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void assert_number(const json_t *tree, const char *path, json_int_t expected)
{
	assert_true(json_is_integer(at(tree, path)));
	assert_int_equal(json_integer_value(at(tree, path)), expected);
}

static void assert_absent(const json_t *tree, const char *path)
{
	assert_null(at(tree, path));
}

/* From an address to a port of the sandbox; then from another sandbox; then refused before anything
 * is known of the sandbox's address. */
static void test_inbound(void **state)
{
	struct event e = {.id = 1,
	        .kind = EVENT_INBOUND,
	        .time_ms = SAMPLE_TIME,
	        .duration_us = 41000,
	        .policy_reason = POLICY_REASON_RULE,
	        .rule = SLICE("page"),
	        .src = sample_ip("192.0.2.7"),
	        .src_port = 40000,
	        .dst = sample_ip("10.1.0.1"),
	        .dst_port = 80,
	        .upstream = sample_ip("198.18.0.2"),
	        .upstream_port = 8080,
	        .protocol = 6,
	        .bytes_in = 10,
	        .bytes_out = 20};
	json_t *line = rendered(e);

	(void)state;
	assert_number(line, "type_uid", 400102);
	assert_number(line, "connection_info.direction_id", 1);
	assert_text(line, "src_endpoint.ip", "192.0.2.7");
	assert_text(line, "dst_endpoint.name", "agent \"7\"");
	assert_text(line, "dst_endpoint.ip", "198.18.0.2");
	assert_number(line, "dst_endpoint.port", 8080);
	assert_text(line, "proxy_endpoint.ip", "10.1.0.1");
	assert_number(line, "proxy_endpoint.port", 80);
	assert_number(line, "traffic.end_time", SAMPLE_TIME + 41);
	assert_text(line, "firewall_rule.name", "page");
	assert_text(line, "message", "from 192.0.2.7 to port 8080 allowed");
	json_decref(line);
	e.src = e.dst = (struct ip){0};
	e.src_port = e.dst_port = 0;
	e.user = SLICE("two");
	line = rendered(e);
	assert_text(line, "src_endpoint.name", "two");
	assert_absent(line, "src_endpoint.ip");
	assert_absent(line, "proxy_endpoint.ip");
	assert_text(line, "message", "from two to port 8080 allowed");
	json_decref(line);
	e.upstream = (struct ip){0};
	e.decision = EVENT_DENIED;
	e.policy_reason = POLICY_REASON_DEFAULT;
	line = rendered(e);
	assert_number(line, "type_uid", 400105);
	assert_number(line, "action_id", 2);
	assert_absent(line, "dst_endpoint.ip");
	assert_number(line, "dst_endpoint.port", 8080);
	json_decref(line);
}

static void test_allowed_request(void **state)
{
	json_t *line = rendered(sample_http());

	(void)state;
	assert_number(line, "time", SAMPLE_TIME);
	assert_number(line, "type_uid", 400203);
	assert_text(line, "metadata.uid", "00c0ffee00000001");
	assert_number(line, "metadata.sequence", 1);
	assert_number(line, "action_id", 1);
	assert_number(line, "disposition_id", 1);
	assert_number(line, "status_id", 1);
	assert_absent(line, "status_detail");
	assert_text(line, "firewall_rule.name", "read-acme");
	assert_text(line, "policy.uid", "0123456789abcdef");
	assert_text(line, "device.name", "agent \"7\"");
	assert_text(line, "device.uid", "1122334455667788");
	assert_text(line, "http_request.url.path", "/repos/acme/widgets/issues");
	assert_text(line, "http_request.url.query_string", "state=open&per_page=50");
	assert_number(line, "http_response.latency", 41);
	assert_text(line, "dst_endpoint.hostname", "api.github.com");
	assert_text(line, "dst_endpoint.ip", "140.82.121.6");
	assert_text(line, "proxy_endpoint.ip", "100.112.0.9");
	assert_text(line, "tls.version", "1.3");
	assert_text(line, "unmapped.credential", "github");
	assert_text(line, "message",
	        "GET https://api.github.com/repos/acme/widgets/issues?state=open&per_page=50 "
	        "allowed");
	json_decref(line);
}

static void test_denied_request_explains_itself(void **state)
{
	json_t *line = rendered(sample_denied());

	(void)state;
	assert_number(line, "action_id", 2);
	assert_number(line, "disposition_id", 2);
	assert_number(line, "status_id", 2);
	assert_text(line, "status_code", "default");
	assert_text(line, "status_detail", "no rule of the policy names the destination");
	assert_absent(line, "firewall_rule");
	assert_absent(line, "unmapped");
	/* The synthetic address is the proxy's, never the destination's. */
	assert_absent(line, "dst_endpoint.ip");
	assert_text(line, "proxy_endpoint.ip", "100.112.0.9");
	json_decref(line);
}

static void test_failure_of_network_is_no_block(void **state)
{
	struct event e = sample_denied();
	json_t *line;

	(void)state;
	e.cause = EVENT_CAUSE_CONNECT;
	e.status = 502;
	line = rendered(e);
	assert_number(line, "action_id", 1);
	assert_number(line, "disposition_id", 27);
	assert_number(line, "status_id", 2);
	assert_text(line, "status_code", "connect");
	assert_non_null(strstr(json_string_value(json_object_get(line, "message")), " failed: "));
	json_decref(line);
}

/* A request that mode observe let pass has the policy's reason, also if it failed later. */
static void test_what_is_observed_and_fails_is_observed(void **state)
{
	static const char both[] = "no rule of the policy names the destination; then it failed: ";
	char longest[OCSF_TEXT_MAX + 1];
	struct event e = sample_denied();
	json_t *line;

	(void)state;
	e.decision = EVENT_OBSERVED;
	line = rendered(e);
	assert_number(line, "action_id", 3);
	assert_number(line, "disposition_id", 17);
	assert_absent(line, "unmapped");
	json_decref(line);
	for (int cause = EVENT_CAUSE_POLICY + 1; cause < EVENT_CAUSE_COUNT; cause++) {
		e.cause = (enum event_cause)cause;
		e.status = 502;
		line = rendered(e);
		assert_number(line, "action_id", 3);
		assert_text(line, "status_code", "default");
		assert_non_null(at(line, "unmapped.failure"));
		assert_memory_equal(
		        json_string_value(at(line, "status_detail")), both, sizeof(both) - 1);
		assert_true(json_is_false(at(line, "policy.is_applied")));
		json_decref(line);
	}
	e.cause = EVENT_CAUSE_CONNECT;
	memset(longest, 'x', sizeof(longest));
	e.detail = slice_of(longest, sizeof(longest));
	line = rendered(e);
	assert_number(line, "disposition_id", 27);
	assert_number(line, "status_id", 2);
	assert_text(line, "unmapped.failure", "connect");
	assert_true(
	        json_string_length(at(line, "status_detail")) <= OCSF_TEXT_MAX + sizeof("...") - 1);
	json_decref(line);
}

/* A refusal stays a refusal, however it looks: an address of a refused class, a credential that
 * cannot be had (502, too), a client that was too slow or broke the protocol, the policy. */
static void test_a_refusal_is_no_failure(void **state)
{
	static const struct {
		enum event_cause cause;
		uint16_t status;
	} refusals[] = {{EVENT_CAUSE_POLICY, 403}, {EVENT_CAUSE_ADDRESS, 403},
	        {EVENT_CAUSE_CREDENTIAL, 502}, {EVENT_CAUSE_UNREADABLE, 502},
	        {EVENT_CAUSE_BINDING, 421}, {EVENT_CAUSE_TIMEOUT, 408}, {EVENT_CAUSE_TIMEOUT, 0},
	        {EVENT_CAUSE_CLIENT, 400}, {EVENT_CAUSE_LIMIT, 503}, {EVENT_CAUSE_CLOSING, 503},
	        {EVENT_CAUSE_PAUSED, 503}};

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct event e = sample_denied();

		e.cause = refusals[i].cause;
		e.status = refusals[i].status;
		json_t *line = rendered(e);
		assert_number(line, "action_id", 2);
		assert_number(line, "status_id", 2);
		json_decref(line);
	}
}

static void test_a_unix_socket_is_the_source(void **state)
{
	struct event e = sample_denied();
	json_t *line;

	(void)state;
	e.src = e.dst = (struct ip){0};
	e.src_port = e.dst_port = 0;
	e.upstream_port = 443;
	snprintf(sandbox.socket, sizeof(sandbox.socket), "/run/a \"b\".sock");
	line = rendered(e);
	assert_text(line, "src_endpoint.name", "/run/a \"b\".sock");
	assert_absent(line, "src_endpoint.port");
	assert_absent(line, "proxy_endpoint.ip");
	assert_absent(line, "proxy_endpoint.port");
	assert_number(line, "dst_endpoint.port", 443);
	json_decref(line);
}

static void test_explicit_proxy_port_is_not_the_destination(void **state)
{
	struct event e = sample_denied();
	json_t *line;

	(void)state;
	e.dst = sandbox.gate4;
	e.dst_port = 3128;
	line = rendered(e);
	assert_absent(line, "dst_endpoint.port");
	assert_absent(line, "http_request.url.port");
	assert_number(line, "proxy_endpoint.port", 3128);
	json_decref(line);

	e.upstream_port =
	        8443; /* refused before anything was dialed, but it said where it wanted to go */
	line = rendered(e);
	assert_number(line, "dst_endpoint.port", 8443);
	assert_number(line, "http_request.url.port", 8443);
	assert_number(line, "proxy_endpoint.port", 3128);
	json_decref(line);
}

static void test_unknown_method_is_other(void **state)
{
	struct event e = sample_denied();
	json_t *line;

	(void)state;
	e.method = SLICE("get");
	line = rendered(e);
	assert_number(line, "activity_id", 99);
	assert_text(line, "activity_name", "get");
	assert_absent(line, "http_request.http_method");
	json_decref(line);
}

static void test_aggregated_packets(void **state)
{
	struct event e = sample_packet();
	json_t *line = rendered(e);

	(void)state;
	assert_absent(line, "count");
	assert_absent(line, "start_time");
	assert_text(line, "firewall_rule.type", "fence");
	json_decref(line);
	e.count = 4096;
	e.last_ms = e.time_ms + 4000;
	line = rendered(e);
	assert_number(line, "count", 4096);
	assert_number(line, "duration", 4000);
	assert_number(line, "traffic.packets", 4096);
	json_decref(line);
}

static void test_aggregate_never_ends_before_its_start(void **state)
{
	struct event e = sample_packet();
	json_t *line;

	(void)state;
	e.count = 2;
	e.last_ms = e.time_ms - 1000; /* the clock was set back */
	line = rendered(e);
	assert_number(line, "end_time", e.time_ms);
	assert_number(line, "duration", 0);
	json_decref(line);
}

static void test_icmp_has_no_port(void **state)
{
	struct event e = sample_packet();
	json_t *line;

	(void)state;
	e.protocol = IPPROTO_ICMP;
	e.dst_port = 8 << 8;
	line = rendered(e);
	assert_absent(line, "dst_endpoint.port");
	assert_number(line, "unmapped.icmp_type", 8);
	json_decref(line);
}

static void test_counts_beyond_long_are_saturated(void **state)
{
	struct event e = sample_connection();
	json_t *line;

	(void)state;
	e.bytes_in = UINT64_MAX;
	e.bytes_out = UINT64_MAX;
	line = rendered(e);
	assert_number(line, "traffic.bytes", INT64_MAX);
	assert_number(line, "traffic.bytes_in", INT64_MAX);
	json_decref(line);
}

/* Bytes that a sandbox may put into a name: quotation marks, line ends, escape sequences, bytes
 * that are no UTF-8, and an attempt to end the string and forge the seal. */
static void test_hostile_texts_stay_inside_their_strings(void **state)
{
	static const char hostile[] =
	        "a\",\"attestation_list\":[{\"chain_uid\":\"x\n\r\t\x1b[2J\xff\xc0\x80\x00z";
	struct slice text = {hostile, sizeof(hostile) - 1};
	struct event e = sample_denied();
	struct seal seal;
	json_t *line;
	size_t start = out.len;

	(void)state;
	e.host = e.sni = e.target = e.user_agent = e.method = e.scheme = e.rule = e.detail = text;
	line = rendered(e);
	json_decref(line);
	for (size_t i = start; i + 1 < out.len; i++)
		assert_true(buf_bytes(&out)[i] >= 0x20);
	assert_int_equal(
	        seal_parse(slice_of(buf_bytes(&out) + start, out.len - start - 1), &seal), 0);
	assert_string_equal(seal.own.chain_uid, chain.last.chain_uid);
}

static void test_call(void **state)
{
	struct event call = sample_call();
	json_t *line = rendered(call);

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(line, "type_uid")), 600301);
	assert_string_equal(json_string_value(json_object_get(line, "message")),
	        "sandboxes.attach agent-7 by alice allowed");
	assert_null(json_object_get(line, "status_detail"));
	json_decref(line);
	/* A call that succeeded is not an error. */
	call.detail = SLICE("netns /run/netns/agent, policy /etc/agent.yaml");
	line = rendered(call);
	assert_string_equal(json_string_value(json_object_get(line, "status_detail")),
	        "netns /run/netns/agent, policy /etc/agent.yaml");
	assert_null(json_object_get(
	        json_object_get(json_object_get(line, "api"), "response"), "error_message"));
	json_decref(line);
}

/* As control/routes.c of the supervisor calls them. */
static void test_each_call_has_its_activity(void **state)
{
	static const struct {
		const char *operation;
		int type_uid;
	} calls[] = {{"sandboxes.attach", 600301}, {"sandboxes.list", 600302},
	        {"sandboxes.get", 600302}, {"sandboxes.env", 600302}, {"sandboxes.stats", 600302},
	        {"status.get", 600302}, {"roles.get", 600302}, {"audit.get", 600302},
	        {"sandboxes.follow", 600303}, {"sandboxes.reload", 600303},
	        {"sandboxes.pause", 600303}, {"sandboxes.resume", 600303}, {"reload", 600303},
	        {"upgrade", 600303}, {"sandboxes.detach", 600304}, {"connect", 600399},
	        {"prepared.add", 600301}, {"sandboxes.claim", 600301}, {"prepared.list", 600302},
	        {"sandboxes.release", 600304}, {"", 600399}};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct event e = sample_call();
		json_t *line;

		e.operation = slice_from_string(calls[i].operation);
		line = rendered(e);
		assert_int_equal(
		        json_integer_value(json_object_get(line, "type_uid")), calls[i].type_uid);
		json_decref(line);
	}
}

static void test_change_of_policy(void **state)
{
	struct event e = sample_lifecycle(EVENT_POLICY_CHANGED);
	json_t *line, *unmapped;

	(void)state;
	e.detail = SLICE("+ allow https://api.github.com/");
	e.old_fingerprint = SLICE("0123456789abcdef");
	e.generation = 3;
	assert_int_equal(ocsf_sandbox_policy(&sandbox, SLICE("wider"), SLICE("ffff")), 0);
	line = rendered(e);
	unmapped = json_object_get(line, "unmapped");
	assert_int_equal(json_integer_value(json_object_get(line, "type_uid")), 600208);
	assert_int_equal(json_integer_value(json_object_get(unmapped, "generation")), 3);
	assert_string_equal(json_string_value(json_object_get(unmapped, "difference")),
	        "+ allow https://api.github.com/");
	assert_string_equal(
	        json_string_value(json_object_get(json_object_get(line, "policy"), "uid")), "ffff");
	assert_non_null(strstr(
	        json_string_value(json_object_get(line, "message")), " under another policy: "));
	json_decref(line);
	e.old_fingerprint = e.fingerprint = SLICE("ffff");
	line = rendered(e);
	assert_non_null(strstr(json_string_value(json_object_get(line, "message")),
	        " under the same policy, read anew: "));
	json_decref(line);
}

static void test_longest_texts_stay_below_the_bound(void **state)
{
	static char worst[EVENT_TEXT_MAX];
	struct slice text = {worst, sizeof(worst)};
	struct event e = sample_finding(EVENT_FINDING_SMUGGLING);

	(void)state;
	memset(worst, 1, sizeof(worst)); /* each byte takes six */
	worst[EVENT_TEXT_MAX / 2] = '?';
	e.host = e.sni = e.target = e.user_agent = e.method = e.scheme = text;
	e.rule = e.detail = e.credential = e.verdict_rule = text;
	e.operation = e.user = e.old_policy = e.old_fingerprint = text;
	e.lifecycle = EVENT_POLICY_CHANGED;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		size_t start = out.len;

		e.kind = (enum event_kind)kind;
		e.count = 1;
		render(e);
		assert_true(out.len - start < OCSF_LINE_MAX);
	}
}

static void test_no_room_leaves_everything_as_it_was(void **state)
{
	struct event e = sample_http();
	struct seal_link last = chain.last;
	struct buf small;
	size_t whole;

	(void)state;
	render(e);
	whole = out.len;
	sandbox.sequence = 0;
	chain.last = last;
	for (size_t max = 0; max < whole; max += 7) {
		buf_init(&small, max);
		assert_true(ocsf_append(&small, &chain, &sandbox, &e) < 0);
		assert_int_equal(small.len, 0);
		assert_int_equal(sandbox.sequence, 0);
		assert_memory_equal(&chain.last, &last, sizeof(last));
		buf_fini(&small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_call, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_each_call_has_its_activity, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_change_of_policy, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_inbound, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_allowed_request, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_denied_request_explains_itself, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_failure_of_network_is_no_block, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_what_is_observed_and_fails_is_observed, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_a_refusal_is_no_failure, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_a_unix_socket_is_the_source, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_explicit_proxy_port_is_not_the_destination, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_unknown_method_is_other, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_aggregated_packets, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_aggregate_never_ends_before_its_start, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_icmp_has_no_port, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_counts_beyond_long_are_saturated, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_hostile_texts_stay_inside_their_strings, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_longest_texts_stay_below_the_bound, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_no_room_leaves_everything_as_it_was, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
