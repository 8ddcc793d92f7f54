/* SPDX-License-Identifier: Apache-2.0 */
/* A damaged image is refused, or harmless: whatever policy_open() takes, no later call reads
 * outside of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/image/image.h"
#include "../policy_test.h"
#include "vethguard/policy/explain.h"
#include "vethguard/policy/expose.h"
#include "vethguard/policy/limits.h"

static const char text[] =
        "vethguard: 1\n"
        "credentials:\n"
        "  c: {source: \"exec:[a, b]\", inject: header, header: x-k, prefix: p, env: E}\n"
        "allow:\n"
        "  - {to: a.example, methods: [GET, PUT], paths: [/a/**, /b/*/c, /d], credential: c}\n"
        "  - {to: \"*.b.example\", ports: [1-9, 443]}\n"
        "  - {to: \"tcp://10.0.0.0/8:5\"}\n"
        "  - {to: \"https://[fd00::/8]\"}\n"
        "  - {to: udp://t.example:123}\n"
        "  - {name: few, to: few.example, limits: {upload: 1MB/1h, body: 1KB}, budget: {requests: "
        "5/1d, shared: k}}\n"
        "limits: {requests: 600/1m}\n"
        "ask:\n"
        "  - {to: a.example, methods: [PUT], paths: [/a/*/x], wait: 5s}\n"
        "deny:\n"
        "  - {to: a.example, methods: [DELETE], reason: no}\n"
        "  - {to: x.b.example}\n"
        "expose:\n"
        "  - {port: 80, from: [host, 10.0.0.0/8, \"sandbox:s\"], at: \"10.0.0.1:8080\"}\n"
        "  - {port: 81, from: [\"label:k=v\"]}\n";

static void ignore_rule(void *context, const struct policy_rule_report *r)
{
	size_t *bytes = context;

	for (size_t i = 0; i < r->name.n; i++)
		*bytes += (unsigned char)r->name.p[i];
	for (size_t i = 0; i < r->to.n; i++)
		*bytes += (unsigned char)r->to.p[i];
	for (size_t i = 0; i < r->file.n; i++)
		*bytes += (unsigned char)r->file.p[i];
}

static size_t read_all(struct slice s)
{
	size_t sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += (unsigned char)s.p[i];
	return sum;
}

static void ask(const struct policy *policy, const char *method, const char *url, size_t *sum)
{
	struct policy_decision d = test_ask(policy, method, url);
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("x.b.example"),
	        .port = 443,
	        .method = SLICE("GET"),
	        .path = SLICE("/a/b")};
	struct policy_decision tls;

	*sum += read_all(policy_rule_name(policy, d.rule)) +
	        read_all(policy_rule_text(policy, d.rule)) +
	        read_all(policy_rule_upgrades(policy, d.rule));
	policy_decide_tls(policy, &request, &tls);
	policy_explain(policy, &request, ignore_rule, sum);
}

static size_t use_limits(const struct policy *policy)
{
	char text_out[POLICY_LIMIT_TEXT_MAX];
	uint8_t key[POLICY_LIMIT_KEY];
	struct policy_limit limit;
	uint32_t first, count;
	size_t sum = 0;

	for (uint32_t i = 0; i < policy_limit_count(policy); i++) {
		policy_limit(policy, i, &limit);
		policy_limit_key(policy, &limit, key);
		sum += strlen(policy_limit_text(&limit, text_out)) + read_all(limit.shared) +
		       key[0];
	}
	for (uint32_t rule = 0; rule < 8; rule++) {
		policy_limits_of(policy, rule, &first, &count);
		if (first > policy_limit_count(policy) ||
		        count > policy_limit_count(policy) - first)
			fail_msg("the limits of rule %u are none of the policy's", rule);
		sum += policy_rule_wait_s(policy, rule);
	}
	return sum;
}

static size_t use_exposes(const struct policy *policy)
{
	const struct slice label = SLICE("k=v");
	const struct policy_peer peers[] = {{.address = {4, {10, 1, 2, 3}}},
	        {.sandbox = SLICE("s"), .labels = &label, .label_count = 1}};
	char text_out[POLICY_EXPOSE_TEXT_MAX];
	struct policy_expose e;
	struct policy_from from;
	size_t sum = 0;

	for (uint32_t i = 0; i <= policy_expose_count(policy); i++) {
		policy_expose(policy, i, &e);
		sum += read_all(e.name) + e.at.family;
		for (uint32_t k = 0; k <= e.from_count; k++) {
			policy_expose_from(policy, i, k, &from);
			sum += read_all(from.text) + from.network.bits;
		}
		for (size_t k = 0; k < 2; k++)
			sum += policy_expose_admits(policy, i, &peers[k]);
		sum += strlen(policy_expose_text(policy, i, text_out, sizeof(text_out)));
		sum += policy_expose_equals(policy, i, policy, 0);
	}
	return sum;
}

/* Calls every public function and reads every byte that it returns. */
static void use(const struct policy *policy)
{
	struct policy_credential c;
	uint16_t ports[4];
	size_t sum = read_all(policy_name(policy)) + read_all(policy_fingerprint(policy));

	ask(policy, "GET", "https://a.example/a/x", &sum);
	ask(policy, "PUT", "https://a.example/b/x/c", &sum);
	ask(policy, "DELETE", "https://a.example//d", &sum);
	ask(policy, "GET", "https://x.y.b.example/", &sum);
	ask(policy, "CONNECT", "tcp://10.1.1.1:5", &sum);
	ask(policy, "GET", "https://[fd00::1]/", &sum);
	policy_udp_ports(policy, ports, 4);
	policy_tcp_ports(policy, ports, 4);
	policy_mentions_host(policy, SLICE("q.b.example"));
	sum += use_exposes(policy) + use_limits(policy);
	for (uint32_t i = 0; i <= policy_credential_count(policy); i++) {
		policy_credential(policy, i, &c);
		sum += read_all(c.name) + read_all(c.field) + read_all(c.prefix) + read_all(c.env) +
		       read_all(c.location) + read_all(c.username);
		for (size_t k = 0; k < c.argc; k++)
			sum += read_all(c.argv[k]);
	}
	assert_true(sum < SIZE_MAX);
}

/* A copy of its own, so that the sanitizer sees one byte too far. */
static void try_image(const uint8_t *image, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct policy policy;

	assert_non_null(copy);
	memcpy(copy, image, size);
	if (policy_open(&policy, copy, size) == 0)
		use(&policy);
	free(copy);
}

static void test_flipped_bytes(void **state)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff, 0x10};
	struct test_policy t;

	(void)state;
	test_load(&t, text, false);
	use(&t.policy);
	for (size_t i = 0; i < t.size; i++)
		for (size_t k = 0; k < sizeof(flips); k++) {
			t.image[i] ^= flips[k];
			try_image(t.image, t.size);
			t.image[i] ^= flips[k];
		}
	test_unload(&t);
}

/* Every aligned word replaced by values that break sums and comparisons. */
static void test_evil_words(void **state)
{
	static const uint32_t words[] = {0, 1, 0x7fffffff, 0x80000000, UINT32_MAX - 1, UINT32_MAX};
	struct test_policy t;

	(void)state;
	test_load(&t, text, false);
	for (size_t i = 0; i + 4 <= t.size; i += 4) {
		uint32_t saved;

		memcpy(&saved, t.image + i, 4);
		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
			memcpy(t.image + i, &words[k], 4);
			try_image(t.image, t.size);
		}
		memcpy(t.image + i, &saved, 4);
	}
	test_unload(&t);
}

static void test_truncated(void **state)
{
	struct test_policy t;
	struct policy policy;

	(void)state;
	test_load(&t, text, false);
	for (size_t n = 0; n < t.size; n++) {
		assert_int_equal(policy_open(&policy, t.image, n), -EBADMSG);
		if (n % 64 == 0)
			try_image(t.image, n);
	}
	test_unload(&t);
}

static void test_refused(void **state)
{
	struct test_policy t;
	struct policy policy;
	uint8_t *moved;

	(void)state;
	test_load(&t, text, false);
	moved = malloc(t.size + 8);
	assert_non_null(moved);
	memcpy(moved + 1, t.image, t.size);
	assert_int_equal(policy_open(&policy, moved + 1, t.size), -EBADMSG); /* not aligned */
	memcpy(moved, t.image, t.size);
	memset(moved + t.size, 0, 8);
	assert_int_equal(policy_open(&policy, moved, t.size + 8), -EBADMSG); /* trailing bytes */
	assert_int_equal(policy_open(&policy, moved, t.size), 0);
	moved[0] ^= 1;
	assert_int_equal(policy_open(&policy, moved, t.size), -EBADMSG);
	moved[0] ^= 1;
	((struct image_header *)moved)->version++;
	assert_int_equal(policy_open(&policy, moved, t.size), -EBADMSG);
	free(moved);
	test_unload(&t);
}

/* Tables without a free slot end a search all the same. */
static void test_full_tables(void **state)
{
	struct test_policy t;
	struct image_header *h;
	struct image_slot *slots;

	(void)state;
	test_load(&t, text, false);
	h = (struct image_header *)t.image;
	for (int id = SECTION_TARGET_SLOTS; id <= SECTION_NODE_SLOTS; id++) {
		slots = (struct image_slot *)(t.image + h->sections[id].at);
		for (uint32_t i = 0; i < h->sections[id].count; i++)
			slots[i].index = 0;
	}
	try_image(t.image, t.size);
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_flipped_bytes),
	        cmocka_unit_test(test_evil_words),
	        cmocka_unit_test(test_truncated),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_full_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
