/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_meter: reads from a model's answer how many tokens it took, as the answer passes: JSON, and JSON in
 * server-sent events, of OpenAI (Chat Completions, Responses), Anthropic (Messages), Google (Gemini) and Amazon
 * (Bedrock Converse). It looks for the members' names where a name of a member may stand, wherever that is in the
 * answer. Text of a model cannot be taken for one, because its quotes are escaped in JSON. A number that comes again
 * (each event of a stream has the sum so far) counts once, with its greatest value. Pure; it keeps no content.
 */
#ifndef VETHGUARD_WIRE_TOKEN_METER_H
#define VETHGUARD_WIRE_TOKEN_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_METER_NAME_MAX 32              /* bytes of a member's name; longer ones are nobody's */
#define TOKEN_METER_MOST UINT64_C(100000000) /* of one number; a greater one counts as this */
#define TOKEN_METER_NAMES 16

enum token_kind {
	TOKEN_INPUT,  /* what the model read, without what it had cached */
	TOKEN_CACHED, /* what it had cached */
	TOKEN_OUTPUT, /* what it wrote, with what it thought */
	TOKEN_KINDS
};

struct token_meter {
	uint8_t state;
	bool escaped; /* the last byte was a backslash */
	uint8_t name_n;
	char name[TOKEN_METER_NAME_MAX];
	uint8_t at;      /* which name the number belongs to */
	uint64_t number; /* so far */
	bool digits;     /* it has a digit */
	uint64_t greatest[TOKEN_METER_NAMES];
	bool found; /* some number was */
};

/* An empty meter is zero. Reads n bytes of the answer. */
void token_meter_take(struct token_meter *m, const uint8_t *p, size_t n);
/* The tokens so far. Returns false if the answer has told none. */
bool token_meter_read(const struct token_meter *m, uint64_t out[TOKEN_KINDS]);

#endif
