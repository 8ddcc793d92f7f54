/* SPDX-License-Identifier: Apache-2.0 */
/* json_cursor: the position of json.c in a text, the tree that it builds, and the reading of
 * strings. */
#ifndef VETHGUARD_SRC_POLICY_JSON_JSON_CURSOR_H
#define VETHGUARD_SRC_POLICY_JSON_JSON_CURSOR_H

#include "vethguard/policy/json.h"

struct json_cursor {
	struct json_tree *tree;
	const char *p, *end;
	char *out;                     /* in tree->decoded, while a string with escapes is read */
	uint32_t open[JSON_DEPTH_MAX]; /* indices of what is open */
	unsigned depth;
	int rc; /* the first fault: -EBADMSG, -ENOMEM */
};

/* Notes a fault, if there was none. Returns false. */
bool json_cursor_refuse(struct json_cursor *c, const char *fault);
/* Notes that the text breaks the grammar. Returns false. */
bool json_cursor_break(struct json_cursor *c);
/* Adds a value, whose subtree ends right behind it at first. Returns NULL if it is refused. */
struct json_value *json_cursor_add(struct json_cursor *c, enum json_kind kind);
/* Reads the string whose opening quote is at c->p. */
bool json_cursor_read_string(struct json_cursor *c, enum json_kind kind);

#endif
