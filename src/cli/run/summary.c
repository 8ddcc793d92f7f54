/* SPDX-License-Identifier: Apache-2.0 */
/* The few lines at the end of a run. Text from the sandbox is escaped again before a terminal gets
 * it. */
#include <inttypes.h>

#include "cli/run/summary.h"

#define SUMMARY_WHAT_MAX 120

void summary_print(
        const struct message_summary *s, const char *sandbox, const char *audit_path, FILE *out)
{
	char what[SUMMARY_WHAT_MAX];

	fprintf(out,
	        "vethguard: %s: %" PRIu64 " allowed, %" PRIu64 " denied, %" PRIu64
	        " packets dropped",
	        sandbox, s->allowed, s->denied, s->dropped);
	if (s->failed > 0)
		fprintf(out, ", %" PRIu64 " failed", s->failed);
	if (s->observed > 0)
		fprintf(out, ", %" PRIu64 " only observed", s->observed);
	if (s->findings > 0)
		fprintf(out, ", %" PRIu64 " unusual", s->findings);
	fputc('\n', out);
	for (size_t i = 0; i < s->unusual_count; i++)
		fprintf(out, "  refused %6" PRIu64 " x  %s\n", s->unusual[i].count,
		        slice_escape(s->unusual[i].what, what, sizeof(what)));
	if (audit_path[0] == '\0')
		return;
	fprintf(out, "  audit log: %s ('vethguard audit show %s')\n", audit_path, audit_path);
	if (s->denied > 0 || s->observed > 0)
		fprintf(out, "  what would allow it: 'vethguard audit suggest %s'\n", audit_path);
}
