/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in requests: what holds for a rule, how it reads, and what a policy's diff says of it.
 * Bad values are in bad/dlp.yaml. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../diff_test.h"
#include "policy/image/image.h"

#define HEAD "vethguard: 1\nname: t\n"
#define RULES                                                                      \
	"allow:\n"                                                                 \
	"  - {name: a, to: a.example, dlp: off}\n"                                 \
	"  - {name: b, to: b.example}\n"                                           \
	"  - {name: c, to: c.example, dlp: {except: [jwt, aws-access-key]}}\n"     \
	"  - {name: d, to: d.example, dlp: {mode: alert, except: github-token}}\n" \
	"ask:\n"                                                                   \
	"  - {name: e, to: e.example, dlp: alert}\n"                               \
	"deny:\n"                                                                  \
	"  - {name: f, to: f.example}\n"

static const char *text_of(const struct policy *policy, uint32_t rule)
{
	static char text[POLICY_DLP_TEXT_MAX];
	struct dlp_settings settings;

	policy_dlp(policy, rule, &settings);
	return policy_dlp_text(&settings, text);
}

static void test_of(void **state)
{
	static const struct {
		const char *head, *texts[7];
	} rows[] = {{"", {"off", "off", "block, except jwt, aws-access-key",
	                         "alert, except github-token", "alert", "off", "off"}},
	        {"dlp: block\n", {"off", "block", "block, except jwt, aws-access-key",
	                                 "alert, except github-token", "alert", "block", "block"}},
	        {"dlp: {mode: alert, except: jwt}\n",
	                {"off", "alert, except jwt", "block, except jwt, aws-access-key",
	                        "alert, except github-token", "alert", "alert, except jwt",
	                        "alert, except jwt"}}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct test_policy t;
		char text[2048];

		snprintf(text, sizeof(text), "%s%s%s", HEAD, rows[i].head, RULES);
		test_load(&t, text, false);
		for (uint32_t rule = 0; rule < 6; rule++)
			assert_string_equal(text_of(&t.policy, rule), rows[i].texts[rule]);
		assert_string_equal(text_of(&t.policy, POLICY_NONE), rows[i].texts[6]);
		test_unload(&t);
	}
}

/* Mode observe blocks nothing. */
static void test_observe(void **state)
{
	struct test_policy t;

	(void)state;
	test_load(&t, HEAD "dlp: block\n" RULES, true);
	assert_string_equal(text_of(&t.policy, 1), "alert");
	assert_string_equal(text_of(&t.policy, POLICY_NONE), "alert");
	assert_string_equal(text_of(&t.policy, 0), "off");
	test_unload(&t);
}

/* An image without dlp has none, and one whose entries are out of order is refused. */
static void test_image(void **state)
{
	struct test_policy t;
	struct policy opened;
	struct image_dlp *first;

	(void)state;
	test_load(&t, HEAD "allow: [{to: a.example}]\n", false);
	assert_int_equal(image_count(&t.policy, SECTION_DLPS), 0);
	test_unload(&t);
	test_load(&t, HEAD "dlp: alert\n" RULES, false);
	assert_int_equal(image_count(&t.policy, SECTION_DLPS), 5);
	first = (struct image_dlp *)(uintptr_t)image_dlp_at(&t.policy, 0);
	first->mode = DLP_MODE_COUNT;
	assert_int_equal(policy_open(&opened, t.policy.image, t.policy.size), -EBADMSG);
	first->mode = DLP_ALERT;
	first[1].rule = 4;
	assert_int_equal(policy_open(&opened, t.policy.image, t.policy.size), -EBADMSG);
	first[1].rule = 1000;
	assert_int_equal(policy_open(&opened, t.policy.image, t.policy.size), -EBADMSG);
	first[1].rule = 0;
	assert_int_equal(policy_open(&opened, t.policy.image, t.policy.size), 0);
	test_unload(&t);
}

#define ALLOW "allow: [{name: a, to: a.example}]\n"
#define WITH(dlp) HEAD "allow: [{name: a, to: a.example, dlp: " dlp "}]\n"

static void test_diff(void **state)
{
	(void)state;
	test_compare(HEAD ALLOW, HEAD ALLOW, false, false, NULL);
	test_compare(HEAD ALLOW, HEAD "dlp: off\n" ALLOW, false, false, NULL);
	test_compare(HEAD ALLOW, HEAD "dlp: block\n" ALLOW, false, true,
	        "- secrets in requests of the policy: block (so far off)");
	test_compare(HEAD "dlp: block\n" ALLOW, HEAD "dlp: alert\n" ALLOW, true, false,
	        "+ secrets in requests of the policy: alert (so far block)");
	test_compare(WITH("block"), WITH("{except: jwt}"), true, false,
	        "+ secrets in requests of rule a: block, except jwt (so far block)");
	test_compare(WITH("{except: jwt}"), WITH("{except: age-key}"), true, true,
	        "+ secrets in requests of rule a: block, except age-key (so far block, except "
	        "jwt)");
	test_compare(HEAD "dlp: block\n" ALLOW,
	        HEAD "dlp: block\n"
	             "allow: [{name: a, to: a.example, dlp: block}]\n",
	        false, false, NULL);
	test_compare(HEAD "dlp: block\n" ALLOW,
	        HEAD "dlp: block\n"
	             "allow: [{name: a, to: a.example, dlp: off}]\n",
	        true, false, "+ secrets in requests of rule a: off (so far block)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_of),
	        cmocka_unit_test(test_observe),
	        cmocka_unit_test(test_image),
	        cmocka_unit_test(test_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
