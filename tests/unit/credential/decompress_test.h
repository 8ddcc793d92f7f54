/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of decompress share: a text, its coded form, and a run in steps of any size. */
#ifndef VETHGUARD_TESTS_UNIT_CREDENTIAL_DECOMPRESS_TEST_H
#define VETHGUARD_TESTS_UNIT_CREDENTIAL_DECOMPRESS_TEST_H

#include <errno.h>

#include "compress.h"

#define PLAIN 20000
static uint8_t plain[PLAIN], packed[2 * PLAIN];
static struct decompress_memory memory;

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < PLAIN; i++)
		plain[i] = (uint8_t)(rand() % 3 ? "etaoin "[rand() % 7] : rand());
	return 0;
}

/* Decompresses in steps of in_step bytes with out_limit. Returns the bytes made, or -errno. */
static ssize_t run(unsigned way, const uint8_t *p, size_t n, size_t in_step, size_t out_limit,
        bool *complete, uint8_t *result)
{
	struct decompress *u = decompress_new(compress_coding(way), &memory);
	struct buf out;
	ssize_t total = 0;
	size_t at = 0;
	int rc = 0;

	*complete = false;
	if (!u)
		return -ENOMEM;
	buf_init(&out, out_limit);
	while (rc == 0) {
		size_t step = n - at < in_step ? n - at : in_step, used;

		rc = decompress_feed(u, p + at, step, &used, &out, out_limit);
		assert_true(used <= step);
		assert_true(out.len <= out_limit);
		at += used;
		if (out.len == 0 && at == n && rc == 0)
			break;
		if (result && out.len)
			memcpy(result + total, buf_bytes(&out), out.len);
		total += (ssize_t)out.len;
		buf_consume(&out, out.len);
	}
	*complete = decompress_complete(u);
	if (rc < 0) { /* for good */
		size_t used;

		assert_false(*complete);
		assert_int_equal(decompress_feed(u, p, n, &used, &out, out_limit), rc);
		assert_int_equal(used, 0);
	}
	decompress_free(u);
	buf_fini(&out);
	return rc < 0 ? rc : total;
}

#endif
