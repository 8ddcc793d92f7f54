/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for a person in all sandboxes, and a person's decisions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/ask/asks.h"
#include "supervisor/ask/proposals.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/sandbox/asks.h"
#include "vethguard/base/clock.h"

#define MS_PER_S 1000

static void view_of(
        const struct attachment *a, const struct asks_item *item, struct attach_ask *out)
{
	int64_t left_ms = item->until_ms - clock_boot_ms();

	*out = (struct attach_ask){.id = item->id,
	        .sandbox = a->record.name,
	        .granted = !item->waits,
	        .whole = item->whole,
	        .by = item->by,
	        .since_ms = item->since_ms,
	        .ends = item->until_ms != 0,
	        .left_s = left_ms > 0 ? (uint64_t)left_ms / MS_PER_S : 0,
	        .ask = &item->ask};
}

void attachments_asks(struct attachments *all,
        void (*each)(void *context, const struct attach_ask *ask), void *context)
{
	const struct asks_item *item;
	struct attachment *a, *next;
	struct attach_ask view;

	HASH_ITER(hh, all->by_name, a, next)
	{
		for (size_t i = 0; a->sandbox && (item = asks_at(a->sandbox, i)); i++) {
			view_of(a, item, &view);
			each(context, &view);
		}
		for (size_t i = 0; proposals_at(a, i, &view); i++)
			each(context, &view);
	}
}

/* Finds the sandbox with a request under this id. Returns how many requests and proposals have it:
 * ids come from workers, and a worker that was taken over can choose another's. */
static unsigned find(struct attachments *all, uint64_t id, struct attachment **out)
{
	const struct asks_item *item;
	struct attachment *a, *next;
	struct attach_ask view;
	unsigned found = 0;

	*out = NULL;
	HASH_ITER(hh, all->by_name, a, next)
	{
		for (size_t i = 0; a->sandbox && (item = asks_at(a->sandbox, i)); i++)
			if (item->id == id) {
				*out = a;
				found++;
			}
		for (size_t i = 0; proposals_at(a, i, &view); i++)
			found += view.id == id;
	}
	return found;
}

void attachments_decide(
        struct attachments *all, const struct attach_decision *d, attach_done done, void *context)
{
	const struct asks_decision decision = {.approved = d->approved,
	        .lasts = d->lasts,
	        .for_s = d->for_s,
	        .whole = d->whole,
	        .reason = d->reason,
	        .by = d->by};
	struct attachment *proposing = d->requests_only ? NULL : proposals_find(all, d->id);
	struct attachment *a;
	const bool unique = find(all, d->id, &a) <= 1;
	int rc = a && unique ? asks_decide(a->sandbox, d->id, &decision) : -ENOENT;
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};

	if (!unique)
		attach_refuse(done, context, ATTACH_CONFLICT,
		        "more than one request or proposal has the id %016" PRIx64
		        ", so nothing is decided: detach the sandbox that you do not trust",
		        d->id);
	else if (proposing)
		proposals_decide(proposing, d, done, context);
	else if (rc == -ENOENT)
		attach_refuse(done, context, ATTACH_NOT_FOUND,
		        "nothing waits under %016" PRIx64
		        ": it was decided, its time was over, or its client is gone",
		        d->id);
	else if (rc == -EINVAL)
		attach_refuse(done, context, ATTACH_CONFLICT,
		        "%016" PRIx64 " is granted already; refuse ends that", d->id);
	else if (rc)
		attach_refuse(done, context, ATTACH_BUSY,
		        "sandbox %.64s has %d grants already: refuse one of them, or approve "
		        "this once",
		        a->record.name, MESSAGE_ASKS_MAX);
	else
		done(context, &result);
}
