/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_mask: how fast the mask passes over bodies with and without a credential in them, in 16 KiB
 * chunks, the size of a TLS record (mask_stream_take). Prints GB/s of CPU time per kind of body,
 * and how much of it need not be copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vethguard/credential/mask.h"

#define CHUNK 16384
#define BODY (4u << 20)
#define ROUNDS 100

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fill_words(uint8_t *p, size_t n, const char *separators)
{
	static const char *const words[] = {"the", "request", "was", "answered", "by", "an",
	        "upstream", "with", "status", "created_at", "id", "token", "ghp", "2024", "http",
	        "value", "name", "default_branch"};
	size_t at = 0, k = 0;

	while (at < n) {
		const char *w = words[(size_t)rand() % (sizeof(words) / sizeof(words[0]))];

		while (*w && at < n)
			p[at++] = (uint8_t)*w++;
		if (at < n)
			p[at++] = (uint8_t)separators[k++ % strlen(separators)];
	}
}

static void fill_random(uint8_t *p, size_t n, const char *alphabet)
{
	for (size_t i = 0; i < n; i++)
		p[i] = alphabet ? (uint8_t)alphabet[(size_t)rand() % strlen(alphabet)]
		                : (uint8_t)rand();
}

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

		fill_words(body, BODY, " ");
		measure("words", v, body);
		fill_words(body, BODY, "\":, {}");
		measure("JSON", v, body);
		for (size_t at = 50; at + 1 < BODY; at += 60)
			body[at] = '\\', body[at + 1] = 'n';
		measure("JSON with an escape every 60 bytes", v, body);
		fill_random(body, BODY, NULL);
		measure("random bytes", v, body);
		fill_random(body, BODY,
		        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
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
		fill_words(body, BODY, " ");
		for (size_t at = 1000; at + 100 < BODY; at += 4 * CHUNK)
			memcpy(body + at, v, strlen(v));
		measure("words, value in 1 of 4 chunks", v, body);
	}
	return 0;
}
