/* SPDX-License-Identifier: Apache-2.0 */
/* graphql_lexer: the tokens of a GraphQL document, one at a time. */
#ifndef VETHGUARD_SRC_POLICY_GRAPHQL_GRAPHQL_LEXER_H
#define VETHGUARD_SRC_POLICY_GRAPHQL_GRAPHQL_LEXER_H

#include "vethguard/base/slice.h"

enum graphql_token {
	GRAPHQL_END,
	GRAPHQL_NAME,
	GRAPHQL_NUMBER,
	GRAPHQL_STRING,
	GRAPHQL_SPREAD,          /* "..." */
	GRAPHQL_BROKEN,          /* wrong text, or too many tokens: no further token comes */
	GRAPHQL_PUNCTUATOR = '!' /* the token of any punctuator is its byte */
};

struct graphql_lexer {
	const char *p, *end;
	int token; /* the current token: enum graphql_token, or a punctuator's byte */
	struct slice name;
	unsigned left; /* tokens that may still come */
};

/* Makes the first token of the text the current one. tokens: how many the text may have. */
void graphql_lexer_init(struct graphql_lexer *l, struct slice text, unsigned tokens);
/* Goes on to the next token. */
void graphql_lexer_next(struct graphql_lexer *l);

#endif
