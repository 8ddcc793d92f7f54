/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_mask: how fast the mask passes over bodies with and without a credential in them, in 16 KiB
 * chunks, the size of a TLS record (mask_stream_take). Prints GB/s of CPU time per kind of body,
 * and how much of it need not be copied.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"
#include "cpu.h"
#include "vethguard/credential/mask.h"

#define CHUNK 16384
#define BODY (4u << 20)
#define ROUNDS 100

static void measure(const char *what, const char *value, const uint8_t *body)
{
	struct slice slice = slice_from_string(value);
	struct mask *mask = mask_new(&slice, 1);
	struct mask_stream s;
	struct buf out;
	size_t left = 0;
	double begin;

	if (!mask || mask_stream_init(&s, mask) < 0)
		exit(1);
	buf_init(&out, BODY);
	begin = cpu_seconds();
	for (int round = 0; round < ROUNDS; round++)
		for (size_t at = 0; at < BODY; at += CHUNK) {
			struct slice rest;

			if (mask_stream_take(&s, body + at, CHUNK, &out, &rest) < 0)
				exit(1);
			left += rest.n;
			buf_consume(&out, out.len);
		}
	printf("%-34s %2zu-byte value  %6.2f GB/s  not copied %3.0f %%  found %llu\n", what,
	        slice.n, (double)BODY * ROUNDS / 1e9 / (cpu_seconds() - begin),
	        100.0 * (double)left / ((double)ROUNDS * BODY), (unsigned long long)s.found);
	mask_stream_fini(&s);
	mask_free(mask);
	buf_fini(&out);
}

int main(void)
{
	static const char *const values[] = {"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "hunter22",
	        "sk-proj-Zk3vQ0x8uU1mJ7bq9TnXc5sLw2RdY6HaGf4eOiPpBzKlMyNoVtSrCgDhEjFq"};
	static uint8_t body[BODY];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const char *v = values[i];

		body_of_words(body, BODY, " ", BODY_WORDS_SHORT);
		measure("words", v, body);
		body_of_words(body, BODY, "\":, {}", BODY_WORDS_SHORT);
		measure("JSON", v, body);
		for (size_t at = 50; at + 1 < BODY; at += 60)
			body[at] = '\\', body[at + 1] = 'n';
		measure("JSON with an escape every 60 bytes", v, body);
		body_of_random(body, BODY, NULL);
		measure("random bytes", v, body);
		body_of_random(body, BODY, BODY_BASE64);
		measure("base64", v, body);
		memset(body, 0, BODY);
		measure("zeros", v, body);
		memset(body, '%', BODY);
		measure("hostile: all %", v, body);
		memset(body, '\\', BODY);
		measure("hostile: all backslashes", v, body);
		for (size_t at = 0; at + 4 <= BODY; at += 3)
			snprintf((char *)body + at, 4, "%%%02x", (unsigned)v[at % strlen(v)]);
		measure("hostile: the value's bytes as %XX", v, body);
		body_of_words(body, BODY, " ", BODY_WORDS_SHORT);
		for (size_t at = 1000; at + 100 < BODY; at += 4 * CHUNK)
			memcpy(body + at, v, strlen(v));
		measure("words, value in 1 of 4 chunks", v, body);
	}
	return 0;
}
