/* SPDX-License-Identifier: Apache-2.0 */
/* diff_cell: what the parts of policy_diff() share. A cell is one kind of destination with one
 * scheme, port and method: only the path is open. */
#ifndef VETHGUARD_SRC_POLICY_DIFF_CELL_H
#define VETHGUARD_SRC_POLICY_DIFF_CELL_H

#include "policy/load/arena.h"
#include "policy/decide/lookup.h"
#include "policy/vec.h"

/* One rule's hold on a cell by one of its patterns. */
struct diff_claim {
	struct slice pattern;    /* empty: any path */
	struct slice credential; /* its name, or empty */
	struct slice upgrades;   /* as policy_rule_upgrades() */
	bool exact;              /* by its one address, which may be the host's own as well */
	uint32_t order;          /* of its target: smaller is more specific */
	uint32_t rank, rule;
};

struct diff_side {
	const struct policy *policy;
	struct found found;
	struct vec allows, denies; /* struct diff_claim */
};

enum diff_kind {
	DIFF_ALLOWED,
	DIFF_DENIED,
	DIFF_CREDENTIAL, /* allowed before and after, with another credential */
	DIFF_UPGRADE,    /* ... with other protocols to upgrade to */
	DIFF_CONNECTION_ALLOWED,
	DIFF_CONNECTION_DENIED,
	DIFF_OPENED, /* tls: intercepted, passed through before */
	DIFF_UNOPENED,
	DIFF_KIND_COUNT
};

struct diff_change {
	enum diff_kind kind;
	struct slice pattern; /* the paths it is about; empty: any */
	struct slice within;  /* or those of pattern that match this one as well; empty: all */
	struct slice credential, was; /* names, or empty */
	struct slice upgrades, upgrades_were;
};

/* Where changes go, and how much may still be done. */
struct diff_sink {
	void *context;
	void (*change)(void *context, const struct diff_change *change);
	uint64_t *budget; /* steps; 0: the comparison stopped somewhere */
};

/* The claims of the cell that question is about. False: no memory. */
bool diff_collect(struct diff_side *side, const struct question *question, uint64_t *budget);
/* Compares the collected claims of both sides. */
void diff_cell(const struct diff_side *from, const struct diff_side *to, struct diff_sink *sink);

#endif
