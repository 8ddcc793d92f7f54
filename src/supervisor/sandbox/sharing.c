/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/supervisor.h"

#include <stdio.h>
#include <string.h>

#include "supervisor/sandbox/sharing.h"
#include "vethguard/base/hash.h"

/* The value of a label of the sandbox, or NULL. */
static const char *label_of(const struct sandbox *s, struct slice key, size_t *n)
{
	const char *line = s->labels;

	while (line && *line) {
		size_t length = strcspn(line, "\n");

		if (length > key.n && line[key.n] == '=' && memcmp(line, key.p, key.n) == 0) {
			*n = length - key.n - 1;
			return line + key.n + 1;
		}
		line += length + (line[length] == '\n');
	}
	return NULL;
}

bool sharing_text(const struct sandbox *s, const struct generation *g, struct slice key,
        char out[SHARING_TEXT_MAX])
{
	size_t n;
	const char *value = label_of(s, key, &n);

	if (!value)
		return false;
	snprintf(out, SHARING_TEXT_MAX, "%u\n%.*s=%.*s", (unsigned)g->identity.uid, SLICE_ARG(key),
	        (int)n, value);
	return true;
}

uint64_t sharing_digest(const char *text)
{
	static const struct hash_key hash = {0x7368617265642062, 0x7564676574000001};

	return hash_bytes(&hash, text, strlen(text));
}
