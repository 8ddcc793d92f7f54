/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a policy is loaded once more, without the floor, and both are compared. What
 * the second one no longer allows is what the floor takes away. */
#include "cli/policy/policy.h"
#include "vethguard/policy/diff.h"

#define NOTES_MAX 12 /* lines about the floor */
#define GONE "- may no longer: "
#define TAKEN "- the floor takes away: "

static void note_lines(const char *path, const struct policy_diff *diff, struct diag_list *notes)
{
	size_t shown = 0, count = 0;

	for (size_t i = 0; i < diff->count; i++) {
		const char *text = diff->lines[i].text;

		if (!diff->lines[i].narrows || diff->lines[i].widens || count++ >= NOTES_MAX)
			continue;
		shown++;
		if (strncmp(text, GONE, strlen(GONE)) == 0)
			diag_add(
			        notes, path, 0, 0, "the floor takes away: %s", text + strlen(GONE));
		else
			diag_add(notes, path, 0, 0, "%s%s",
			        strncmp(text, TAKEN, strlen(TAKEN)) == 0 ? "" : "by the floor: ",
			        text + strlen("- "));
	}
	count += diff->dropped;
	if (count > shown)
		diag_add(notes, path, 0, 0, "the floor takes away %zu more", count - shown);
}

void policy_note_floor(const char *path, const struct policy_options *with,
        const struct policy *policy, struct diag_list *notes)
{
	struct policy_options without = {.floor = POLICY_FLOOR_NONE, .quiet = true};
	struct diag_list diags = {.count = 0};
	struct policy_loaded loaded;
	struct policy_diff diff;

	if (!policy_has_layers(policy))
		return;
	memcpy(without.variables, with->variables, sizeof(without.variables));
	without.variable_count = with->variable_count;
	if (policy_load_file(path, &without, &loaded, &diags) == 0 &&
	        policy_diff(&loaded.policy, policy, &diff) == 0) {
		note_lines(path, &diff, notes);
		policy_diff_fini(&diff);
	}
	policy_unload(&loaded);
}
