/* SPDX-License-Identifier: Apache-2.0 */
/* diff_cell: shared by the parts of policy_diff(). A cell is one kind of destination with one
 * scheme, port and method; only the path is open. */
#ifndef VETHGUARD_SRC_POLICY_DIFF_CELL_H
#define VETHGUARD_SRC_POLICY_DIFF_CELL_H

#include "policy/decide/lookup.h"
#include "policy/vec.h"
#include "policy/yaml/arena.h"

/* One rule that covers a cell through one of its patterns. */
struct diff_claim {
	struct slice pattern;    /* empty: any path */
	struct slice credential; /* its name, or empty */
	struct slice upgrades;   /* as policy_rule_upgrades() */
	struct slice conditions; /* in words, or empty */
	bool exact;              /* the rule names one address, which may also be the host's own */
	uint32_t order;          /* place of the target in found: smaller is more specific */
	uint32_t rank, rule;
};

struct diff_side {
	const struct policy *policy;
	bool own_rules; /* allow rules of the infrastructure do not count */
	struct found found;
	struct vec allows, denies; /* struct diff_claim */
};

enum diff_kind {
	DIFF_ALLOWED,
	DIFF_DENIED,
	DIFF_CREDENTIAL, /* allowed before and after, with another credential */
	DIFF_UPGRADE,    /* allowed before and after, with other protocols to upgrade to */
	DIFF_CONNECTION_ALLOWED,
	DIFF_CONNECTION_DENIED,
	DIFF_OPENED, /* tls: intercepted now, passed through before */
	DIFF_UNOPENED,
	DIFF_KIND_COUNT
};

struct diff_change {
	enum diff_kind kind;
	struct slice pattern; /* the paths concerned; empty: any */
	struct slice within;  /* limits the paths of pattern to those that match this one as well;
	                         empty: all */
	struct slice conditions;      /* limits the requests to those that meet them; empty: all */
	struct slice credential, was; /* names, or empty */
	struct slice upgrades, upgrades_were;
};

/* Receives the changes, and holds the work that may still be done. */
struct diff_sink {
	void *context;
	void (*change)(void *context, const struct diff_change *change);
	uint64_t *budget; /* steps left; 0: the comparison stopped somewhere */
};

/* Collects one side's claims on the cell of the question. False: no memory. */
bool diff_collect(struct diff_side *side, const struct question *question, uint64_t *budget);
/* Compares the collected claims of both sides. */
void diff_cell(const struct diff_side *from, const struct diff_side *to, struct diff_sink *sink);

#endif
