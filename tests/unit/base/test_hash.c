/* SPDX-License-Identifier: Apache-2.0 */
/* hash: SipHash-1-3 against values from CPython 3.11, which hashes bytes with it under
 * PYTHONHASHSEED. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/base/hash.h"

/* PYTHONHASHSEED=0 is the zero key; 42 the key below. The input is the bytes 1, 2, 3, ... n. */
static const struct {
	size_t n;
	uint64_t zero_key, key_42;
} vectors[] = {
        {1, 0x44bc103b1f8540ed, 0x89404b342d44cd29},
        {7, 0xb1cd85cc334196fa, 0xafa4a69898709019},
        {8, 0x884ccc87cb0e5fb0, 0xcd17174de003c80e},
        {9, 0x027ed508fe95acb3, 0x86b30533f96d57c3},
        {15, 0x75e46d4257851550, 0x322e33b210d93874},
        {16, 0xe05d12a0a4b2d063, 0x4d9edba2b0c17d07},
        {17, 0x85e152444239b234, 0xed9aebb09978c08f},
        {63, 0x6bafe9f92616651b, 0x048287785366e54f},
        {64, 0xad77f22a2b89d9c7, 0x7076751f6a0c2261},
};

static void agrees_with_cpython(void **state)
{
	const struct hash_key zero = {0, 0};
	const struct hash_key key_42 = {0xdc504fd368cd90af, 0xb920bb9ffe99e9c1};
	uint8_t input[64];

	(void)state;
	for (size_t i = 0; i < sizeof(input); i++)
		input[i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		assert_true(hash_bytes(&zero, input, vectors[i].n) == vectors[i].zero_key);
		assert_true(hash_bytes(&key_42, input, vectors[i].n) == vectors[i].key_42);
	}
}

static void tells_lengths_and_keys_apart(void **state)
{
	const struct hash_key key = hash_random_key();
	const struct hash_key other = hash_random_key();
	const uint8_t zeros[20] = {0};

	(void)state;
	assert_true(key.k0 != other.k0 || key.k1 != other.k1);
	for (size_t i = 0; i < sizeof(zeros); i++)
		assert_true(hash_bytes(&key, zeros, i) != hash_bytes(&key, zeros, i + 1));
	assert_true(hash_bytes(&key, "name", 4) != hash_bytes(&other, "name", 4));
	assert_true(hash_bytes(&key, NULL, 0) == hash_bytes(&key, "x", 0));
}

static void random_fills_all(void **state)
{
	uint8_t bytes[1000];
	size_t counts[256] = {0};

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	random_bytes(bytes + 1, sizeof(bytes) - 2);
	assert_int_equal(bytes[0] | bytes[999], 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		counts[bytes[i]]++;
	for (size_t i = 0; i < 256; i++)
		assert_true(counts[i] < 100);
	random_bytes(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(agrees_with_cpython),
	        cmocka_unit_test(tells_lengths_and_keys_apart),
	        cmocka_unit_test(random_fills_all),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
