/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each file is loaded on its own; all faults of all files are shown before the
 * status tells. What is no fault but probably not meant is a note and leaves the status alone. */
#include "policy_commands.h"

#define JSON_MAX (16u << 20)

static const struct policy_usage usage = {
        .command = "vethguard policy check",
        .words = {"FILE"},
        .more = true,
        .text = "Loads each policy with all that it includes and says what is wrong with it, with "
                "file,\nline and column. A note tells what is no fault but probably not meant.\n"
                "Exit status: 0 all are right, 2 one is not.\n",
        .examples = "  vethguard policy check policies/*.yaml\n"
                    "  vethguard policy check agent.yaml --var repo=acme/site\n"
                    "  vethguard policy check agent.yaml --json | jq '.[].errors'\n",
};

static const char *mode_name(const struct policy *policy)
{
	return policy_mode(policy) == POLICY_OBSERVE ? "observe" : "enforce";
}

static void print_good(const char *path, const struct policy *policy)
{
	char name[POLICY_NAME_MAX * 4 + 1], shown[1024];

	slice_escape(policy_name(policy), name, sizeof(name));
	slice_escape(slice_from_string(path), shown, sizeof(shown));
	printf("%s: good: policy \"%s\", %u rule%s, %u credential%s, mode %s, fingerprint %.*s\n",
	        shown, name, policy_rule_count(policy), policy_rule_count(policy) == 1 ? "" : "s",
	        policy_credential_count(policy), policy_credential_count(policy) == 1 ? "" : "s",
	        mode_name(policy), SLICE_ARG(policy_fingerprint(policy)));
}

static void write_json(struct json *j, const char *path, const struct policy_loaded *loaded, int rc,
        const struct diag_list *diags, const struct diag_list *notes)
{
	json_object(j, NULL);
	json_literal(j, "file", path);
	json_bool(j, "good", rc == 0);
	if (rc == 0) {
		json_string(j, "name", policy_name(&loaded->policy), 0);
		json_uint(j, "rules", policy_rule_count(&loaded->policy));
		json_uint(j, "credentials", policy_credential_count(&loaded->policy));
		json_literal(j, "mode", mode_name(&loaded->policy));
		json_string(j, "fingerprint", policy_fingerprint(&loaded->policy), 0);
	}
	policy_diags_json(j, "errors", diags);
	json_uint(j, "errors_not_shown", diags->dropped);
	policy_diags_json(j, "notes", notes);
	json_uint(j, "notes_not_shown", notes->dropped);
	json_end_object(j);
}

/* 0 where the file loads. */
static int check_file(const char *path, struct policy_options *options, struct json *j)
{
	struct diag_list diags = {.count = 0}, notes = {.count = 0};
	struct policy_loaded loaded;
	int rc;

	options->notes = &notes;
	rc = policy_load_file(path, options, &loaded, &diags);
	options->notes = NULL;
	if (options->json) {
		write_json(j, path, &loaded, rc, &diags, &notes);
	} else {
		policy_print_notes(&notes);
		if (rc == 0)
			print_good(path, &loaded.policy);
		else
			diag_print(&diags, stderr);
	}
	policy_unload(&loaded);
	return rc;
}

int policy_check_command(int argc, char **argv)
{
	struct policy_options options;
	int n = policy_take_options(&usage, argv, &options);
	int status = POLICY_EXIT_GOOD;
	struct json j;
	struct buf buf;

	(void)argc;
	if (n <= 0)
		return n == 0 ? POLICY_EXIT_GOOD : POLICY_EXIT_BAD;
	buf_init(&buf, JSON_MAX);
	json_begin(&j, &buf);
	json_array(&j, NULL);
	for (int i = 0; i < n; i++)
		if (check_file(argv[i], &options, &j) != 0)
			status = POLICY_EXIT_BAD;
	json_end_array(&j);
	if (options.json)
		return policy_print_json(&j, &buf, status);
	buf_fini(&buf);
	return status;
}
