/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refused destinations are counted in a table of fixed size. When it is full, a new one replaces
 * the rarest and starts at its count, which is kept as its possible error ("space saving", Metwally
 * and others, 2005): a destination that is refused often always rises, however many others a
 * sandbox makes up. The report has the count without the possible error, a lower bound.
 */
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/table.h"
#include "vethguard/wire/packet.h"

#include "recorder/ocsf/parts.h"
#include "recorder/input/packets.h"
#include "recorder/output/summary.h"

struct summary_destination {
	char text[SUMMARY_TEXT_MAX];
	size_t n;
	uint64_t count, error;
	UT_hash_handle hh;
};

void summary_init(struct summary *summary)
{
	memset(summary, 0, sizeof(*summary));
	summary->key = hash_random_key();
}

void summary_fini(struct summary *summary)
{
	struct summary_destination *entry, *next;

	HASH_ITER(hh, summary->table, entry, next)
	{
		HASH_DEL(summary->table, entry);
		free(entry);
	}
	summary->count = 0;
}

static size_t put(char *out, size_t n, struct slice text)
{
	size_t take = text.n < SUMMARY_TEXT_MAX - n ? text.n : SUMMARY_TEXT_MAX - n;

	if (take)
		memcpy(out + n, text.p, take);
	return n + take;
}

static size_t put_address(char *out, size_t n, const struct ip *ip, uint16_t port)
{
	char text[IP_TEXT_MAX], shown[IP_TEXT_MAX + 9];

	if (!ip->family)
		return n;
	ip_format(ip, text);
	snprintf(shown, sizeof(shown), ip->family == 6 ? "[%s]" : "%s", text);
	n = put(out, n, slice_from_string(shown));
	if (port) {
		snprintf(shown, sizeof(shown), ":%u", port);
		n = put(out, n, slice_from_string(shown));
	}
	return n;
}

/* Describes the refused destination without what varies from attempt to attempt: "POST
 * https://paste.example", "udp 192.0.2.1:53". */
static size_t describe(const struct event *e, char out[SUMMARY_TEXT_MAX])
{
	bool icmp = e->protocol == IPPROTO_ICMP || e->protocol == IPPROTO_ICMPV6;
	char text[24];
	size_t n = 0;

	if (e->kind == EVENT_INBOUND) {
		n = put(out, n, SLICE("from "));
		n = e->src.family ? put_address(out, n, &e->src, 0) : put(out, n, e->user);
		snprintf(text, sizeof(text), " to port %u", e->upstream_port);
		return put(out, n, slice_from_string(text));
	}
	if (e->kind == EVENT_HTTP) {
		n = put(out, n, e->method.n ? e->method : SLICE("request"));
		n = put(out, n, SLICE(" "));
		n = put(out, n, e->scheme);
		n = put(out, n, e->scheme.n ? SLICE("://") : SLICE(""));
	} else if (e->kind == EVENT_DNS) {
		n = put(out, n, SLICE("DNS "));
		return put(out, n, e->host.n ? e->host : SLICE("."));
	} else if (e->protocol || e->dst.family) {
		n = put(out, n, slice_from_string(packet_protocol_name(e->protocol, text)));
		n = put(out, n, SLICE(" "));
	} else if (!e->ethertype) {
		return put(out, n, SLICE(PACKETS_OTHERS));
	} else {
		snprintf(text, sizeof(text), "frame 0x%04x", e->ethertype);
		n = put(out, n, slice_from_string(text));
	}
	if (e->host.n)
		return put(out, n, e->host);
	return put_address(out, n, &e->dst, icmp ? 0 : e->dst_port);
}

static struct summary_destination *rarest(const struct summary *summary)
{
	struct summary_destination *entry, *next, *found = NULL;

	HASH_ITER(hh, summary->table, entry, next)
	{
		if (!found || entry->count < found->count)
			found = entry;
	}
	return found;
}

static struct summary_destination *make_place(struct summary *summary)
{
	struct summary_destination *entry;

	if (summary->count < SUMMARY_DESTINATIONS_MAX) {
		entry = calloc(1, sizeof(*entry));
		if (entry)
			summary->count++;
		return entry;
	}
	entry = rarest(summary);
	HASH_DEL(summary->table, entry);
	entry->error = entry->count;
	return entry;
}

/* Returns the entry of a text: SUMMARY_TEXT_MAX bytes, of which n count. NULL: no memory. */
static struct summary_destination *find_or_add(
        struct summary *summary, const char text[SUMMARY_TEXT_MAX], size_t n)
{
	unsigned hash = (unsigned)hash_bytes(&summary->key, text, n);
	struct summary_destination *entry;

	HASH_FIND_BYHASHVALUE(hh, summary->table, text, n, hash, entry);
	if (entry)
		return entry;
	entry = make_place(summary);
	if (!entry)
		return NULL;
	memcpy(entry->text, text, SUMMARY_TEXT_MAX);
	entry->n = n;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, summary->table, entry->text, n, hash, entry);
	if (entry->hh.tbl)
		return entry;
	summary->count--;
	free(entry);
	return NULL;
}

static void count_destination(struct summary *summary, const struct event *event, uint64_t times)
{
	char text[SUMMARY_TEXT_MAX] = {0};
	size_t n = describe(event, text);
	struct summary_destination *entry = find_or_add(summary, text, n);

	if (entry)
		entry->count += times;
}

void summary_count(struct summary *summary, const struct event *event)
{
	uint64_t times = event->kind == EVENT_PACKET ? event->count : 1;

	summary->lines++;
	if (event->kind == EVENT_FINDING)
		summary->findings++;
	if (event->kind == EVENT_FINDING || event->kind == EVENT_LIFECYCLE ||
	        event->kind == EVENT_API)
		return;
	if (event_is_failure(event)) {
		summary->failed += times;
		return;
	}
	switch (event->decision) {
	case EVENT_ALLOWED:
		summary->allowed += times;
		return;
	case EVENT_OBSERVED:
		summary->observed += times;
		return;
	case EVENT_DENIED:
		summary->denied += times;
		break;
	default:
		summary->dropped += times;
	}
	/* The client means the allowed name, which it asks for next. */
	if (event->cause != EVENT_CAUSE_SEARCH_LIST)
		count_destination(summary, event, times);
}

static uint64_t surely(const struct summary_destination *entry)
{
	return entry->count - entry->error;
}

/* Inserts the entry into the best so far. */
static size_t rank(
        const struct summary_destination *best[], size_t n, const struct summary_destination *entry)
{
	size_t i = n < MESSAGE_UNUSUAL_MAX ? n : MESSAGE_UNUSUAL_MAX;

	for (; i > 0 && surely(entry) > surely(best[i - 1]); i--)
		if (i < MESSAGE_UNUSUAL_MAX)
			best[i] = best[i - 1];
	if (i < MESSAGE_UNUSUAL_MAX)
		best[i] = entry;
	return n < MESSAGE_UNUSUAL_MAX ? n + 1 : n;
}

void summary_report(const struct summary *summary, struct message_summary *out,
        char texts[MESSAGE_UNUSUAL_MAX][SUMMARY_SHOWN_MAX])
{
	const struct summary_destination *best[MESSAGE_UNUSUAL_MAX];
	struct summary_destination *entry, *next;
	size_t n = 0;

	memset(out, 0, sizeof(*out));
	out->allowed = summary->allowed;
	out->denied = summary->denied;
	out->failed = summary->failed;
	out->observed = summary->observed;
	out->dropped = summary->dropped;
	out->findings = summary->findings;
	out->lines = summary->lines;
	HASH_ITER(hh, summary->table, entry, next)
	{
		n = rank(best, n, entry);
	}
	for (size_t i = 0; i < n; i++) {
		slice_escape(slice_of(best[i]->text, best[i]->n), texts[i], SUMMARY_SHOWN_MAX);
		out->unusual[i].what = slice_from_string(texts[i]);
		out->unusual[i].count = surely(best[i]);
	}
	out->unusual_count = n;
}

size_t summary_save(const struct summary *summary, void *out, size_t max)
{
	struct summary_destination *entry, *next;
	uint8_t *at = out;

	if (summary->count > max)
		return 0;
	HASH_ITER(hh, summary->table, entry, next)
	{
		struct summary_kept kept = {
		        .n = (uint32_t)entry->n, .count = entry->count, .error = entry->error};

		memcpy(kept.text, entry->text, sizeof(kept.text));
		memcpy(at, &kept, sizeof(kept));
		at += sizeof(kept);
	}
	return summary->count;
}

void summary_restore(struct summary *summary, const struct summary_kept *kept)
{
	struct summary_destination *entry;

	if (kept->n > SUMMARY_TEXT_MAX || kept->error > kept->count)
		return;
	entry = find_or_add(summary, kept->text, kept->n);
	if (!entry || kept->count > UINT64_MAX - entry->count)
		return;
	entry->count += kept->count;
	entry->error += kept->error;
}
