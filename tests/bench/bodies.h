/* SPDX-License-Identifier: Apache-2.0 */
/* bodies: texts for programs that measure how fast bodies are searched. */
#ifndef VETHGUARD_TESTS_BENCH_BODIES_H
#define VETHGUARD_TESTS_BENCH_BODIES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BODY_WORDS_SHORT 18 /* of the words below */
#define BODY_WORDS 32
#define BODY_BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/* Fills p with words, each with the next of the separators behind it. count: how many words of the
 * list, from its beginning, are used. */
static inline void body_of_words(uint8_t *p, size_t n, const char *separators, size_t count)
{
	static const char *const words[BODY_WORDS] = {"the", "request", "was", "answered", "by",
	        "an", "upstream", "with", "status", "created_at", "id", "token", "ghp", "2024",
	        "http", "value", "name", "default_branch", "eyes", "example.com/a/b", "kept", "of",
	        "which", "message", "content", "role", "user", "system", "function", "arguments",
	        "path", "line"};
	size_t at = 0, k = 0;

	while (at < n) {
		const char *w = words[(size_t)rand() % count];

		while (*w && at < n)
			p[at++] = (uint8_t)*w++;
		if (at < n)
			p[at++] = (uint8_t)separators[k++ % strlen(separators)];
	}
}

/* Fills p with random characters of the alphabet; NULL: with random bytes. */
static inline void body_of_random(uint8_t *p, size_t n, const char *alphabet)
{
	for (size_t i = 0; i < n; i++)
		p[i] = alphabet ? (uint8_t)alphabet[(size_t)rand() % strlen(alphabet)]
		                : (uint8_t)rand();
}

#endif
