/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools: takes the tools that may not be called out of an MCP server's lists of tools. So a client does not try to
 * call them, and its model does not read their descriptions.
 */
#ifndef VETHGUARD_POLICY_TOOLS_H
#define VETHGUARD_POLICY_TOOLS_H

#include "vethguard/base/buf.h"
#include "vethguard/policy/body.h"

struct json_tree;
struct json_value;

#define TOOL_TEXT_MAX (64u << 10) /* bytes of one text about a tool; a larger one is a finding by itself */

/* The caller's functions. */
struct policy_tools {
	void *context;
	/* Tells whether a tool may be called. */
	bool (*may_call)(void *context, struct slice tool);
	/* NULL, or tells whether a tool that may be called may stay in the list. said: what the list says of the tool,
	 * an object of tree. May be called twice for a tool, and then gives the same answer. */
	bool (*may_show)(void *context, struct slice tool, const struct json_tree *tree, const struct json_value *said);
};

/* Looks at the messages of a JSON text: one, or an array of them. Takes out of the array `tools` of each result the
 * tools that may not be called, and those whose name two readers could take differently. Returns 1: out has the text
 * without these tools; 0: there are none, and nothing was written to out; -EBADMSG: two readers could take the text
 * differently; -ENOMEM. */
int policy_tools_filter(const struct policy_tools *tools, struct slice text, struct buf *out);
/* Looks through all texts that a list has about a tool for what speaks to a model rather than about the tool: orders to
 * ignore other instructions or to keep something from the user, marks of prompts, files with keys, invisible
 * characters. Returns what was found as the end of a sentence ("has invisible characters"), or NULL. */
const char *policy_tool_instructs(const struct json_tree *tree, const struct json_value *said);

/* What a policy wants for a tool whose description changes or instructs (the key descriptions of mcp). */
enum policy_descriptions {
	POLICY_DESCRIPTIONS_ALERT, /* a finding */
	POLICY_DESCRIPTIONS_BLOCK, /* and the tool is taken out of the list */
	POLICY_DESCRIPTIONS_OFF
};
/* Returns what the rule that would allow a call of the tool (policy_may_call()) says about descriptions. In mode
 * observe BLOCK becomes ALERT. */
enum policy_descriptions policy_tool_descriptions(
        const struct policy *policy, const struct policy_request *request, struct slice tool);
/* True if some rule has mcp: answers may list tools. */
bool policy_has_tools(const struct policy *policy);

/* True if some message of the body asks for a list of tools, or if that is not known: body is NULL, was not read or
 * is no JSON. */
bool policy_body_lists_tools(const struct policy_body *body);

#endif
