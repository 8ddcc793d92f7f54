/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash with one compression round per word and three finalization rounds (Aumasson and
 * Bernstein, "SipHash: a fast short-input PRF", section 2, with c = 1 and d = 3). With a key of 128
 * random bits, a sandbox that chooses the names cannot choose the buckets they fall into.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "vethguard/base/hash.h"

#define FINAL_ROUNDS 3

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t rotate_left(uint64_t v, unsigned by)
{
	return v << by | v >> (64 - by);
}

static void sip_round(struct sip *s)
{
	s->a += s->b;
	s->c += s->d;
	s->b = rotate_left(s->b, 13) ^ s->a;
	s->d = rotate_left(s->d, 16) ^ s->c;
	s->a = rotate_left(s->a, 32);
	s->c += s->b;
	s->a += s->d;
	s->b = rotate_left(s->b, 17) ^ s->c;
	s->d = rotate_left(s->d, 21) ^ s->a;
	s->c = rotate_left(s->c, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
	s->d ^= word;
	sip_round(s);
	s->a ^= word;
}

/* Up to eight bytes as a little-endian number. */
static uint64_t load_le(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	if (n)
		memcpy(&v, p, n);
	return le64toh(v);
}

uint64_t hash_bytes(const struct hash_key *key, const void *p, size_t n)
{
	struct sip s = {
	        key->k0 ^ 0x736f6d6570736575u,
	        key->k1 ^ 0x646f72616e646f6du,
	        key->k0 ^ 0x6c7967656e657261u,
	        key->k1 ^ 0x7465646279746573u,
	};
	const uint8_t *bytes = p;
	size_t left = n;

	for (; left >= 8; left -= 8, bytes += 8)
		sip_word(&s, load_le(bytes, 8));
	sip_word(&s, (uint64_t)n << 56 | load_le(bytes, left));
	s.c ^= 0xff;
	for (int i = 0; i < FINAL_ROUNDS; i++)
		sip_round(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}

struct hash_key hash_random_key(void)
{
	struct hash_key key;

	random_bytes(&key, sizeof(key));
	return key;
}

void random_bytes(void *out, size_t n)
{
	uint8_t *p = out;

	while (n) {
		ssize_t got = getrandom(p, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		/* without randomness no key is secret, so there is no safe way to continue */
		if (got <= 0)
			abort();
		p += got;
		n -= (size_t)got;
	}
}
