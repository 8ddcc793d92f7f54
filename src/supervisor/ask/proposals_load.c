/* SPDX-License-Identifier: Apache-2.0 */
/* Proposed rules as texts for a load: those that were approved, and the one of which the operator
 * wants to see what it would change. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/ask/asks.h"
#include "supervisor/ask/proposals_private.h"
#include "vethguard/base/buf.h"
#include "vethguard/base/clock.h"
#include "vethguard/policy/diff.h"

#define RULE_TEXT_MAX 4096
#define DIFF_TEXT_MAX (256u << 10)

/* --- what would change --- */

static char *difference(const struct policy *from, const struct policy *to)
{
	struct policy_diff diff;
	struct buf text;
	char *out;

	if (policy_diff(from, to, &diff) != 0)
		return NULL;
	buf_init(&text, DIFF_TEXT_MAX);
	for (size_t i = 0; i < diff.count; i++)
		buf_printf(&text, "%s\n", diff.lines[i].text);
	if (diff.dropped)
		buf_printf(&text, "... and %zu more\n", diff.dropped);
	policy_diff_fini(&diff);
	out = strndup(text.len ? (const char *)buf_bytes(&text) : "", text.len);
	buf_fini(&text);
	return out;
}

void attachments_propose(struct attachments *all, uint64_t id, attach_done done, void *context)
{
	struct attachment *a = proposals_find(all, id);
	struct attach_result result = {.text = "", .attachment = a};
	struct generation *g;
	struct identity own;
	char *text = NULL;

	if (!a || !a->sandbox || !a->sandbox->generation) {
		attach_refuse(done, context, ATTACH_NOT_FOUND, "no proposal waits under %016llx",
		        (unsigned long long)id);
		return;
	}
	own = attach_record_identity(&a->record);
	a->proposals->tried = id;
	g = attachment_load(a, a->record.policy, &own, &settings_no_files, &result.status, &text);
	a->proposals->tried = 0;
	result.diagnostics = text;
	if (g) {
		result.status = ATTACH_OK;
		text = difference(&a->sandbox->generation->settings->policy, &g->settings->policy);
		result.diff = text;
	} else {
		result.text = attach_load_failure(result.status);
	}
	done(context, &result);
	generation_put(g);
	free(text);
}

/* --- for the load --- */

static bool is_loaded(const struct proposals *p, const struct proposals_item *item)
{
	bool over = item->until_ms && item->until_ms <= clock_boot_ms();

	return (item->state == MESSAGE_PROPOSAL_APPROVED && !over) || p->tried == item->id;
}

int proposals_write(const struct attachment *a, struct proposals_text *out)
{
	const struct proposals *p = a->proposals;

	*out = (struct proposals_text){.count = 0};
	for (size_t i = 0; p && i < p->count; i++) {
		const struct proposals_item *item = &p->items[i];
		size_t at = out->count;
		struct buf text;

		if (!is_loaded(p, item))
			continue;
		buf_init(&text, RULE_TEXT_MAX);
		if (policy_proposal_write(&item->rule, item->id, &text) == 0)
			out->texts[at] = strndup((const char *)buf_bytes(&text), text.len);
		snprintf(out->names[at], sizeof(out->names[at]), "proposal-%016llx",
		        (unsigned long long)item->id);
		out->items[at] = (struct policy_more){
		        out->names[at], slice_from_string(out->texts[at] ? out->texts[at] : "")};
		buf_fini(&text);
		if (!out->texts[at])
			return -ENOMEM;
		out->count++;
	}
	return 0;
}

void proposals_text_fini(struct proposals_text *text)
{
	for (size_t i = 0; i < text->count; i++)
		free(text->texts[i]);
}
