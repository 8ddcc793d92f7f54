/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the last step of the compiler. Both hash tables are built under a fresh
 * random key, at most half full. The sections follow the header one after the other. The
 * fingerprint covers everything except the key and the tables that depend on it. For an image
 * inside of this one it covers that image's fingerprint.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/compile/compile.h"
#include "vethguard/policy/body.h"

static const struct hash_key fingerprint_key = {
        UINT64_C(0x7665746867756172), UINT64_C(0x6420706f6c696379)};

static bool open_slots(struct vec *slots, size_t items)
{
	size_t count = 1;

	while (count < items * 2)
		count *= 2;
	if (!vec_extend(slots, count))
		return false;
	for (size_t i = 0; i < count; i++)
		((struct image_slot *)vec_at(slots, i))->index = IMAGE_EMPTY;
	return true;
}

static void fill_slot(struct vec *slots, uint64_t hash, uint32_t index)
{
	size_t i = hash & (slots->n - 1);
	struct image_slot *slot = vec_at(slots, i);

	while (slot->index != IMAGE_EMPTY) {
		i = (i + 1) & (slots->n - 1);
		slot = vec_at(slots, i);
	}
	slot->tag = (uint32_t)(hash >> 32);
	slot->index = index;
}

static const char *string_at(const struct compiler *c, struct image_text text)
{
	return text.n ? (const char *)c->sections[SECTION_STRINGS].p + text.at : "";
}

static bool build_tables(struct compiler *c)
{
	struct vec *targets = &c->sections[SECTION_TARGETS], *nodes = &c->sections[SECTION_NODES];
	struct vec *target_slots = &c->sections[SECTION_TARGET_SLOTS];
	struct vec *node_slots = &c->sections[SECTION_NODE_SLOTS];
	struct hash_key key = hash_random_key();

	c->header.k0 = key.k0;
	c->header.k1 = key.k1;
	if (!open_slots(target_slots, targets->n) || !open_slots(node_slots, nodes->n))
		return false;
	for (uint32_t i = 0; i < targets->n; i++) {
		const struct image_target *t = vec_at(targets, i);

		key = image_target_key(&c->header, t->kind);
		fill_slot(target_slots, hash_bytes(&key, string_at(c, t->key), t->key.n), i);
	}
	for (uint32_t i = 0; i < nodes->n; i++) {
		const struct image_node *n = vec_at(nodes, i);

		key = image_node_key(&c->header, n->profile, n->deny);
		fill_slot(node_slots, hash_bytes(&key, string_at(c, n->start), n->start.n), i);
	}
	return true;
}

static size_t aligned(size_t n)
{
	return (n + IMAGE_ALIGN - 1) & ~(size_t)(IMAGE_ALIGN - 1);
}

/* Places the sections and returns the image's size. */
static size_t lay_out(struct compiler *c)
{
	size_t at = aligned(sizeof(struct image_header));

	for (int i = 0; i < SECTION_COUNT; i++) {
		c->header.sections[i].at = (uint32_t)at;
		c->header.sections[i].count = (uint32_t)c->sections[i].n;
		at += aligned(c->sections[i].n * image_element_size[i]);
		if (at > POLICY_IMAGE_MAX)
			return 0;
	}
	return at;
}

static void add_inner(uint64_t hash[2], uint64_t id, const uint8_t *image)
{
	const struct image_header *inner = (const struct image_header *)image;

	hash[1] = id ^ hash_bytes(&fingerprint_key, inner->fingerprint, IMAGE_FINGERPRINT);
	hash[0] = hash_bytes(&fingerprint_key, hash, 2 * sizeof(hash[0]));
}

static void set_fingerprint(struct image_header *h, const uint8_t *image)
{
	char digits[IMAGE_FINGERPRINT + 1];
	size_t start = h->sections[0].at, end = h->sections[SECTION_TARGET_SLOTS].at;
	uint64_t inspect = h->inspect == POLICY_INSPECT_DEFAULT ? 0 : h->inspect;
	uint64_t hash[2] = {hash_bytes(&fingerprint_key, image + start, end - start),
	        h->mode | (uint64_t)h->leaks_pass << 8 | (uint64_t)h->silent << 9 | inspect << 32};

	hash[0] = hash_bytes(&fingerprint_key, hash, sizeof(hash));
	for (int id = SECTION_FLOOR; id <= SECTION_INFRASTRUCTURE; id++)
		if (h->sections[id].count > 0)
			add_inner(hash, (uint64_t)id, image + h->sections[id].at);
	snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)hash[0]);
	memcpy(h->fingerprint, digits, IMAGE_FINGERPRINT);
}

int compile_write(struct compiler *c, uint8_t **image, size_t *size)
{
	struct image_header *h = &c->header;
	uint8_t *out;

	memcpy(h->magic, IMAGE_MAGIC, sizeof(h->magic));
	h->version = IMAGE_VERSION;
	h->mode = c->model->mode;
	h->inspect = c->model->inspect;
	h->leaks_pass = c->model->leaks_pass;
	h->silent = c->model->silent;
	h->rule_count = c->model->rule_count;
	h->name = compile_text(c, c->model->name);
	if (c->failed || !build_tables(c))
		return -ENOMEM;
	*size = lay_out(c);
	if (*size == 0) {
		diag_add(c->model->diags, "policy", 0, 0,
		        "the compiled policy exceeds %u MiB; split it or name fewer destinations "
		        "and paths",
		        POLICY_IMAGE_MAX >> 20);
		return -EINVAL;
	}
	out = calloc(1, *size);
	if (!out)
		return -ENOMEM;
	h->size = (uint32_t)*size;
	for (int i = 0; i < SECTION_COUNT; i++)
		if (c->sections[i].n > 0)
			memcpy(out + h->sections[i].at, c->sections[i].p,
			        c->sections[i].n * image_element_size[i]);
	set_fingerprint(h, out);
	memcpy(out, h, sizeof(*h));
	*image = out;
	return 0;
}
