/* SPDX-License-Identifier: Apache-2.0 */
/* compile: the sections of an image while the steps of the compiler build them. */
#ifndef VETHGUARD_SRC_POLICY_COMPILE_COMPILE_H
#define VETHGUARD_SRC_POLICY_COMPILE_COMPILE_H

#include "policy/load/model.h"

struct compiler {
	struct model *model;
	struct vec sections[SECTION_COUNT]; /* items as in the image */
	struct intern strings, targets, profiles, nodes;
	struct vec string_at;  /* uint32_t: where string N begins */
	struct vec pairs;      /* struct compile_pair: which entries each target has */
	struct vec candidates; /* struct compile_pair: which candidates each node has, sorted by
	                          order */
	struct vec lists;      /* uint32_t: entries of each target, sorted; the profiles' keys point
	                          into this */
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
/* Appends one item to a section. Returns its number. */
uint32_t compile_push(struct compiler *c, enum image_section_id id, const void *item);
/* compile/profiles.c: gives every target its profile. The pairs must be sorted. */
void compile_profiles(struct compiler *c);
/* Files a profile's entries under the literal starts of their patterns, as nodes and candidates. */
void compile_profile_nodes(struct compiler *c, uint32_t profile);
/* Gives the nodes their candidates, in order. */
void compile_candidates(struct compiler *c);
/* compile/expose.c: the published ports. */
void compile_exposes(struct compiler *c);
/* limits.c: compiles the limits of the policy and of its rules. */
void compile_limits(struct compiler *c);
/* dlp.c: compiles what the policy and its rules say about secrets in requests. */
void compile_dlps(struct compiler *c);
/* Finds two credentials or two tls treatments that claim the same request. Returns 0, or -EINVAL
 * with diags. */
int compile_check_conflicts(struct compiler *c);
/* Builds hash tables, fingerprint and layout. */
int compile_write(struct compiler *c, uint8_t **image, size_t *size);

static inline const struct model_rule *compile_rule(const struct compiler *c, uint32_t rule)
{
	return vec_at(&c->model->rules, rule);
}

#define COMPILE_EXCEPT 3u /* the order of an exception's entries */

/* 0: denies of the connection; 1: other denies; 2: allows. */
static inline uint32_t compile_order(const struct model_rule *rule)
{
	if (!rule->deny)
		return 2;
	return model_is_about_requests(rule) || model_is_shadow(rule) ? 1 : 0;
}

static inline const struct image_entry *compile_entry(const struct compiler *c, uint32_t entry)
{
	return vec_at(&c->sections[SECTION_ENTRIES], entry);
}

/* Compiles the model. Returns 0 with a malloc'd image, -EINVAL with diags (conflicts, too large),
 * or -ENOMEM. */
int policy_compile(struct model *model, uint8_t **image, size_t *size);

#endif
