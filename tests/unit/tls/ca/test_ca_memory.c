/* SPDX-License-Identifier: Apache-2.0 */
/* Where private keys of CAs lie in this process's memory: only in pages that are locked and left
 * out of core dumps, and nowhere once they were freed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/secret.h"
#include "vethguard/tls/ca.h"

#define SCALAR 32
#define PIECE (1u << 20)

/* Keys found outside of locked pages, and in them. */
struct found {
	unsigned open, locked;
};

static bool has_flag(const char *flags, const char *flag)
{
	const char *at = strstr(flags, flag);

	return at && at[-1] == ' ' && (at[2] == ' ' || at[2] == '\n');
}

/* Both byte orders: OpenSSL keeps numbers with the least word first. */
static unsigned count_in(const char *p, size_t n, const uint8_t *scalar, const uint8_t *reversed)
{
	unsigned count = 0;

	for (const char *at = p; (at = memmem(at, n - (size_t)(at - p), scalar, SCALAR)); at++)
		count++;
	for (const char *at = p; (at = memmem(at, n - (size_t)(at - p), reversed, SCALAR)); at++)
		count++;
	return count;
}

/* Reads a mapping in pieces. */
static unsigned scan(int memory, uintptr_t from, uintptr_t to, char *window, const uint8_t *scalar,
        const uint8_t *reversed)
{
	unsigned count = 0;

	for (uintptr_t at = from; at < to; at += PIECE - SCALAR) {
		size_t want = to - at < PIECE ? to - at : PIECE;
		ssize_t n = pread(memory, window, want, (off_t)at);

		if (n > 0)
			count += count_in(window, (size_t)n, scalar, reversed);
		memset(window, 0, PIECE);
	}
	return count;
}

static struct found look_for(const struct secret *scalar, const struct secret *reversed)
{
	struct found found = {0, 0};
	FILE *maps = fopen("/proc/self/smaps", "re");
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	static char line[512];
	uintptr_t from = 0, to = 0;
	bool readable = false;
	char *mapped = aligned_alloc(4096, PIECE);

	assert_non_null(maps);
	assert_true(memory >= 0);
	while (fgets(line, sizeof(line), maps)) {
		char rights[8];

		uintptr_t a, b;

		if (sscanf(line, "%lx-%lx %7s", &a, &b, rights) == 3) {
			readable = rights[0] == 'r' && !strstr(line, "[v");
			from = a;
			to = b;
		} else if (strncmp(line, "VmFlags:", 8) == 0 && readable) {
			unsigned n = scan(memory, from, to, mapped, scalar->p, reversed->p);

			if (has_flag(line, "lo") && has_flag(line, "dd"))
				found.locked += n;
			else
				found.open += n;
		}
	}
	free(mapped);
	fclose(maps);
	close(memory);
	return found;
}

/* The private number within PKCS#8 (RFC 5915): version 1, then an octet string of 32. */
static void scalar_of(const struct ca *ca, struct secret *scalar, struct secret *reversed)
{
	static const uint8_t before[] = {0x02, 0x01, 0x01, 0x04, SCALAR};
	struct secret der;
	const uint8_t *at;

	assert_int_equal(ca_key_der(ca, &der), 0);
	at = memmem(der.p, der.n, before, sizeof(before));
	assert_non_null(at);
	assert_int_equal(secret_copy(scalar, at + sizeof(before), SCALAR), 0);
	assert_int_equal(secret_alloc(reversed, SCALAR), 0);
	for (size_t i = 0; i < SCALAR; i++)
		reversed->p[i] = scalar->p[SCALAR - 1 - i];
	secret_free(&der);
}

static void keys_are_in_locked_pages_only(void **state)
{
	struct ca *root, *issuer, *again;
	struct secret scalar, reversed, der;
	struct found with, without;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* its shadow is most of the address space */
#endif
	root = ca_new_root(SLICE("vethguard test root"), 30);
	assert_non_null(root);
	issuer = ca_new_intermediate(root, SLICE("vethguard test sandbox"), 30);
	assert_non_null(issuer);
	scalar_of(root, &scalar, &reversed);
	with = look_for(&scalar, &reversed);
	assert_int_equal(with.open, 0);
	assert_true(with.locked >= 3); /* the two needles and OpenSSL's own */
	secret_free(&scalar);
	secret_free(&reversed);

	/* As a worker has it: from the message. */
	assert_int_equal(ca_key_der(issuer, &der), 0);
	again = ca_from_der(ca_certificate_der(issuer), secret_slice(&der));
	assert_non_null(again);
	secret_free(&der);
	scalar_of(again, &scalar, &reversed);
	ca_free(issuer);
	with = look_for(&scalar, &reversed);
	assert_int_equal(with.open, 0);
	ca_free(again);
	without = look_for(&scalar, &reversed);
	assert_int_equal(without.open, 0);
	assert_int_equal(without.locked, 2); /* the needles */
	ca_free(root);
	secret_free(&scalar);
	secret_free(&reversed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(keys_are_in_locked_pages_only)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
