/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a floor: what it may say, that a fault in it refuses every policy, that it may have
 * nothing that only policies have, and what policies inherit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../layer_test.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/limits.h"

#define POLICY                                                          \
	"vethguard: 1\nname: p\nvariables: {v: {default: a.example}}\n" \
	"groups: {g: [a.example]}\n"                                    \
	"credentials: {k: {source: env:K, inject: bearer}}\n"           \
	"allow: [{name: x, to: [a.example, '${v}', 'group:g'], credential: k}]\n"

/* A floor with a fault, and what its first message says. */
static void test_faults(void **state)
{
	static const struct {
		const char *floor, *message;
		unsigned line, column;
	} faults[] = {
	        {"", "the file is empty", 1, 1},
	        {"vethguard: 1\nallow: [\n", "", 3, 1},
	        {"vethguard: 2\n", "language version \"2\" is not known", 1, 12},
	        {"deny: [{to: a.example}]\n", "the language version is missing", 1, 1},
	        {"vethguard: 1\nallows: []\n", "allow", 2, 1},
	        {"vethguard: 1\nname: floor\n", "belongs in a policy", 2, 1},
	        {"vethguard: 1\nmode: observe\n", "or under defaults:", 2, 1},
	        {"vethguard: 1\ninclude: [preset:pypi]\n", "depends on nothing", 2, 1},
	        {"vethguard: 1\nvariables: {v: {}}\n", "depends on nothing", 2, 1},
	        {"vethguard: 1\ngroups: {g: [a.example]}\n", "depends on nothing", 2, 1},
	        {"vethguard: 1\nask: [{to: a.example}]\n", "allows or refuses", 2, 1},
	        {"vethguard: 1\ncredentials: {}\n", "belongs in a policy", 2, 1},
	        {"vethguard: 1\nexpose: []\n", "belongs in a policy", 2, 1},
	        {"vethguard: 1\nallow: [{to: '${v}'}]\n", "a floor has no variables", 2, 14},
	        {"vethguard: 1\nallow: [{to: 'group:g'}]\n", "group", 2, 14},
	        {"vethguard: 1\nallow: [{to: a.example, credential: k}]\n", "a floor sends nothing",
	                2, 25},
	        {"vethguard: 1\nallow: [{name: x, to: a.example, limits: {requests: 1/1m}}]\n",
	                "belongs to the top of the floor", 2, 34},
	        {"vethguard: 1\nallow: [{name: x, to: a.example, budget: {upload: 1MB/1d}}]\n",
	                "or to a rule under infrastructure:", 2, 34},
	        {"vethguard: 1\ninfrastructure: [{to: a.example, limits: {requests: 1/1m}}]\n",
	                "needs a name", 2, 42},
	        {"vethguard: 1\ninfrastructure: [{name: x, to: a.example, limits: {requests: "
	         "1}}]\n",
	                "requests must be", 2, 62},
	        {"vethguard: 1\ninfrastructure: [{name: x, to: a.example, weights: {input: 1}}]\n",
	                "a floor sends nothing", 2, 43},
	        {"vethguard: 1\ndeny: [{name: x, to: a.example, limits: {requests: 1/1m}}]\n",
	                "never sent", 2, 33},
	        {"vethguard: 1\nallow: [{to: a.example, mcp: {tools: a, descriptions: block}}]\n",
	                "descriptions belongs to rules of policies", 2, 55},
	        {"vethguard: 1\ninfrastructure: [{to: a.example, dlp: off}]\n", "defaults", 2, 34},
	        {"vethguard: 1\ninfrastructure: [{to: a.example, seal: k}]\n",
	                "a floor sends nothing", 2, 34},
	        {"vethguard: 1\ninfrastructure: [{to: a.example, reason: no}]\n", "deny rules", 2,
	                34},
	        {"vethguard: 1\nallow: [{to: a.example, wait: 5m}]\n", "ask rules", 2, 25},
	        {"vethguard: 1\ndeny: [{to: a.example, tls: passthrough}]\n", "allow rules", 2, 24},
	        {"vethguard: 1\ninfrastructure: [{methods: [GET]}]\n", "no destination", 2, 18},
	        {"vethguard: 1\ninfrastructure: {to: a.example}\n", "\"- \"", 2, 17},
	        {"vethguard: 1\nallow: [{to: 'https://a.example/x'}]\n", "has no path", 2, 14},
	        {"vethguard: 1\nallow: [{name: n, to: a.example}, {name: n, to: b.example}]\n",
	                "already exists", 2, 42},
	        {"vethguard: 1\ninfrastructure: [{name: n, to: a.example}, {name: n, to: "
	         "b.example}]\n",
	                "already exists", 2, 51},
	        {"vethguard: 1\nallow: [{to: a.example}, {to: a.example, tls: passthrough}]\n",
	                "tls: passthrough", 2, 26},
	        {"vethguard: 1\nlimits: {requests: 10}\n", "requests must be", 2, 20},
	        {"vethguard: 1\ndefaults: {mode: off}\n", "mode", 2, 18},
	        {"vethguard: 1\ndefaults: {allow: []}\n", "allow", 2, 12},
	        {"vethguard: 1\ndefaults: [observe]\n", "defaults", 2, 11},
	        {"vethguard: 1\ndefaults: {limits: {requests: x}}\n", "requests must be", 2, 31},
	        {"vethguard: 1\n---\nvethguard: 1\n", "document", 2, 1},
	        {"vethguard: 1\nallow: []\nallow: []\n", "allow", 3, 1},
	};

	int faulty = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		const struct diag *first;
		struct test_policy t;

		if (layer_try(&t, POLICY, faults[i].floor, false) != -EINVAL || t.image ||
		        !t.diags.count)
			fail_msg("%s loads", faults[i].floor);
		first = &t.diags.items[0];
		assert_string_equal(first->file, "/floor.yaml");
		if (!strstr(first->message, faults[i].message) ||
		        (faults[i].line && (first->line != faults[i].line ||
		                                   first->column != faults[i].column)))
			faulty++, fprintf(stderr, "%s: %u:%u: %s\n", faults[i].floor, first->line,
			                  first->column, first->message);
	}
	assert_int_equal(faulty, 0);
}

struct failing {
	int rc;
	const char *objection;
};

static int read_failing(void *context, const char *path, char **text, size_t *n)
{
	(void)context;
	assert_string_equal(path, "/test.yaml");
	*text = strdup(POLICY);
	*n = strlen(POLICY);
	return 0;
}

static int read_floor(void *context, const char *path, char **text, size_t *n,
        char objection[POLICY_WRITERS_TEXT_MAX])
{
	const struct failing *failing = context;

	assert_string_equal(path, "/floor.yaml");
	if (failing->objection)
		snprintf(objection, POLICY_WRITERS_TEXT_MAX, "%s", failing->objection);
	*text = failing->rc ? NULL : strdup("vethguard: 1\n");
	*n = failing->rc ? 0 : strlen(*text);
	return failing->rc;
}

/* A floor that cannot be read, or that others can change, refuses every policy. One that does not
 * exist refuses none, unless it has to exist. */
static void test_reading(void **state)
{
	static const struct {
		struct failing failing;
		bool required;
		int rc;
		const char *message;
	} rows[] = {
	        {{-ENOENT, NULL}, false, 0, NULL},
	        {{0, NULL}, true, 0, NULL},
	        {{-ENOENT, NULL}, true, -EINVAL, "No such file"},
	        {{-EACCES, NULL}, false, -EINVAL, "Permission denied"},
	        {{-EINVAL, NULL}, false, -EINVAL, "not a regular file"},
	        {{-EFBIG, NULL}, false, -EINVAL, "too large"},
	        {{-EIO, NULL}, false, -EINVAL, "no policy is loaded"},
	        {{-ENOTDIR, NULL}, false, -EINVAL, "Not a directory"},
	        {{-ELOOP, NULL}, false, -EINVAL, "no policy is loaded"},
	        {{0, "can be changed by everybody"}, false, -EINVAL, "cannot be trusted"},
	        {{-EREMOTE, "lies elsewhere"}, false, -EINVAL, "it lies elsewhere"},
	        {{-ENOMEM, NULL}, false, -ENOMEM, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct failing failing = rows[i].failing;
		struct policy_reader reader = {
		        .context = &failing, .read = read_failing, .read_floor = read_floor};
		struct policy_load_options options = {
		        .floor = "/floor.yaml", .floor_required = rows[i].required};
		struct diag_list diags = {.count = 0};
		uint8_t *image;
		size_t size;

		if (policy_load(&reader, "/test.yaml", &options, &image, &size, &diags) !=
		        rows[i].rc)
			fail_msg("row %zu", i);
		if (rows[i].message && !strstr(diags.items[0].message, rows[i].message))
			fail_msg("row %zu: %s", i, diags.items[0].message);
		free(image);
	}
}

/* Rules of a floor and of a policy may have the same names. Files that a policy includes are never
 * taken for the floor. */
static void test_names(void **state)
{
	static const char floor[] = "vethguard: 1\nallow: [{name: x, to: a.example}]\n"
	                            "deny: [{name: x, to: b.example}, {to: c.example}]\n"
	                            "infrastructure: [{name: x, to: d.example}]\n";
	static const char *const names[] = {"infrastructure:x", "floor:x", "floor:deny[1]", "x"};
	struct test_policy t;

	(void)state;
	layer_load(&t, POLICY, floor, false);
	assert_int_equal(policy_rule_count(&t.policy), 4);
	for (uint32_t i = 0; i < 4; i++)
		if (!slice_equals(policy_rule_name(&t.policy, i), slice_from_string(names[i])))
			fail_msg("%.*s", SLICE_ARG(policy_rule_name(&t.policy, i)));
	assert_true(policy_has_layers(&t.policy));
	assert_int_equal(policy_rule_layer(&t.policy, 3), POLICY_LAYER_POLICY);
	assert_int_equal(policy_rule_layer(&t.policy, 99), POLICY_LAYER_POLICY);
	test_unload(&t);
}

static int read_included(void *context, const char *path, char **text, size_t *n)
{
	const char *found = strcmp(path, "/test.yaml") == 0
	                            ? "vethguard: 1\ninclude: [floor, infrastructure]\n"
	                            : "vethguard: 1\ndeny: [{to: a.example}]\n";

	(void)context;
	*text = strdup(found);
	*n = strlen(found);
	return 0;
}

static void test_included(void **state)
{
	struct policy_reader reader = {.read = read_included};
	struct diag_list diags = {.count = 0};
	struct policy policy;
	uint8_t *image;
	size_t size;

	(void)state;
	assert_int_equal(policy_load(&reader, "/test.yaml", NULL, &image, &size, &diags), 0);
	assert_int_equal(policy_open(&policy, image, size), 0);
	assert_int_equal(policy_rule_count(&policy), 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(slice_starts_with(policy_rule_name(&policy, i), SLICE("./")));
		assert_int_equal(policy_rule_layer(&policy, i), POLICY_LAYER_POLICY);
	}
	free(image);
}

/* A policy inherits nothing of a key that it has itself. */
static void test_defaults(void **state)
{
	static const char floor[] =
	        "vethguard: 1\ndefaults: {mode: observe, inspect: 64KiB, on_leak: alert, dlp: "
	        "block, limits: {requests: 7/1m}, budget: {upload: 1MB/1d}}\n";
	struct dlp_settings dlp;
	struct policy_limit limit;
	struct test_policy t;

	(void)state;
	layer_load(&t, "vethguard: 1\n", floor, false);
	assert_int_equal(policy_mode(&t.policy), POLICY_OBSERVE);
	assert_int_equal(policy_inspect(&t.policy), 64 << 10);
	assert_int_equal(policy_limit_count(&t.policy), 2);
	policy_limit(&t.policy, 0, &limit);
	assert_false(limit.floor);
	assert_false(policy_has_layers(&t.policy));
	test_unload(&t);

	layer_load(&t,
	        "vethguard: 1\nmode: enforce\ninspect: 2KiB\non_leak: block\ndlp: alert\n"
	        "limits: {requests: 9/1m}\n",
	        floor, false);
	assert_int_equal(policy_mode(&t.policy), POLICY_ENFORCE);
	assert_int_equal(policy_inspect(&t.policy), 2 << 10);
	assert_true(policy_refuses_leaks(&t.policy));
	policy_dlp(&t.policy, POLICY_NONE, &dlp);
	assert_int_equal(dlp.mode, DLP_ALERT);
	assert_int_equal(policy_limit_count(&t.policy), 2);
	for (uint32_t i = 0; i < 2; i++) {
		policy_limit(&t.policy, i, &limit);
		assert_int_equal(limit.amount, limit.budget ? 1000000 : 9);
	}
	test_unload(&t);
}

/* The same files give the same fingerprint; a change of any part of the floor changes it. */
static void test_fingerprints(void **state)
{
	static const char *const floors[] = {NULL,
	        "vethguard: 1\nallow: [{name: n, to: a.example}]\n",
	        "vethguard: 1\nallow: [{name: n, to: a.example, methods: [GET]}]\n",
	        "vethguard: 1\nallow: []\n", "vethguard: 1\ndeny: [{name: n, to: b.example}]\n",
	        "vethguard: 1\ninfrastructure: [{name: n, to: b.example}]\n",
	        "vethguard: 1\nlimits: {requests: 1/1m}\n"};
	char seen[sizeof(floors) / sizeof(floors[0])][17];
	struct test_policy t;

	(void)state;
	for (size_t i = 0; i < sizeof(floors) / sizeof(floors[0]); i++)
		for (int twice = 0; twice < 2; twice++) {
			char now[17];

			layer_load(&t, POLICY, floors[i], false);
			snprintf(
			        now, sizeof(now), "%.*s", SLICE_ARG(policy_fingerprint(&t.policy)));
			test_unload(&t);
			if (twice)
				assert_string_equal(now, seen[i]);
			memcpy(seen[i], now, sizeof(now));
			for (size_t k = 0; k < i; k++)
				assert_string_not_equal(seen[k], seen[i]);
		}
}

/* Each byte of the images inside is checked like those around them. */
static void test_damage(void **state)
{
	struct test_policy t;
	struct policy copy;
	uint8_t *bytes;
	size_t opened = 0;

	(void)state;
	layer_load(&t, POLICY,
	        "vethguard: 1\nallow: [{to: a.example, paths: [/x/*]}]\n"
	        "infrastructure: [{to: b.example}]\n",
	        false);
	bytes = malloc(t.size);
	assert_non_null(bytes);
	for (size_t i = 0; i < t.size; i++) {
		memcpy(bytes, t.image, t.size);
		bytes[i] ^= 0x81;
		if (policy_open(&copy, bytes, t.size) != 0)
			continue;
		opened++;
		test_ask(&copy, "GET", "https://a.example/x/y");
		test_ask(&copy, "GET", "https://b.example/x/y");
		policy_has_layers(&copy);
	}
	assert_true(opened > 0 && opened < t.size);
	free(bytes);
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_faults),
	        cmocka_unit_test(test_reading),
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_included),
	        cmocka_unit_test(test_defaults),
	        cmocka_unit_test(test_fingerprints),
	        cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
