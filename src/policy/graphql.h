/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphql: reads executable documents of GraphQL (the specification of October 2021, and the
 * descriptions of September 2025) without building anything of them: whoever asks is told of each
 * operation and of the fields at its root, those of fragments included. Documents of a type system
 * are refused, and so is what servers read differently: a byte order mark, controls, comments with
 * a line end that not all take for one.
 */
#ifndef VETHGUARD_SRC_POLICY_GRAPHQL_H
#define VETHGUARD_SRC_POLICY_GRAPHQL_H

#include "vethguard/base/slice.h"

#define GRAPHQL_DEPTH_MAX 64     /* of selections, lists and objects inside of each other */
#define GRAPHQL_TOKENS_MAX 65536 /* of a document */
#define GRAPHQL_FRAGMENTS_MAX 64 /* definitions */
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
	/* A field at the root of an operation, by its own name and not its alias. */
	void (*field)(void *context, enum graphql_operation operation, struct slice name);
};

/* Returns false if the text is no such document, or beyond a bound; the sink may have been told of
 * a part of it. */
bool graphql_read(struct slice text, const struct graphql_sink *sink);
/* The operation of that name; GRAPHQL_OPERATION_COUNT: there is none. */
enum graphql_operation graphql_operation_of(struct slice word);

#endif
