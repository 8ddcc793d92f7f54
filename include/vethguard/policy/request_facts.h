/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_facts: what a request asks for, in the words that conditions of rules use: methods, tools, fields, services,
 * refs and models. The audit log gets these facts, and `audit suggest` writes conditions from them. A fact is a name
 * and never a value: no argument, variable, parameter or message.
 *
 * Encoded facts are one run of bytes: for each fact its kind, the length of its text, and the text.
 */
#ifndef VETHGUARD_POLICY_REQUEST_FACTS_H
#define VETHGUARD_POLICY_REQUEST_FACTS_H

#include "vethguard/policy/policy.h"

#define REQUEST_FACT_MAX 128         /* bytes of one text */
#define REQUEST_FACTS_MAX 32         /* facts of one request */
#define REQUEST_FACTS_BYTES_MAX 2048 /* all of them, encoded */

/* The numbers are in the ring and the journal, which a recorder of the next version may read: a number is never
 * reused. */
enum request_fact {
	REQUEST_FACT_CUT = 1,   /* the request names more than the bounds allow, or cannot be read for sure; no text */
	REQUEST_FACT_VALUE = 2, /* a rule takes these names, and refused an argument, an amount or another value; no
	                           text */
	REQUEST_FACT_JSONRPC_METHOD = 3,
	REQUEST_FACT_MCP_METHOD = 4,
	REQUEST_FACT_MCP_TOOL = 5,
	REQUEST_FACT_GRAPHQL_OPERATION = 6, /* "query", "mutation", "subscription" */
	REQUEST_FACT_GRAPHQL_FIELD = 7,     /* at the root of an operation */
	REQUEST_FACT_GRAPHQL_PERSISTED = 8, /* the hash or id of a document that the server keeps */
	REQUEST_FACT_GRPC_SERVICE = 9,
	REQUEST_FACT_GRPC_METHOD = 10,
	REQUEST_FACT_GIT_REPOSITORY = 11, /* as rules name it: "acme/site" */
	REQUEST_FACT_GIT_SERVICE = 12,    /* "fetch" or "push" */
	REQUEST_FACT_GIT_PUSH = 13,       /* a ref that is made, or moved without losing commits */
	REQUEST_FACT_GIT_FORCE = 14,      /* a ref whose commits may be lost, or a tag that is moved */
	REQUEST_FACT_GIT_DELETE = 15,
	REQUEST_FACT_LLM_MODEL = 16,
	REQUEST_FACT_COUNT
};

/* Returns the fact's name in the audit log ("mcp_tools"), or NULL for a number that is none. */
const char *request_fact_name(unsigned fact);
/* True for a fact without a text. */
static inline bool request_fact_is_flag(unsigned fact)
{
	return fact == REQUEST_FACT_CUT || fact == REQUEST_FACT_VALUE;
}

/* Writes the request's facts to out and returns how many bytes. A body counts if it was read. */
size_t policy_request_facts(const struct policy_request *request, uint8_t out[REQUEST_FACTS_BYTES_MAX]);
/* Appends a fact without a text. There is always room for each kind of these once. */
size_t request_facts_flag(uint8_t out[REQUEST_FACTS_BYTES_MAX], size_t n, enum request_fact fact);
/* Takes the next fact off rest. Returns false at the end; an item that was cut ends the facts. */
bool request_fact_next(struct slice *rest, unsigned *fact, struct slice *text);

#endif
