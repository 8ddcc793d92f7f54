/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphql: reads executable documents of GraphQL (the specification of October 2021, and the
 * descriptions of September 2025) without building a tree. It tells the caller's sink of each
 * operation and of the fields at its root, those of fragments included. It refuses type system
 * documents, and what servers read differently: a byte order mark, controls, and comments with a
 * line end that only some servers take for one.
 */
#ifndef VETHGUARD_SRC_POLICY_GRAPHQL_GRAPHQL_H
#define VETHGUARD_SRC_POLICY_GRAPHQL_GRAPHQL_H

#include "vethguard/base/slice.h"

#define GRAPHQL_DEPTH_MAX 64     /* of nested selections, lists and objects */
#define GRAPHQL_TOKENS_MAX 65536 /* of a document */
#define GRAPHQL_FRAGMENTS_MAX 64 /* fragment definitions of a document */
#define GRAPHQL_OPERATIONS_MAX 16
#define GRAPHQL_SPREADS_MAX 64 /* different fragments at the roots of operations */

enum graphql_operation {
	GRAPHQL_QUERY,
	GRAPHQL_MUTATION,
	GRAPHQL_SUBSCRIPTION,
	GRAPHQL_OPERATION_COUNT
};

struct graphql_sink {
	void *context;
	void (*operation)(void *context, enum graphql_operation operation);
	/* Tells of a field at the root of an operation: its own name, not its alias. */
	void (*field)(void *context, enum graphql_operation operation, struct slice name);
};

/* Returns false if the text is no such document or exceeds a bound. The sink may then have been
 * told of a part of it. */
bool graphql_read(struct slice text, const struct graphql_sink *sink);
/* Returns the operation that the keyword names, or GRAPHQL_OPERATION_COUNT if there is none. */
enum graphql_operation graphql_operation_of(struct slice word);

#endif
