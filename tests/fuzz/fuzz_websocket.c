/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: one byte of options (masked, deflate, forgets, window), one byte that seeds the cuts, what
 * one side sends. Read in pieces and byte by byte it must be the same frames with the same content;
 * a head that is taken is the only way to write it; compressed content may inflate to anything, but
 * not to more than the bound.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy/http/websocket.h"
#include "vethguard/credential/inflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* All results, in a form that does not depend on the cuts. */
struct told {
	uint8_t *p;
	size_t n;
	size_t heads;
	bool bad;
};

struct inflated {
	uint64_t sum, n;
};

static void count(void *context, const uint8_t *p, size_t n)
{
	struct inflated *i = context;

	require(n > 0);
	i->n += n;
	for (size_t k = 0; k < n; k++)
		i->sum = i->sum * 31 + p[k];
}

static void check_head(const struct websocket *w)
{
	uint8_t head[WEBSOCKET_HEAD_MAX];
	size_t n = websocket_write_head(head, w->fin, w->opcode, w->left);

	require(n + (w->masked ? 4 : 0) == w->head_was);
	head[0] |= w->head[0] & 0x40;
	head[1] |= w->masked ? 0x80 : 0;
	require(memcmp(head, w->head, n) == 0);
	require(!(w->head[0] & 0x30) && w->left <= INT64_MAX);
	require(!websocket_is_control(w) || (w->fin && w->left <= WEBSOCKET_CONTROL_MAX));
	require(!(w->head[0] & 0x40) || (w->deflate && w->compressed));
}

static void read_all(struct websocket *w, const uint8_t *p, size_t n, unsigned seed, bool single,
        struct told *told, struct inflater *inflater, struct inflated *inflated)
{
	int rc = 0;

	for (size_t at = 0; at < n && !told->bad;) {
		size_t piece = single ? 1 : 1 + (seed = seed * 1103515245 + 12345) / 65536 % 60,
		       used;
		enum websocket_step step;
		bool ends;

		if (piece > n - at)
			piece = n - at;
		used = websocket_next(w, p + at, piece, &step);
		require(used <= piece && (used > 0 || step == WEBSOCKET_BAD));
		told->bad = step == WEBSOCKET_BAD;
		require(told->bad == (w->error != NULL));
		if (step == WEBSOCKET_HEAD) {
			check_head(w);
			told->heads++;
		}
		if (step == WEBSOCKET_CONTENT)
			websocket_unmask(w, p + at, used, told->p + told->n);
		ends = w->left == 0 && websocket_ends_message(w);
		if (rc == 0 && w->compressed && !websocket_is_control(w) &&
		        (step == WEBSOCKET_CONTENT || (step == WEBSOCKET_HEAD && ends && !w->left)))
			rc = inflater_feed(inflater, told->p + told->n,
			        step == WEBSOCKET_CONTENT ? used : 0, ends, count, inflated);
		if (step == WEBSOCKET_CONTENT)
			told->n += used;
		at += used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told told[2];
	struct inflated inflated[2] = {{0}};

	if (size < 2)
		return 0;
	for (int i = 0; i < 2; i++) {
		struct websocket w = {.masked = data[0] & 1, .deflate = data[0] & 2};
		struct inflater *inflater = inflater_new(8 + (data[0] >> 4) % 8, data[0] & 4);

		told[i] = (struct told){.p = malloc(size)};
		require(inflater && told[i].p);
		read_all(&w, data + 2, size - 2, data[1], i, &told[i], inflater, &inflated[i]);
		inflater_free(inflater);
	}
	require(told[0].heads == told[1].heads && told[0].bad == told[1].bad);
	require(told[0].n == told[1].n && memcmp(told[0].p, told[1].p, told[0].n) == 0);
	require(inflated[0].n <= INFLATED_FREE + INFLATED_RATIO * (size + 4) + 32768);
	free(told[0].p);
	free(told[1].p);
	return 0;
}
