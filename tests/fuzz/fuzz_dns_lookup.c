/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a name server's reply. The first byte says how: type A or AAAA, plain or mixed, the
 * bytes as they are or behind a right head and question; an odd size, that it came over TCP, where
 * it may be longer. What counts of a reply must hang together, and a reply to another question must
 * not count.
 */
#include <stdlib.h>

#include "vethguard/wire/dns_lookup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t mix[DNS_LOOKUP_MIX] = {0xa5, 0x5a};

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check(
        enum dns_lookup_reply reply, const struct dns_lookup *lookup, const struct dns_found *found)
{
	require(found->count <= DNS_LOOKUP_ADDRESSES);
	require(reply == DNS_LOOKUP_ANSWER || found->count == 0);
	require(found->count == 0 || (found->rcode == DNS_NOERROR && !found->truncated));
	require(found->count == 0 || found->ttl_s <= INT32_MAX);
	require(reply != DNS_LOOKUP_ASK_PLAIN || !lookup->plain);
	for (size_t i = 0; i < found->count; i++)
		require(found->addresses[i].family == (lookup->type == DNS_A ? 4 : 6));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_lookup lookup, other;
	struct dns_found found;
	uint8_t *reply;
	size_t head;
	uint16_t type;
	bool plain;

	if (size < 1)
		return 0;
	type = data[0] & 1 ? DNS_AAAA : DNS_A;
	plain = data[0] & 2;
	require(dns_lookup_write(
	        &lookup, SLICE("www.host.test"), type, 0x4142, plain ? NULL : mix));
	require(dns_lookup_write(&other, SLICE("www.host.tesu"), type, 0x4142, plain ? NULL : mix));
	if (size & 1)
		lookup.reply_max = other.reply_max = DNS_LOOKUP_STREAM_MAX;
	head = data[0] & 4 ? 0 : 12 + lookup.question_n;
	reply = malloc(head + size - 1 + 1);
	require(reply != NULL);
	memcpy(reply, lookup.bytes, head);
	memcpy(reply + head, data + 1, size - 1);
	if (head) { /* a response, with the count of answers that the first byte says */
		reply[2] = 0x81;
		reply[3] = 0x80;
		reply[7] = data[0] >> 3;
		reply[11] = 0;
	}
	check(dns_lookup_read(&lookup, reply, head + size - 1, &found), &lookup, &found);
	if (head)
		require(dns_lookup_read(&other, reply, head + size - 1, &found) ==
		        DNS_LOOKUP_STRANGE);
	free(reply);
	return 0;
}
