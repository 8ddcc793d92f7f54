/* SPDX-License-Identifier: Apache-2.0 */
/* unreachable: the bytes of both messages, their checksums, and lengths beyond a datagram's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "udp.h"

static const struct endpoint client4 = {{4, {10, 77, 0, 2}}, 40000},
                             server4 = {{4, {192, 0, 2, 7}}, 443},
                             client6 = {{6, {0xfd, 1, [15] = 2}}, 40000},
                             server6 = {{6, {0x20, 1, 0xd, 0xb8, [15] = 7}}, 443};

/* The sum over bytes that hold their own checksum is 0xffff (RFC 1071 section 1). */
static uint32_t sum_of(const uint8_t *p, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void test_ipv4(void **state)
{
	uint8_t out[UNREACHABLE_MAX];
	const size_t n = unreachable_write(&client4, &server4, 5, out);

	(void)state;
	assert_int_equal(n, 8 + 20 + 8);
	assert_memory_equal(out, "\3\15", 2);
	assert_memory_equal(out + 4, "\0\0\0\0", 4);
	assert_int_equal(sum_of(out, n), 0xffff);
	assert_int_equal(sum_of(out + 8, 20), 0xffff);
	assert_memory_equal(out + 8, "\x45\0\0\x21", 4); /* 33 bytes */
	assert_memory_equal(out + 16, "\x40\x11", 2);
	assert_memory_equal(out + 20, "\x0a\x4d\0\2\xc0\0\2\7", 8);
	assert_memory_equal(out + 28, "\x9c\x40\1\xbb\0\x0d\0\0", 8);
}

static void test_ipv6(void **state)
{
	uint8_t out[UNREACHABLE_MAX];
	const size_t n = unreachable_write(&client6, &server6, 5, out);

	(void)state;
	assert_int_equal(n, UNREACHABLE_MAX);
	assert_memory_equal(out, "\1\1\0\0\0\0\0\0", 8);
	assert_memory_equal(out + 8, "\x60\0\0\0\0\x0d\x11\x40", 8);
	assert_memory_equal(out + 16, client6.address.bytes, 16);
	assert_memory_equal(out + 32, server6.address.bytes, 16);
	assert_memory_equal(out + 48, "\x9c\x40\1\xbb\0\x0d\0\0", 8);
}

static void test_lengths(void **state)
{
	static const size_t sizes[] = {0, 1, 1472, 65507, 65527, 65528, 65535, SIZE_MAX / 2};
	uint8_t out[UNREACHABLE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const size_t n = unreachable_write(&client4, &server4, sizes[i], out),
		             udp = sizes[i] > 65527 ? 65535 : sizes[i] + 8;

		assert_int_equal(n, 36);
		assert_int_equal(out[32] << 8 | out[33], udp);
		assert_int_equal(sum_of(out, n), 0xffff);
		assert_int_equal(sum_of(out + 8, 20), 0xffff);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_ipv4),
	        cmocka_unit_test(test_ipv6),
	        cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
