/* SPDX-License-Identifier: Apache-2.0 */
/* diff_text: gathers the changes of a comparison and puts them into words. */
#ifndef VETHGUARD_SRC_POLICY_DIFF_TEXT_H
#define VETHGUARD_SRC_POLICY_DIFF_TEXT_H

#include "vethguard/policy/diff.h"
#include "policy/diff/cell.h"
#include "policy/compile/intern.h"

#define DIFF_NAMES_SHOWN 3 /* destinations shown in one line; more are counted */
#define DIFF_METHODS_MAX (4 * IMAGE_METHODS_MAX + 1)
#define DIFF_METHOD_WORDS (DIFF_METHODS_MAX / 64 + 1)
#define DIFF_RECORDS_MAX 100000 /* changes kept of one comparison */

/* Destinations without scheme and port, as a policy writes them. */
struct diff_names {
	struct slice shown[DIFF_NAMES_SHOWN];
	size_t count;
};

/* Every method that could make a difference: those that rules name, the same in lower case, and
 * last one that no rule names. */
struct diff_methods {
	struct slice names[DIFF_METHODS_MAX];
	size_t named; /* the number of names from rules; as many in lower case follow */
	size_t count;
};

struct diff_where {
	const struct diff_names *names;
	enum policy_scheme scheme;
	uint16_t low, high;                  /* ports */
	uint64_t methods[DIFF_METHOD_WORDS]; /* bits by number; no bit: a connection */
};

struct diff_text {
	struct arena *arena;
	const struct diff_methods *methods;
	struct intern keys;
	struct vec records; /* struct diff_record; the index is the number of its key */
	struct vec notes;   /* struct policy_diff_line: changes that concern no destination */
	bool full, failed;
};

/* diff/methods.c. False: no memory. */
bool diff_methods_find(struct diff_methods *methods, struct arena *arena, const struct policy *from,
        const struct policy *to);
/* A set of methods in words: "GET, HEAD ", "any method ", "any method but DELETE "; empty for the
 * empty set. */
struct slice diff_method_words(const struct diff_methods *methods, struct arena *arena,
        const uint64_t set[DIFF_METHOD_WORDS]);

void diff_text_init(
        struct diff_text *text, struct arena *arena, const struct diff_methods *methods);
void diff_text_fini(struct diff_text *text);
/* Adds a line that concerns no destination. */
void diff_text_note(struct diff_text *text, bool widens, bool narrows, struct slice note);
void diff_text_modes(struct diff_text *text, enum policy_mode from, enum policy_mode to);
/* Notes that internal: was switched on or off. */
void diff_text_answers(struct diff_text *text, bool from, bool to);
/* Notes how much of a body may be read, if conditions read bodies. */
void diff_text_inspect(struct diff_text *text, const struct policy *from, const struct policy *to);
/* Notes credentials that are new, gone or changed. */
void diff_text_credentials(
        struct diff_text *text, const struct policy *from, const struct policy *to);
/* diff/expose.c: notes ports that are published now, no longer, or in another way. */
void diff_exposes(struct diff_text *text, const struct policy *from, const struct policy *to);
/* diff/limits.c: notes limits and budgets that are new, gone or changed. */
void diff_limits(struct diff_text *text, const struct policy *from, const struct policy *to);
/* diff/dlp.c: notes changes of what becomes of secrets in requests. */
void diff_dlps(struct diff_text *text, const struct policy *from, const struct policy *to);
/* diff/tokens.c: notes weights and prices that have changed. */
void diff_tokens(struct diff_text *text, const struct policy *from, const struct policy *to);
/* diff/asks.c: notes ask rules that are new or gone. */
void diff_asks(struct diff_text *text, const struct policy *from, const struct policy *to);
/* Adds a change; the same change for another method joins the first one. where->names is borrowed
 * until the end. */
void diff_text_add(
        struct diff_text *text, const struct diff_where *where, const struct diff_change *change);
/* Writes all lines. Returns 0 or -ENOMEM. incomplete: the comparison stopped somewhere. */
int diff_text_write(struct diff_text *text, bool incomplete, struct policy_diff *out);

#endif
