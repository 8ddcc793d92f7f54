/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that a worker in an attacker's hands may put into its ring. An event that decodes must
 * encode to the same bytes, and must become a line that is sealed and parses.
 */
#include <stdlib.h>

#include "recorder/ocsf/ocsf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct chain chain;
static struct ocsf_sandbox sandbox;
static struct buf out;

static void prepare(void)
{
	if (out.max)
		return;
	buf_init(&out, 4 * OCSF_LINE_MAX);
	if (chain_init(&chain) != 0 ||
	        ocsf_sandbox_init(&sandbox, 1, SLICE("fuzz"), SLICE("policy"), SLICE("00")) != 0)
		abort();
}

static void check_encoding(const struct event *event, const uint8_t *data, size_t size)
{
	static uint8_t again[EVENT_BYTES_MAX];
	size_t n = event_encode(event, again, sizeof(again));

	/* It differs only if all texts together are longer than an encoder would write: then
	 * it is shorter. */
	if (n == 0 || n > size || (n == size && memcmp(again, data, n) != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event event;
	struct seal seal;

	prepare();
	if (event_decode(data, size, &event) != 0)
		return 0;
	check_encoding(&event, data, size);
	out.len = 0;
	if (ocsf_append(&out, &chain, &sandbox, &event) != 0)
		abort();
	for (size_t i = 0; i + 1 < out.len; i++)
		if (buf_bytes(&out)[i] < 0x20)
			abort();
	if (out.len > OCSF_LINE_MAX ||
	        seal_parse(slice_of(buf_bytes(&out), out.len - 1), &seal) != 0)
		abort();
	return 0;
}
