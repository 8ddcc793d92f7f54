/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/rewrite/tool_memory.h"

#include <stdlib.h>
#include <string.h>

#include "vethguard/base/buf.h"
#include "vethguard/tls/digest.h"
#include "vethguard/wire/message.h"

#define DIGESTS_MAX (8u << 20) /* bytes of digests of siblings, at all depths down to one value */

/* --- digests --- */

static bool digest(const struct slice *parts, size_t count, uint8_t out[DIGEST_SHA256_BYTES])
{
	return digest_once(true, parts, count, out) == 0;
}

static int compare_digests(const void *a, const void *b)
{
	return memcmp(a, b, DIGEST_SHA256_BYTES);
}

static bool digest_value(const struct json_tree *tree, uint32_t index, struct buf *stack,
        uint8_t out[DIGEST_SHA256_BYTES]);

/* Appends the digest of a member, or of an element (key NULL). */
static bool push(const struct json_tree *tree, const struct json_value *key, uint32_t value,
        struct buf *stack)
{
	uint8_t of_value[DIGEST_SHA256_BYTES], both[DIGEST_SHA256_BYTES];
	struct slice parts[2] = {slice_of(of_value, sizeof(of_value)), SLICE("")};

	if (!digest_value(tree, value, stack, of_value))
		return false;
	if (key)
		parts[1] = json_text(tree, key);
	return digest(parts, 2, both) && buf_append(stack, both, sizeof(both)) == 0;
}

/* Makes the digest of an object from its members' digests, sorted; that of an array from its
 * elements' digests, in the array's order. json_read() bounds how deep this goes. */
static bool digest_all(const struct json_tree *tree, uint32_t index, struct buf *stack,
        uint8_t out[DIGEST_SHA256_BYTES])
{
	const struct json_value *v = json_at(tree, index);
	const bool object = v->kind == JSON_IS_OBJECT;
	const size_t before = stack->len;
	struct slice parts[2] = {object ? SLICE("{") : SLICE("["), SLICE("")};
	bool good = true;

	for (uint32_t i = index + 1; good && i < v->next;
	        i = json_at(tree, object ? i + 1 : i)->next)
		good = push(tree, object ? json_at(tree, i) : NULL, object ? i + 1 : i, stack);
	if (!good)
		return false;
	if (object && stack->len > before)
		qsort(buf_bytes(stack) + before, (stack->len - before) / DIGEST_SHA256_BYTES,
		        DIGEST_SHA256_BYTES, compare_digests);
	if (stack->len > before)
		parts[1] = slice_of(buf_bytes(stack) + before, stack->len - before);
	good = digest(parts, 2, out);
	stack->len = before;
	return good;
}

static bool digest_value(const struct json_tree *tree, uint32_t index, struct buf *stack,
        uint8_t out[DIGEST_SHA256_BYTES])
{
	const struct json_value *v = json_at(tree, index);
	const uint8_t kind = v->kind;
	const struct slice parts[2] = {slice_of(&kind, 1),
	        v->kind == JSON_IS_STRING || v->kind == JSON_IS_NUMBER ? json_text(tree, v)
	                                                               : SLICE("")};

	if (v->kind == JSON_IS_OBJECT || v->kind == JSON_IS_ARRAY)
		return digest_all(tree, index, stack, out);
	return digest(parts, 2, out);
}

bool tool_digest_of(
        const struct json_tree *tree, const struct json_value *said, struct tool_digest *out)
{
	uint8_t whole[DIGEST_SHA256_BYTES];
	struct buf stack;
	bool good;

	buf_init(&stack, DIGESTS_MAX);
	good = digest_value(tree, (uint32_t)(said - tree->values), &stack, whole);
	buf_fini(&stack);
	if (good)
		memcpy(out->bytes, whole, sizeof(out->bytes));
	return good;
}

bool tool_digest_of_texts(const struct slice *texts, size_t count, struct tool_digest *out)
{
	uint8_t one[8][DIGEST_SHA256_BYTES], whole[DIGEST_SHA256_BYTES];
	struct slice all = slice_of(one, count * DIGEST_SHA256_BYTES);

	if (count > sizeof(one) / sizeof(one[0]))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!digest(&texts[i], 1, one[i]))
			return false;
	if (!digest(&all, 1, whole))
		return false;
	memcpy(out->bytes, whole, sizeof(out->bytes));
	return true;
}

/* --- the table --- */

static bool is_same(const struct tool_digest *a, const struct tool_digest *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static struct slice as_name(const struct tool_entry *entry)
{
	_Static_assert(sizeof(struct tool_entry) <= SHARED_NAME_MAX, "an entry fits a name");

	return slice_of(entry, sizeof(*entry));
}

static bool read_entry(const struct tool_memory *m, uint32_t index, struct tool_entry *out)
{
	char bytes[SHARED_NAME_MAX];
	int64_t asked_ms;

	if (shared_names_get(m->shared, index, bytes, &asked_ms) != sizeof(*out))
		return false;
	memcpy(out, bytes, sizeof(*out));
	return true;
}

static struct tool_entry *add(struct tool_memory *m)
{
	struct tool_entry *more;

	if (m->count == m->room) {
		uint32_t room = m->room ? m->room * 2 : 16;

		more = realloc(m->entries, room * sizeof(*more));
		if (!more)
			return NULL;
		m->entries = more;
		m->room = room;
	}
	memset(&m->entries[m->count], 0, sizeof(*m->entries));
	return &m->entries[m->count++];
}

/* Reads what other workers of the sandbox have added. An entry that is being written stays
 * empty here: this worker does not know its tool. */
static void catch_up(struct tool_memory *m)
{
	struct tool_entry *entry;

	while (m->shared && m->count < shared_names_count(m->shared) && (entry = add(m)))
		if (!read_entry(m, m->count - 1, entry))
			memset(entry, 0, sizeof(*entry));
}

static struct tool_entry *find(struct tool_memory *m, const struct tool_digest *key)
{
	catch_up(m);
	for (uint32_t i = 0; i < m->count; i++)
		if (is_same(&m->entries[i].key, key))
			return &m->entries[i];
	return NULL;
}

static void store(struct tool_memory *m, const struct tool_entry *entry)
{
	if (m->shared)
		shared_names_put(m->shared, (uint32_t)(entry - m->entries), as_name(entry), 0);
}

static bool is_known(const struct tool_entry *entry)
{
	static const struct tool_digest nothing;

	return !is_same(&entry->known, &nothing);
}

/* Makes the description the known one, or only notes it. */
static void note(
        struct tool_memory *m, struct tool_entry *entry, const struct tool_digest *said, bool known)
{
	if (known)
		entry->known = *said;
	entry->told = *said;
	store(m, entry);
}

/* Adds a tool of which this is the first description. */
static enum tool_news remember(struct tool_memory *m, const struct tool_digest *key,
        const struct tool_digest *said, enum tool_use use)
{
	struct tool_entry *entry;
	uint32_t index = m->count;

	if (m->shared ? shared_names_claim(m->shared, &index) != 0 : index == MESSAGE_TOOLS_MAX)
		return TOOL_NO_ROOM;
	catch_up(m);
	entry = m->shared ? index < m->count ? &m->entries[index] : NULL : add(m);
	if (!entry)
		return TOOL_NO_ROOM;
	*entry = (struct tool_entry){.key = *key};
	note(m, entry, said, use != TOOL_REFUSE);
	return TOOL_FIRST;
}

enum tool_news tool_memory_look(struct tool_memory *m, const struct tool_digest *key,
        const struct tool_digest *said, enum tool_use use)
{
	struct tool_entry *entry = find(m, key);

	if (!entry)
		return remember(m, key, said, use);
	if (is_same(&entry->known, said))
		return TOOL_SAME;
	/* Another worker may have been told meanwhile. */
	if (m->shared)
		read_entry(m, (uint32_t)(entry - m->entries), entry);
	if (is_same(&entry->known, said))
		return TOOL_SAME;
	if (use == TOOL_KEEP && !is_known(entry)) {
		note(m, entry, said, true);
		return TOOL_FIRST;
	}
	if (use != TOOL_ACCEPT && is_same(&entry->told, said))
		return TOOL_OTHER;
	note(m, entry, said, use == TOOL_ACCEPT);
	return TOOL_CHANGED;
}

void tool_memory_init(struct tool_memory *m, struct shared_names *shared)
{
	*m = (struct tool_memory){.shared = shared};
}

void tool_memory_fini(struct tool_memory *m)
{
	free(m->entries);
	*m = (struct tool_memory){.entries = NULL};
}
