/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/rewrite/kept_head.h"

#include "vethguard/base/secret.h"

static bool copy(struct buf *text, struct slice *s)
{
	uint8_t *room = buf_reserve(text, s->n);

	if (!room)
		return false;
	if (s->n)
		memcpy(room, s->p, s->n);
	buf_commit(text, s->n);
	s->p = (const char *)room;
	return true;
}

/* 2 * HTTP_HEAD_MAX suffices: the head came in a buffer of HTTP_HEAD_MAX, and less was added. */
bool kept_head_init(struct kept_head *k, const struct http_response *r)
{
	bool kept;

	k->head = *r;
	buf_init(&k->text, 2 * HTTP_HEAD_MAX);
	if (!buf_reserve(&k->text, 2 * HTTP_HEAD_MAX))
		return false;
	kept = copy(&k->text, &k->head.reason);
	for (size_t i = 0; kept && i < k->head.fields.count; i++)
		kept = copy(&k->text, &k->head.fields.items[i].name) &&
		       copy(&k->text, &k->head.fields.items[i].value);
	return kept;
}

void kept_head_fini(struct kept_head *k)
{
	if (k->text.len)
		secret_wipe(buf_bytes(&k->text), k->text.len);
	buf_fini(&k->text);
}
