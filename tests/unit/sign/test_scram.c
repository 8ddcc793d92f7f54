/* SPDX-License-Identifier: Apache-2.0 */
/* SCRAM-SHA-256: the example of RFC 7677 section 3, portions of the key, and wrong answers
 * of servers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "hmac_fixture.h"
#include "vethguard/sign/scram.h"

#define EXPECTED_PROOF "wgLg0iPVTpACWjrIlJtVKu4BjsbK4knzdsSn88toerI="
#define EXPECTED_SIGNATURE "DrDPuYqa2Vk1xxB1lVO1Nz9Kb/HSttQkUqrqqVgdja0="

static struct scram s;

static int begin(void **state)
{
	(void)state;
	return scram_begin(&s, SCRAM_NOT_OFFERED, SLICE(""));
}

static int end(void **state)
{
	(void)state;
	scram_end(&s);
	return 0;
}

/* The server's first message for this nonce of ours. */
static const char *challenge(const char *rest)
{
	static char text[2 * SCRAM_SERVER_MAX];

	snprintf(text, sizeof(text), "r=%.*s%s", SCRAM_NONCE, s.nonce, rest);
	return scram_challenge(&s, slice_from_string(text));
}

/* The salted password of RFC 7677's example, in portions of any size. */
static void test_the_key_of_the_rfc(void **state)
{
	static const uint8_t salted[] = {0xc4, 0xa4, 0x95, 0x10, 0x32, 0x3a, 0xb4, 0xf9, 0x52, 0xca,
	        0xc1, 0xfa, 0x99, 0x44, 0x19, 0x39, 0xe7, 0x8e, 0xa7, 0x4d, 0x6b, 0xe8, 0x1d, 0xdf,
	        0x70, 0x96, 0xe8, 0x75, 0x13, 0xdc, 0x61, 0x5d};

	(void)state;
	for (uint32_t portion = 1; portion < 5000; portion = portion * 7 + 1) {
		unsigned calls = 0;
		int rc;

		assert_int_equal(begin(NULL), 0);
		assert_null(challenge("x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"));
		do
			rc = scram_derive(&s, &hmac, SLICE("pencil"), portion);
		while (rc == 0 && ++calls < 5000);
		assert_int_equal(rc, 1);
		assert_memory_equal(s.secret.p + HMAC_BYTES, salted, sizeof(salted));
		assert_int_equal(scram_derive(&s, &hmac, SLICE("pencil"), portion), 1);
		scram_end(&s);
	}
}

/* Proof and signature for fixed nonces, computed independently (Python's hashlib). */
static void test_a_whole_exchange(void **state)
{
	char out[SCRAM_FINAL_MAX];
	int n;

	(void)state;
	memcpy(s.nonce, "fyko+d2lbbFgONRv9qkxdawL", SCRAM_NONCE);
	assert_int_equal(scram_first(&s, out), strlen("y,,n=,r=") + SCRAM_NONCE);
	assert_memory_equal(out, "y,,n=,r=fyko+d2lbbFgONRv9qkxdawL", 32);
	assert_null(challenge("3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"));
	assert_int_equal(scram_derive(&s, &hmac, SLICE("pencil"), 4096), 1);
	n = scram_finish(&s, &hmac, out);
	assert_true(n > 0);
	assert_true(slice_starts_with(slice_of(out, (size_t)n),
	        SLICE("c=eSws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=")));
	assert_true(slice_ends_with(slice_of(out, (size_t)n), SLICE(EXPECTED_PROOF)));
	assert_null(scram_verify(&s, SLICE("v=" EXPECTED_SIGNATURE)));
	assert_null(scram_verify(&s, SLICE("v=" EXPECTED_SIGNATURE ",ext=x")));
	assert_non_null(scram_verify(&s, SLICE("v=" EXPECTED_PROOF)));
	assert_non_null(scram_verify(&s, SLICE("e=other-error")));
	assert_non_null(scram_verify(&s, SLICE("v=" EXPECTED_SIGNATURE "=")));
	assert_non_null(scram_verify(&s, SLICE("v=")));
	assert_non_null(scram_verify(&s, SLICE("")));
}

static void test_binding(void **state)
{
	uint8_t hash[SCRAM_BINDING_MAX + 1];
	char out[SCRAM_FINAL_MAX];
	int n;

	(void)state;
	scram_end(&s);
	memset(hash, 'h', sizeof(hash));
	assert_int_equal(scram_begin(&s, SCRAM_BOUND, slice_of(hash, sizeof(hash))), -EINVAL);
	assert_int_equal(scram_begin(&s, SCRAM_BOUND, slice_of(hash, 3)), 0);
	n = (int)scram_first(&s, out);
	assert_true(slice_starts_with(
	        slice_of(out, (size_t)n), SLICE("p=tls-server-end-point,,n=,r=")));
	assert_null(challenge("x,s=QSXCR+Q6sek8bf92,i=4096"));
	assert_int_equal(scram_derive(&s, &hmac, SLICE("pencil"), 4096), 1);
	n = scram_finish(&s, &hmac, out);
	assert_true(slice_starts_with(
	        slice_of(out, (size_t)n), SLICE("c=cD10bHMtc2VydmVyLWVuZC1wb2ludCwsaGho,r=")));
}

static void test_servers_that_are_wrong(void **state)
{
	static const char *const rests[] = {"", ",s=QSXCR+Q6sek8bf92,i=4096",
	        "x,s=QSXCR+Q6sek8bf92,i=4095", "x,s=QSXCR+Q6sek8bf92,i=1000001",
	        "x,s=QSXCR+Q6sek8bf92,i=99999999999", "x,s=QSXCR+Q6sek8bf92,i=-1",
	        "x,s=QSXCR+Q6sek8bf92,i=", "x,s=QSXCR+Q6sek8bf92", "x,s=,i=4096", "x,s=Q*,i=4096",
	        "x,i=4096,s=QSXCR+Q6sek8bf92", "x,s=QSXCR+Q6sek8bf92,i=4096x",
	        "\x01,s=QSXCR+Q6sek8bf92,i=4096", "\x80,s=QSXCR+Q6sek8bf92,i=4096",
	        " ,s=QSXCR+Q6sek8bf92,i=4096"};
	char salt[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++)
		assert_non_null(challenge(rests[i]));
	assert_non_null(scram_challenge(&s, SLICE("")));
	assert_non_null(scram_challenge(&s, SLICE("m=x,r=y,s=QSXC,i=4096")));
	assert_non_null(scram_challenge(&s, SLICE("r=another,s=QSXC,i=4096")));
	snprintf(salt, sizeof(salt), "x,s=%0*d,i=4096", (SCRAM_SALT_MAX + 2) / 3 * 4 + 4, 0);
	assert_non_null(challenge(salt));
	assert_null(challenge("x,s=QSXCR+Q6sek8bf92,i=1000000"));
	assert_null(challenge("x,s=QSXCR+Q6sek8bf92,i=4096,ext=1"));
}

static void test_a_message_that_is_too_long(void **state)
{
	char text[SCRAM_SERVER_MAX + 2];
	int n = snprintf(text, sizeof(text), "r=%.*s", SCRAM_NONCE, s.nonce);

	(void)state;
	memset(text + n, 'x', sizeof(text) - (size_t)n);
	memcpy(text + SCRAM_SERVER_MAX - 14, ",s=QSXC,i=4096", 14);
	assert_non_null(scram_challenge(&s, slice_of(text, SCRAM_SERVER_MAX + 1)));
	assert_null(scram_challenge(&s, slice_of(text, SCRAM_SERVER_MAX)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_the_key_of_the_rfc),
	        cmocka_unit_test_setup_teardown(test_a_whole_exchange, begin, end),
	        cmocka_unit_test_setup_teardown(test_binding, begin, end),
	        cmocka_unit_test_setup_teardown(test_servers_that_are_wrong, begin, end),
	        cmocka_unit_test_setup_teardown(test_a_message_that_is_too_long, begin, end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
