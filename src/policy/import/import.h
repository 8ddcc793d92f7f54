/* SPDX-License-Identifier: Apache-2.0 */
/* policy_import: what the readers of formats share. A reader adds rules and comments to a struct
 * import; write.c writes the policy from them. */
#ifndef VETHGUARD_SRC_POLICY_IMPORT_IMPORT_H
#define VETHGUARD_SRC_POLICY_IMPORT_IMPORT_H

#include "vethguard/policy/import.h"
#include "vethguard/policy/policy.h"
#include "policy/vec.h"
#include "policy/yaml/yaml_tree.h"

#define IMPORT_METHODS_MAX 32
#define IMPORT_WORDS_MAX 256 /* words of one line of a text */
#define IMPORT_LINE_MAX 4096 /* bytes of one line, with the lines that continue it */

struct import_place {
	unsigned line, column;
};

struct import_to {
	struct import_place at;
	struct slice text; /* a destination as a policy has it */
	bool apart;        /* written as a comment: as a rule it would allow more than the source */
};

struct import_rule {
	bool deny, any_port, passthrough;
	size_t first, count; /* of import.to */
	size_t method_count;
	struct slice methods[IMPORT_METHODS_MAX];
	struct slice path; /* a pattern, or empty */
};

struct import_note {
	struct import_place at;
	struct slice text; /* escaped */
};

struct import {
	struct arena arena;
	struct tree tree; /* of formats that are JSON or YAML */
	const char *file;
	struct diag_list *diags;
	struct vec rules, to, notes; /* struct import_rule, import_to, import_note */
	size_t dropped;              /* notes beyond the bound */
	bool wrong, no_memory;
	char joined[IMPORT_LINE_MAX], room[IMPORT_LINE_MAX]; /* of import_next_line() */
};

enum import_host_kind {
	IMPORT_NAME,    /* exactly this name */
	IMPORT_BELOW,   /* "*.name": one label below it, or one or more, as the format says */
	IMPORT_DEEP,    /* "**.name": one or more labels below it */
	IMPORT_NETWORK, /* an address or a network */
	IMPORT_ANY      /* "*" or "**" */
};

struct import_host {
	enum import_host_kind kind;
	struct slice
	        text;   /* canonical: the name without its stars, or the network as `to` has it */
	uint16_t port;  /* 0: none was written */
	bool is_public; /* NETWORK: some of its addresses could be public */
};

static inline struct import_place import_at(const struct tree_node *node)
{
	return (struct import_place){node->line, node->column};
}

/* add.c: reports a fault of the source. */
void import_fault(struct import *im, struct import_place at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Adds a comment about what the policy does not say, or says more narrowly. */
void import_note(struct import *im, struct import_place at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Begins a rule. The pointer is valid until the next call. */
struct import_rule *import_begin(struct import *im, bool deny);
/* Adds a destination to the newest rule. port 0: written without a port. */
void import_add(struct import *im, struct import_place at, enum policy_scheme scheme,
        const struct import_host *host, uint16_t port);
/* Adds a host to the newest rule: with https and http if it has no port, https for port 443, http
 * for port 80, tcp for any other. A host of an allow rule that a policy could only name too widely
 * (BELOW with one_label: the format means one label) is written as a comment. */
void import_add_web(
        struct import *im, struct import_place at, const struct import_host *host, bool one_label);
/* host.c: reads a host, perhaps with ":port" if port is true. False after a report or comment. */
bool import_read_host(struct import *im, struct import_place at, struct slice text, bool port,
        struct import_host *out);
/* host.c: translates a pattern of paths. The result matches no path that the source's pattern does
 * not match; for a deny rule it matches every path that the source's does. False: there is none. */
bool import_path(struct import *im, struct slice pattern, bool deny, struct slice *out);
/* host.c: reads a method in letters of any case, and makes them capitals. False if it is none. */
bool import_method(struct import *im, struct slice text, struct slice *out);
/* Reads the text of a scalar. False after a report. */
bool import_text(
        struct import *im, const struct tree_node *node, const char *what, struct slice *out);
/* Adds a comment about each key of a map that is not in known, which ends with NULL. */
void import_note_others(struct import *im, const struct tree_node *map, const char *const known[]);
struct import_word {
	struct slice text;
	unsigned column;
};
/* host.c: takes the next line off rest, joined with the next one while it ends in a backslash.
 * *line counts lines; at: where this one begins. The words are valid until the next call. Returns
 * false at the end, or after a report. */
bool import_next_line(struct import *im, struct slice *rest, unsigned *line,
        struct import_word words[IMPORT_WORDS_MAX], size_t *count, struct import_place *at);

void import_e2b(struct import *im);
void import_vercel(struct import *im);
void import_openshell(struct import *im);
void import_srt(struct import *im);
void import_sbx(struct import *im, struct slice text);
void import_squid(struct import *im, struct slice text);

/* write.c: appends the policy. Returns 0, or -ENOMEM and frees out. */
int import_write(const struct import *im, const char *format, struct buf *out);

#endif
