/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry exists from the first packet of its kind until a whole window has passed without
 * another. It is due at once when it is new, and then at the end of each window. A sandbox chooses
 * addresses and ports as it likes, so the table is bounded and hashed under its own key; packets
 * that do not fit are counted, but not by kind.
 */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/table.h"

#include "recorder/input/packets.h"

#define PREFIX "vethguard:"

struct packets_entry {
	struct packets_kind kind;
	UT_hash_handle hh;
};

void packets_init(struct packets *packets)
{
	memset(packets, 0, sizeof(*packets));
	packets->key = hash_random_key();
	packets->next_due_ms = INT64_MAX;
}

void packets_fini(struct packets *packets)
{
	struct packets_entry *entry, *next;

	HASH_ITER(hh, packets->table, entry, next)
	{
		HASH_DEL(packets->table, entry);
		free(entry);
	}
	free(packets->others);
	packets_init(packets);
}

static void fill_key(struct packets_key *key, const struct nflog_packet *packet)
{
	struct slice rule = packet->prefix;

	/* Hashed and compared as bytes: padding has to be zero. */
	memset(key, 0, sizeof(*key));
	key->src = packet->packet.src;
	key->dst = packet->packet.dst;
	key->ethertype = packet->packet.ethertype;
	key->port = packet->packet.dst_port;
	key->protocol = packet->packet.protocol;
	if (slice_starts_with(rule, SLICE(PREFIX)))
		rule = slice_of(rule.p + sizeof(PREFIX) - 1, rule.n - (sizeof(PREFIX) - 1));
	if (rule.n)
		memcpy(key->rule, rule.p,
		        rule.n < sizeof(key->rule) ? rule.n : sizeof(key->rule) - 1);
}

static struct packets_entry *entry_new(const struct packets_key *key, int64_t due_ms)
{
	struct packets_entry *entry = calloc(1, sizeof(*entry));

	if (entry) {
		entry->kind.key = *key;
		entry->kind.due_ms = due_ms;
	}
	return entry;
}

static const struct packets_key any = {.rule = "various"};

static struct packets_entry *overflow(struct packets *packets, int64_t now_ms)
{
	if (!packets->others)
		packets->others = entry_new(&any, now_ms + PACKETS_WINDOW_MS);
	return packets->others;
}

static struct packets_entry *find_or_add(
        struct packets *packets, const struct packets_key *key, int64_t now_ms)
{
	unsigned hash = (unsigned)hash_bytes(&packets->key, key, sizeof(*key));
	struct packets_entry *entry;

	HASH_FIND_BYHASHVALUE(hh, packets->table, key, sizeof(*key), hash, entry);
	if (entry)
		return entry;
	if (packets->count >= PACKETS_MAX)
		return overflow(packets, now_ms);
	entry = entry_new(key, now_ms);
	if (!entry)
		return NULL;
	HASH_ADD_KEYPTR_BYHASHVALUE(
	        hh, packets->table, &entry->kind.key, sizeof(entry->kind.key), hash, entry);
	if (!entry->hh.tbl) {
		free(entry);
		return NULL;
	}
	packets->count++;
	return entry;
}

int packets_add(
        struct packets *packets, const struct nflog_packet *packet, int64_t real_ms, int64_t now_ms)
{
	struct packets_key key;
	struct packets_entry *entry;

	fill_key(&key, packet);
	entry = find_or_add(packets, &key, now_ms);
	if (!entry)
		return -ENOMEM;
	if (entry->kind.count == 0) {
		entry->kind.first_ms = real_ms;
		entry->kind.src_port = packet->packet.src_port;
	}
	entry->kind.count++;
	entry->kind.bytes += packet->packet.length;
	entry->kind.last_ms = real_ms;
	if (entry->kind.due_ms < packets->next_due_ms)
		packets->next_due_ms = entry->kind.due_ms;
	return 0;
}

int packets_add_uncopied(struct packets *packets, uint64_t count, int64_t real_ms, int64_t now_ms)
{
	struct packets_entry *entry = overflow(packets, now_ms);

	if (!entry)
		return -ENOMEM;
	if (entry->kind.count == 0)
		entry->kind.first_ms = real_ms;
	entry->kind.count += count;
	entry->kind.last_ms = real_ms;
	if (entry->kind.due_ms < packets->next_due_ms)
		packets->next_due_ms = entry->kind.due_ms;
	return 0;
}

uint64_t packets_counted(const struct packets *packets)
{
	uint64_t count = packets->others ? packets->others->kind.count : 0;
	struct packets_entry *entry, *next;

	HASH_ITER(hh, packets->table, entry, next)
	{
		count += entry->kind.count;
	}
	return count;
}

static bool emit_entry(const struct packets_entry *entry,
        bool (*emit)(void *context, struct event *event), void *context)
{
	struct event event = {
	        .kind = EVENT_PACKET,
	        .decision = EVENT_DROPPED,
	        .time_ms = entry->kind.first_ms,
	        .last_ms = entry->kind.last_ms,
	        .count = entry->kind.count,
	        .bytes_out = entry->kind.bytes,
	        .src = entry->kind.key.src,
	        .dst = entry->kind.key.dst,
	        .src_port = entry->kind.src_port,
	        .dst_port = entry->kind.key.port,
	        .protocol = entry->kind.key.protocol,
	        .ethertype = entry->kind.key.ethertype,
	        .verdict_rule = slice_from_string(entry->kind.key.rule),
	};

	return emit(context, &event);
}

/* Records the entry if it has a count. Returns false if emit refused. *idle: a whole window passed
 * without a packet. */
static bool settle(struct packets_entry *entry, int64_t now_ms,
        bool (*emit)(void *context, struct event *event), void *context, bool *idle)
{
	*idle = entry->kind.count == 0;
	if (entry->kind.count && !emit_entry(entry, emit, context))
		return false;
	entry->kind.count = entry->kind.bytes = 0;
	entry->kind.due_ms = now_ms + PACKETS_WINDOW_MS;
	return true;
}

static bool collect_table(struct packets *packets, int64_t now_ms, bool all,
        bool (*emit)(void *context, struct event *event), void *context)
{
	struct packets_entry *entry, *next;
	bool idle;

	HASH_ITER(hh, packets->table, entry, next)
	{
		if (all || entry->kind.due_ms <= now_ms) {
			if (!settle(entry, now_ms, emit, context, &idle))
				return false;
			if (idle || all) {
				HASH_DEL(packets->table, entry);
				free(entry);
				packets->count--;
				continue;
			}
		}
		if (entry->kind.due_ms < packets->next_due_ms)
			packets->next_due_ms = entry->kind.due_ms;
	}
	return true;
}

static bool collect_others(struct packets *packets, int64_t now_ms, bool all,
        bool (*emit)(void *context, struct event *event), void *context)
{
	struct packets_entry *others = packets->others;
	bool idle;

	if (!others)
		return true;
	if (all || others->kind.due_ms <= now_ms) {
		if (!settle(others, now_ms, emit, context, &idle))
			return false;
		if (idle || all) {
			free(others);
			packets->others = NULL;
			return true;
		}
	}
	if (others->kind.due_ms < packets->next_due_ms)
		packets->next_due_ms = others->kind.due_ms;
	return true;
}

bool packets_collect(struct packets *packets, int64_t now_ms, bool all,
        bool (*emit)(void *context, struct event *event), void *context)
{
	if (!all && now_ms < packets->next_due_ms)
		return true;
	packets->next_due_ms = INT64_MAX;
	if (collect_table(packets, now_ms, all, emit, context) &&
	        collect_others(packets, now_ms, all, emit, context))
		return true;
	packets->next_due_ms = now_ms;
	return false;
}

size_t packets_save(const struct packets *packets, void *out, size_t max)
{
	const size_t bytes = sizeof(struct packets_kind);
	struct packets_entry *entry, *next;
	uint8_t *at = out;
	size_t n = 0;

	if (packets->others && n < max)
		memcpy(at + n++ * bytes, &packets->others->kind, bytes);
	HASH_ITER(hh, packets->table, entry, next)
	{
		if (n == max)
			break;
		memcpy(at + n++ * bytes, &entry->kind, bytes);
	}
	return n;
}

/* Bounds ms to a valid time of an event. */
static int64_t bounded(int64_t ms)
{
	return ms < 0 ? 0 : ms > EVENT_TIME_MAX_MS ? EVENT_TIME_MAX_MS : ms;
}

int packets_restore(struct packets *packets, const struct packets_kind *kind)
{
	struct packets_key key = kind->key;
	struct packets_entry *entry;

	key.rule[sizeof(key.rule) - 1] = '\0';
	entry = memcmp(&key, &any, sizeof(key)) == 0 ? overflow(packets, kind->due_ms)
	                                             : find_or_add(packets, &key, kind->due_ms);
	if (!entry)
		return -ENOMEM;
	key = entry->kind.key;
	entry->kind = *kind;
	entry->kind.key = key;
	entry->kind.first_ms = bounded(kind->first_ms);
	entry->kind.last_ms = bounded(kind->last_ms);
	if (kind->due_ms < packets->next_due_ms)
		packets->next_due_ms = kind->due_ms;
	return 0;
}
