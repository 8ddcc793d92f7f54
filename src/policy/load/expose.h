/* SPDX-License-Identifier: Apache-2.0 */
/* expose: one entry of expose: while it is read. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_EXPOSE_H
#define VETHGUARD_SRC_POLICY_LOAD_EXPOSE_H

#include "policy/load/loader.h"

struct expose_parse {
	struct loader *l;
	struct tree *tree;
	const struct tree_node *node, *at; /* the entry; its at:, or NULL */
	struct model_expose *out;
};

/* expose_from.c: reads from:, when port: and at: are known. Reports faults. */
void load_expose_from(struct expose_parse *p, struct tree_node *list);

#endif
