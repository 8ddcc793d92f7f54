/* SPDX-License-Identifier: Apache-2.0 */
/* compile: the sections of an image while they grow, shared by the steps of the compiler. */
#ifndef VETHGUARD_SRC_POLICY_COMPILE_COMPILE_H
#define VETHGUARD_SRC_POLICY_COMPILE_COMPILE_H

#include "policy/load/model.h"

struct compiler {
	struct model *model;
	struct vec sections[SECTION_COUNT]; /* items as in the image */
	struct intern strings, targets, profiles, nodes;
	struct vec string_at;  /* uint32_t: where string N starts */
	struct vec pairs;      /* struct compile_pair: which target has which entry */
	struct vec candidates; /* struct compile_pair: which node has which candidate, by order */
	struct vec lists; /* uint32_t: entries of each target, sorted; the keys of profiles point
	                     into it */
	struct image_header header;
	bool failed; /* no memory */
};

struct compile_pair {
	uint32_t owner; /* target or node */
	uint32_t order; /* compile_order() */
	uint32_t entry;
	uint32_t pattern; /* or POLICY_NONE */
};

struct image_text compile_text(struct compiler *c, struct slice text);
/* Appends one item to a section: its number. */
uint32_t compile_push(struct compiler *c, enum image_section_id id, const void *item);
/* compile/profiles.c: gives every target its profile; the pairs are sorted. */
void compile_profiles(struct compiler *c);
/* Files a profile's entries under the literal starts of their patterns: nodes and candidates. */
void compile_profile_nodes(struct compiler *c, uint32_t profile);
/* Gives the nodes their candidates, in order. */
void compile_candidates(struct compiler *c);
/* Two credentials or two tls treatments that claim the same request. Adds diags; -EINVAL where
 * there was one. */
int compile_check_conflicts(struct compiler *c);
/* Hash tables, fingerprint, layout. */
int compile_write(struct compiler *c, uint8_t **image, size_t *size);

static inline const struct model_rule *compile_rule(const struct compiler *c, uint32_t rule)
{
	return vec_at(&c->model->rules, rule);
}

/* Denies of the connection, other denies, allows. */
static inline uint32_t compile_order(const struct model_rule *rule)
{
	if (!rule->deny)
		return 2;
	return rule->has_methods || rule->path_count > 0 ? 1 : 0;
}

static inline const struct image_entry *compile_entry(const struct compiler *c, uint32_t entry)
{
	return vec_at(&c->sections[SECTION_ENTRIES], entry);
}

#endif
