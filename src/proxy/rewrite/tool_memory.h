/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_memory: what MCP servers said of their tools when a list first named them, as digests. It
 * lies in a table of ipc/shared_names.h that the supervisor keeps for the sandbox, so that it
 * outlives the worker and, of a sandbox that outlives the daemon, the daemon. A worker without such
 * a table keeps its own. The table is read with the same distrust as the synthetic names: a hostile
 * worker of the sandbox can only make the sandbox's own findings wrong.
 */
#ifndef VETHGUARD_SRC_PROXY_REWRITE_TOOL_MEMORY_H
#define VETHGUARD_SRC_PROXY_REWRITE_TOOL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "vethguard/ipc/shared_names.h"
#include "vethguard/policy/json.h"

#define TOOL_DIGEST_BYTES 16 /* of a SHA-256 */

struct tool_digest {
	uint8_t bytes[TOOL_DIGEST_BYTES];
};

struct tool_entry {
	struct tool_digest key; /* of server, path and tool */
	struct tool_digest
	        known; /* of what was said first, or was accepted since; zeros: of nothing */
	struct tool_digest told; /* of the last difference that was recorded; zeros: none */
};

struct tool_memory {
	struct shared_names *shared; /* borrowed; NULL: entries is all there is */
	struct tool_entry *entries;  /* owned; as in the table */
	uint32_t count, room;
};

/* shared: borrowed, or NULL. */
void tool_memory_init(struct tool_memory *memory, struct shared_names *shared);
void tool_memory_fini(struct tool_memory *memory);

enum tool_news {
	TOOL_FIRST,   /* nothing was known of the tool; now this is */
	TOOL_SAME,    /* it is described as before */
	TOOL_CHANGED, /* in another way than before, and not in the way recorded last */
	TOOL_OTHER,   /* in the way that was recorded last as different */
	TOOL_NO_ROOM  /* nothing is known of the tool, and no more can be remembered */
};

/* Makes a digest of what a list says of a tool. The order of members does not count. Returns false
 * if there is no memory. */
bool tool_digest_of(
        const struct json_tree *tree, const struct json_value *said, struct tool_digest *out);
/* Makes the digest of the texts. */
bool tool_digest_of_texts(const struct slice *texts, size_t count, struct tool_digest *out);
/* What becomes of a description that is not the known one. */
enum tool_use {
	TOOL_KEEP,   /* the known one stays; if there is none, this is it */
	TOOL_ACCEPT, /* this is the known one from now on */
	TOOL_REFUSE  /* this never becomes the known one */
};

/* Compares and remembers. */
enum tool_news tool_memory_look(struct tool_memory *memory, const struct tool_digest *key,
        const struct tool_digest *said, enum tool_use use);

#endif
