/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a commit's id is the hash of its text, and the text names its parents. So
 * the texts prove which commit descends from which, wherever they come from. The ids are computed
 * here; nothing that a pack says about itself is believed.
 *
 * The table of ids uses open addressing with a keyed hash, because the sandbox chooses the commits.
 */
#include "git/commits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "git/pkt.h"
#include "vethguard/git/body.h"
#include "vethguard/tls/digest.h"

#define FIRST_ROOM 64u

void commits_init(struct commits *c, size_t id_n)
{
	*c = (struct commits){.key = hash_random_key(), .id_n = id_n};
}

void commits_fini(struct commits *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->items[i].text);
	free(c->items);
	free(c->slots);
	*c = (struct commits){.id_n = c->id_n};
}

static size_t slot_of(const struct commits *c, const uint8_t *id)
{
	size_t slot = (size_t)hash_bytes(&c->key, id, c->id_n) & (c->slot_count - 1);

	while (c->slots[slot] && memcmp(c->items[c->slots[slot] - 1].id, id, c->id_n) != 0)
		slot = (slot + 1) & (c->slot_count - 1);
	return slot;
}

static bool grow(struct commits *c)
{
	size_t room = c->room ? 2 * c->room : FIRST_ROOM;
	struct commit *items = realloc(c->items, room * sizeof(*items));
	uint32_t *slots = calloc(4 * room, sizeof(*slots));

	if (items)
		c->items = items;
	if (!items || !slots) {
		free(slots);
		return false;
	}
	free(c->slots);
	c->slots = slots;
	c->slot_count = 4 * room;
	c->room = room;
	for (size_t i = 0; i < c->count; i++)
		c->slots[slot_of(c, c->items[i].id)] = (uint32_t)i + 1;
	return true;
}

/* Computes a commit's id: the hash of "commit", the size and the text
 * (gitformat-pack(5), "Object storage format"). */
static int make_id(const struct commits *c, const uint8_t *text, size_t n, uint8_t *id)
{
	char head[32];
	int head_n = snprintf(head, sizeof(head), "commit %zu", n);
	const struct slice parts[] = {slice_of(head, (size_t)head_n + 1), slice_of(text, n)};

	return digest_once(c->id_n == DIGEST_SHA256_BYTES, parts, 2, id);
}

int commits_add(struct commits *c, size_t at, uint8_t *text, size_t n)
{
	struct commit one = {.at = at, .text = text, .n = n};
	int rc = 0;
	size_t slot;

	if (c->count == GIT_COMMITS_MAX || n > GIT_COMMITS_BYTES_MAX - c->bytes)
		rc = -ENOBUFS;
	else if (c->count == c->room && !grow(c))
		rc = -ENOMEM;
	else
		rc = make_id(c, text, n, one.id);
	if (rc < 0) {
		free(text);
		return rc;
	}
	c->bytes += n;
	c->items[c->count++] = one;
	slot = slot_of(c, one.id);
	if (!c->slots[slot]) /* otherwise the pack has the commit twice */
		c->slots[slot] = (uint32_t)c->count;
	return 0;
}

struct commit *commits_at(const struct commits *c, size_t at)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->items[middle].at == at)
			return &c->items[middle];
		if (c->items[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

struct commit *commits_find(const struct commits *c, const uint8_t *id)
{
	uint32_t index = c->count ? c->slots[slot_of(c, id)] : 0;

	return index ? &c->items[index - 1] : NULL;
}

/* Takes a line "NAME ID\n" off the text. Returns false if the text does not begin with one. */
static bool take_line(struct slice *text, struct slice name, size_t id_n, uint8_t *id)
{
	struct slice rest = *text;

	if (!slice_starts_with(rest, name))
		return false;
	rest = slice_of(rest.p + name.n, rest.n - name.n);
	if (!pkt_id(&rest, id_n, id) || rest.n == 0 || rest.p[0] != '\n')
		return false;
	*text = slice_of(rest.p + 1, rest.n - 1);
	return true;
}

struct walk {
	struct commits *commits;
	const uint8_t *ancestor;
	uint32_t *left; /* indices of commits whose parents are still to be looked at */
	size_t left_n;
};

/* Looks at the parents of a commit. Returns true if the ancestor is one of them. */
static bool look_at_parents(struct walk *w, const struct commit *commit)
{
	struct slice text = slice_of(commit->text, commit->n);
	struct commits *c = w->commits;
	uint8_t id[POLICY_GIT_ID_MAX];

	if (!take_line(&text, SLICE("tree "), c->id_n, id))
		return false;
	while (c->steps < GIT_STEPS_MAX && take_line(&text, SLICE("parent "), c->id_n, id)) {
		struct commit *parent;

		c->steps++;
		if (memcmp(id, w->ancestor, c->id_n) == 0)
			return true;
		parent = commits_find(c, id);
		if (!parent || parent->seen == c->searches)
			continue;
		parent->seen = c->searches;
		w->left[w->left_n++] = (uint32_t)(parent - c->items);
	}
	return false;
}

bool commits_descends(struct commits *c, const uint8_t *id, const uint8_t *ancestor)
{
	struct commit *first = commits_find(c, id);
	struct walk w = {.commits = c, .ancestor = ancestor};
	bool found = false;

	if (first)
		w.left = malloc(c->count * sizeof(*w.left));
	if (!w.left)
		return false;
	first->seen = ++c->searches;
	w.left[w.left_n++] = (uint32_t)(first - c->items);
	while (!found && w.left_n && c->steps++ < GIT_STEPS_MAX) {
		const struct commit *next = &c->items[w.left[--w.left_n]];

		found = !next->ends && look_at_parents(&w, next);
	}
	free(w.left);
	return found;
}
