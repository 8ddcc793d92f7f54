/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the head of a request to the gateway, and as a proof. Beyond memory safety: how the
 * bytes are cut does not matter; what is accepted lies within what came, and what goes on is a head
 * itself, without a proof, with at most one field more.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/proxy_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static bool lies_in(struct slice s, const uint8_t *data, size_t n)
{
	return !s.n || ((const uint8_t *)s.p >= data && (const uint8_t *)s.p + s.n <= data + n);
}

static void check_onward(const uint8_t *data, const struct proxy_head *head)
{
	struct proxy_head again;
	enum proxy_head_status status;
	size_t looked = 0;
	struct buf out;

	buf_init(&out, 2 * PROXY_HEAD_MAX);
	require(proxy_head_write(data, head, &out) == 0);
	status = proxy_head_parse(buf_bytes(&out), out.len, &looked, &again);
	/* One field more may be one too many. */
	require(status == PROXY_HEAD_DONE || (status == PROXY_HEAD_BAD && again.status == 431));
	require(status == PROXY_HEAD_BAD || (again.used == out.len && !again.authorization.n));
	require(status == PROXY_HEAD_BAD || (slice_equals(again.method, head->method) &&
	                                            slice_equals(again.target, head->target)));
	buf_fini(&out);
}

static void check_proof(struct slice text)
{
	struct proxy_proof proof;
	bool is = proxy_proof_read(text, &proof);

	require(is == (proof.n > 0) && proof.n <= sizeof(proof.text));
	for (size_t i = 0; is && i < proof.n; i++)
		require(proof.text[i] > 0x20 && proof.text[i] < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proxy_head head, shorter;
	size_t looked = 0, half = 0;
	enum proxy_head_status before = proxy_head_parse(data, size / 2, &half, &shorter);
	enum proxy_head_status after = proxy_head_parse(data, size, &half, &shorter);
	enum proxy_head_status status = proxy_head_parse(data, size, &looked, &head);

	require(before == PROXY_HEAD_MORE || before == status);
	require(before != PROXY_HEAD_MORE || after == status);
	require(head.used <= size && head.used <= PROXY_HEAD_MAX);
	require((status == PROXY_HEAD_DONE) == (head.used != 0));
	require((status == PROXY_HEAD_BAD) == (head.status != 0 && *head.why != 0));
	require(status != PROXY_HEAD_MORE || size < PROXY_HEAD_MAX);
	require(lies_in(head.method, data, head.used) && lies_in(head.target, data, head.used) &&
	        lies_in(head.authorization, data, head.used));
	if (status == PROXY_HEAD_DONE)
		check_onward(data, &head);
	check_proof(head.authorization);
	check_proof(slice_of(data, size));
	return 0;
}
