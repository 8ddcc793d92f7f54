/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a DNS query, and every answer to what was understood. An answer fits 512 bytes,
 * carries the question as it was, and is not itself taken for a query.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const struct dns_query *q, enum dns_rcode rcode, const struct ip *address)
{
	uint8_t out[512];
	size_t n = dns_answer_build(q, rcode, address, 60, out, sizeof(out));
	struct dns_query again;

	if (n < 12 || dns_query_parse(out, n, &again) != -EBADMSG)
		abort();
	if (q->question.n && memcmp(out + 12, q->question.p, q->question.n) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum dns_rcode rcodes[] = {DNS_NOERROR, DNS_FORMERR, DNS_SERVFAIL,
	        DNS_NXDOMAIN, DNS_NOTIMP, DNS_REFUSED, DNS_BADVERS};
	const struct ip v4 = {.family = 4, .bytes = {10, 1, 2, 3}};
	const struct ip v6 = {.family = 6, .bytes = {0xfd, 1}};
	struct dns_query q;
	struct ip reverse;
	char text[16];
	int err = dns_query_parse(data, size, &q);

	if (q.name_n > 253 || q.name[q.name_n] != '\0')
		abort();
	dns_type_name(q.type, text);
	dns_reverse_name(slice_of(q.name, q.name_n), &reverse);
	if (err == -EBADMSG)
		return 0;
	for (size_t i = 0; i < sizeof(rcodes) / sizeof(rcodes[0]); i++) {
		check_answer(&q, rcodes[i], &v4);
		check_answer(&q, rcodes[i], &v6);
	}
	return 0;
}
