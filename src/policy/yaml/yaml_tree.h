/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml_tree: one YAML document as a tree whose nodes know their positions, and readers that turn a
 * node into a value or into a message that says where, what and what would be right. Depth, nodes
 * and expansion of aliases are bounded. Refused: several documents, tags, duplicate or complex
 * keys, anchors that contain themselves.
 */
#ifndef VETHGUARD_SRC_POLICY_YAML_YAML_TREE_H
#define VETHGUARD_SRC_POLICY_YAML_YAML_TREE_H

#include "vethguard/base/diag.h"
#include "policy/yaml/arena.h"

#define TREE_DEPTH_MAX 32
#define TREE_NODES_MAX 4000000 /* with every alias expanded */
#define TREE_ANCHORS_MAX 10000

enum tree_kind { TREE_SCALAR, TREE_LIST, TREE_MAP };

struct tree_item;

struct tree_node {
	enum tree_kind kind;
	bool plain; /* scalar without quotes */
	bool done;  /* all of its items have been read */
	unsigned line, column;
	struct slice text; /* scalar; NUL-terminated in the arena */
	struct tree_item *first, *last;
	size_t count;  /* items */
	size_t weight; /* nodes below it, aliases expanded */
};

struct tree_item {
	struct tree_node *key; /* NULL in lists */
	struct tree_node *value;
	struct tree_item *next;
};

struct tree {
	struct arena *arena;
	struct diag_list *diags;
	const char *file;
	struct tree_node *root;
	bool wrong;     /* some reader reported a fault */
	bool secretive; /* what is read at the moment may be a secret that somebody wrote into
	                   the policy */
};

/* Parses n bytes. Returns 0, -EINVAL with a diag, or -ENOMEM. Nodes live in the arena. */
int tree_parse(struct tree *tree, const char *text, size_t n);

void tree_error(struct tree *tree, const struct tree_node *node, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Quotes text for messages: escaped, cut after some 60 bytes, without the user part of a URL.
 * Returns out. */
#define TREE_QUOTE_MAX 96
const char *tree_quote(struct slice s, char out[TREE_QUOTE_MAX]);
/* The same for a value: while the tree is secretive, quotes nothing longer than a short name. */
const char *tree_quote_value(const struct tree *tree, struct slice s, char out[TREE_QUOTE_MAX]);
/* The value of key, or NULL. Returns NULL as well if map is not a map. */
struct tree_node *tree_get(const struct tree_node *map, const char *key);
/* The readers below report faults and return false. what: the key, for messages. */
/* True for a value that is left out, "~" or "null". */
bool tree_is_null(const struct tree_node *node);
bool tree_is_map(struct tree *tree, const struct tree_node *node, const char *what);
bool tree_is_list(struct tree *tree, const struct tree_node *node, const char *what);
/* A key that is refused here, and why. */
struct tree_refusal {
	const char *key; /* NULL ends a list */
	const char *why;
};
/* Reports every key that is not in known (ends with NULL): with its reason if it is in refused (may
 * be NULL), else with the nearest known key. */
bool tree_check_keys(struct tree *tree, const struct tree_node *map, const char *const known[],
        const struct tree_refusal *refused);
/* Reads one line of text, 1 to max bytes, without controls. */
bool tree_text(struct tree *tree, const struct tree_node *node, const char *what, size_t max,
        struct slice *out);
bool tree_uint(struct tree *tree, const struct tree_node *node, const char *what, uint64_t min,
        uint64_t max, uint64_t *out);
/* Converts "500ms", "10s", "5m", "1h" to milliseconds. */
bool tree_duration(struct tree *tree, const struct tree_node *node, const char *what,
        uint64_t min_ms, uint64_t max_ms, uint64_t *out_ms);
/* Converts "1024", "64KiB", "1MiB" to bytes. */
bool tree_bytes(struct tree *tree, const struct tree_node *node, const char *what, uint64_t min,
        uint64_t max, uint64_t *out);
/* The index of the node's text in words (ends with NULL), or -1 after a report that lists them. */
int tree_word(struct tree *tree, const struct tree_node *node, const char *what,
        const char *const words[]);
/* The first item of a list. A lone scalar counts as a list of one item, which is kept in single.
 * NULL after a report for anything else or an empty list. */
const struct tree_item *tree_items(
        struct tree *tree, struct tree_node *node, const char *what, struct tree_item *single);

#endif
