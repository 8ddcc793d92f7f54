/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a small object are compared one by one; those of a larger one go into a hash table,
 * so that the work stays a product of their number and their lengths. Also converts the text of
 * a number.
 */
#include "policy/json/json_keys.h"

#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/hash.h"

#define FEW 16 /* keys that are compared one by one */
#define NUMBER_DIGITS_MAX 15
#define NUMBER_TEXT_MAX 32

/* The next key behind the one at index, or behind the object's beginning. */
static uint32_t next_key(const struct json_tree *tree, uint32_t object, uint32_t key)
{
	return key == object ? object + 1 : json_at(tree, key + 1)->next;
}

static struct slice key_at(const struct json_tree *tree, uint32_t index)
{
	return json_text(tree, json_at(tree, index));
}

static bool has_before(const struct json_tree *tree, uint32_t object, uint32_t key)
{
	struct slice name = key_at(tree, key);

	for (uint32_t k = next_key(tree, object, object); k < key; k = next_key(tree, object, k))
		if (slice_equals(key_at(tree, k), name))
			return true;
	return false;
}

/* slots: indices of keys, 0 for a free one, a power of two of them. */
static bool put(const struct json_tree *tree, const struct hash_key *hash, uint32_t *slots,
        size_t slot_count, uint32_t key)
{
	struct slice name = key_at(tree, key);
	size_t i = hash_bytes(hash, name.p, name.n) & (slot_count - 1);

	for (; slots[i]; i = (i + 1) & (slot_count - 1))
		if (slice_equals(key_at(tree, slots[i]), name))
			return false;
	slots[i] = key;
	return true;
}

static int compare_many(const struct json_tree *tree, uint32_t object, size_t count)
{
	uint32_t end = json_at(tree, object)->next, *slots;
	struct hash_key hash = hash_random_key();
	size_t slot_count = 64;
	int rc = 0;

	while (slot_count < count * 2)
		slot_count *= 2;
	slots = calloc(slot_count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t k = next_key(tree, object, object); k < end && rc == 0;
	        k = next_key(tree, object, k))
		if (!put(tree, &hash, slots, slot_count, k))
			rc = -EEXIST;
	free(slots);
	return rc;
}

int json_keys_differ(const struct json_tree *tree, uint32_t index)
{
	uint32_t end = json_at(tree, index)->next;
	size_t count = 0;

	for (uint32_t k = next_key(tree, index, index); k < end; k = next_key(tree, index, k)) {
		if (count < FEW && has_before(tree, index, k))
			return -EEXIST;
		count++;
	}
	return count <= FEW ? 0 : compare_many(tree, index, count);
}

bool json_number(struct slice text, double *out)
{
	char copy[NUMBER_TEXT_MAX + 1];
	size_t digits = 0, exponent = 0;
	bool significant = false, in_exponent = false;

	if (text.n > NUMBER_TEXT_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		in_exponent |= (c | 0x20) == 'e';
		significant |= c >= '1' && c <= '9';
		if (c >= '0' && c <= '9')
			*(in_exponent ? &exponent : &digits) += in_exponent || significant;
	}
	if (digits > NUMBER_DIGITS_MAX || exponent > 2)
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	*out = strtod(copy, NULL);
	return true;
}
