/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the resolvers once; see fetch/lookup.h. */
#include "fetch/lookup.h"

#define LOOKUP_MS 5000

struct question {
	struct resolver_wait wait;
	struct loop *loop;
	struct fetch_request *request;
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
	struct message_fetch *m = &q->request->message;

	q->error = answer->count ? NULL : answer->error;
	for (size_t i = 0; i < answer->count && i < MESSAGE_FETCH_ADDRESSES_MAX; i++)
		m->addresses[m->address_count++] = answer->addresses[i];
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	struct question *q = container_of(wait, struct question, wait);

	take(q, answer);
	loop_stop(q->loop);
}

const char *lookup_run(struct lookup *lookup, struct fetch_request *request)
{
	struct question q = {.wait = {.on_answer = on_answer},
	        .loop = lookup->loop,
	        .request = request,
	        .error = "the name cannot be looked up"};
	const struct resolver_answer *answer;

	if (request->message.address_count)
		return NULL;
	answer = resolver_get(lookup->resolver, slice_from_string(request->host), &q.wait);
	if (answer)
		take(&q, answer);
	else if (loop_run(lookup->loop) < 0)
		return "the loop does not run";
	return q.error;
}
