/* SPDX-License-Identifier: Apache-2.0 */
/* What a new policy changes for its users, as `vethguard policy diff` prints it; for the audit
 * log. */
#include <stdio.h>

#include "vethguard/policy/diff.h"
#include "supervisor/supervisor.h"

void generation_compare(struct generation *g, const struct generation *before)
{
	struct policy_diff diff;
	char *text = NULL;
	size_t n;
	FILE *out;

	if (policy_diff(&before->settings->policy, &g->settings->policy, &diff) != 0)
		return;
	out = open_memstream(&text, &n);
	for (size_t i = 0; out && i < diff.count; i++)
		fprintf(out, "%s\n", diff.lines[i].text);
	if (out && diff.dropped)
		fprintf(out, "... and %zu more\n", diff.dropped);
	if (out)
		fclose(out);
	policy_diff_fini(&diff);
	g->difference = text;
}
