/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: both files are loaded with the same variables, and the library compares
 * them. */
#include "cli/policy/policy.h"
#include "vethguard/policy/diff.h"

#define JSON_MAX (4u << 20)

static const struct policy_usage usage = {
        .command = "vethguard policy diff",
        .words = {"OLD", "NEW"},
        .text = "Says what NEW allows that OLD does not (+), and what it no longer allows (-), "
                "however\nthey are written. Exit status: 0 they allow the same, 1 they differ, 2 "
                "one does not load.\n",
        .examples = "  vethguard policy diff old.yaml new.yaml\n"
                    "  vethguard policy diff old.yaml new.yaml --json | jq .widens\n",
};

static void print_text(const struct policy_diff *diff)
{
	for (size_t i = 0; i < diff->count; i++)
		printf("%s\n", diff->lines[i].text);
	if (diff->dropped)
		printf("and %zu more\n", diff->dropped);
	if (!diff->differs)
		printf("the same: nothing more and nothing less is possible\n");
}

static int print_json(const struct policy_diff *diff, int status)
{
	struct json j;
	struct buf buf;

	buf_init(&buf, JSON_MAX);
	json_begin(&j, &buf);
	json_object(&j, NULL);
	json_bool(&j, "differs", diff->differs);
	json_bool(&j, "widens", diff->widens);
	json_bool(&j, "narrows", diff->narrows);
	json_bool(&j, "incomplete", diff->incomplete);
	json_array(&j, "changes");
	for (size_t i = 0; i < diff->count; i++) {
		json_object(&j, NULL);
		json_bool(&j, "widens", diff->lines[i].widens);
		json_bool(&j, "narrows", diff->lines[i].narrows);
		json_literal(&j, "text", diff->lines[i].text);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_uint(&j, "changes_not_shown", diff->dropped);
	json_end_object(&j);
	return policy_print_json(&j, &buf, status);
}

static int compare(const struct policy_loaded *from, const struct policy_loaded *to, bool as_json)
{
	struct policy_diff diff;
	int status;

	if (policy_diff(&from->policy, &to->policy, &diff) != 0) {
		fputs("vethguard: error: not enough memory to compare the policies\n", stderr);
		return POLICY_EXIT_BAD;
	}
	status = diff.differs ? POLICY_EXIT_DENIED : POLICY_EXIT_GOOD;
	if (as_json)
		status = print_json(&diff, status);
	else
		print_text(&diff);
	policy_diff_fini(&diff);
	return status;
}

int policy_diff_command(int argc, char **argv)
{
	struct diag_list diags = {.count = 0};
	struct policy_loaded from = {0}, to = {0};
	struct policy_options options;
	int status = POLICY_EXIT_BAD;
	int n = policy_take_options(&usage, argv, &options);

	(void)argc;
	if (n <= 0)
		return n == 0 ? POLICY_EXIT_GOOD : POLICY_EXIT_BAD;
	options.quiet = true;
	if (policy_load_file(argv[0], &options, &from, &diags) != 0 ||
	        policy_load_file(argv[1], &options, &to, &diags) != 0)
		diag_print(&diags, stderr);
	else
		status = compare(&from, &to, options.json);
	policy_unload(&from);
	policy_unload(&to);
	return status;
}
