/* SPDX-License-Identifier: Apache-2.0 */
/* environment: the variables for the guarded command, and wiping secret ones from our own
 * environment. */
#ifndef VETHGUARD_ADAPTER_ENVIRONMENT_H
#define VETHGUARD_ADAPTER_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "vethguard/base/slice.h"

struct environment {
	char **vars; /* owned; "NAME=VALUE", ends with NULL */
	size_t count, cap;
	bool failed; /* out of memory: the list is unusable */
};

void environment_init(struct environment *env);
void environment_fini(struct environment *env);
/* Copies every well-formed variable of from (environ). */
void environment_copy(struct environment *env, char *const *from);
/* Copies only those that programs need: PATH, HOME, USER, LANG, LC_*, TERM, TZ, XDG_*, EDITOR,
 * NO_COLOR, ... */
void environment_copy_basic(struct environment *env, char *const *from);
void environment_set(struct environment *env, struct slice name, struct slice value);
void environment_unset(struct environment *env, struct slice name);
const char *environment_get(const struct environment *env, const char *name);

/* The value of a variable of this process (borrowed, not a copy), or NULL. */
char *environment_own(struct slice name);
/* Overwrites the value in the process's own environment, so that /proc/self/environ does not show
 * it any more, and unsets it. */
void environment_wipe_own(struct slice name);

#endif
