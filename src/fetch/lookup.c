/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the resolvers once; see fetch/lookup.h. */
#include "fetch/lookup.h"

#define LOOKUP_MS 5000

struct question {
	struct resolver_wait wait;
	struct loop *loop;
	struct message_fetch_site *site;
	const char *error;
};

bool lookup_open(struct lookup *lookup, const struct fetch_request *request)
{
	const struct message_fetch *m = &request->message;

	lookup->loop = loop_new();
	lookup->resolver = lookup->loop ? resolver_new(lookup->loop, m->servers, m->server_count,
	                                          NULL, 0, LOOKUP_MS)
	                                : NULL;
	return lookup->resolver != NULL;
}

void lookup_close(struct lookup *lookup)
{
	if (lookup->resolver)
		resolver_free(lookup->resolver);
	if (lookup->loop)
		loop_free(lookup->loop);
}

static void take(struct question *q, const struct resolver_answer *answer)
{
	struct message_fetch_site *site = q->site;

	q->error = answer->count ? NULL : answer->error;
	for (size_t i = 0; i < answer->count && i < MESSAGE_FETCH_ADDRESSES_MAX; i++)
		site->addresses[site->address_count++] = answer->addresses[i];
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	struct question *q = container_of(wait, struct question, wait);

	take(q, answer);
	loop_stop(q->loop);
}

static const char *look_up(struct lookup *lookup, struct message_fetch_site *site, const char *host)
{
	struct question q = {.wait = {.on_answer = on_answer},
	        .loop = lookup->loop,
	        .site = site,
	        .error = "the name cannot be looked up"};
	const struct resolver_answer *answer;

	if (site->address_count)
		return NULL;
	answer = resolver_get(lookup->resolver, slice_from_string(host), &q.wait);
	if (answer)
		take(&q, answer);
	else if (loop_run(lookup->loop) < 0)
		return "the loop does not run";
	return q.error;
}

const char *lookup_run(struct lookup *lookup, struct fetch_request *request)
{
	const char *why = NULL;

	for (uint32_t i = 0; !why && i < request->message.site_count; i++)
		why = look_up(lookup, &request->message.sites[i], request->sites[i].host);
	return why;
}
