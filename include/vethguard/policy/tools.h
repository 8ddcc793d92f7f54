/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools: takes the tools that may not be called out of an MCP server's lists of tools. So a client does not try to
 * call them, and its model does not read their descriptions.
 */
#ifndef VETHGUARD_POLICY_TOOLS_H
#define VETHGUARD_POLICY_TOOLS_H

#include "vethguard/base/buf.h"
#include "vethguard/policy/body.h"

/* The caller's function that tells whether a tool may be called. */
struct policy_tools {
	void *context;
	bool (*may_call)(void *context, struct slice tool);
};

/* Looks at the messages of a JSON text: one, or an array of them. Takes out of the array `tools` of each result the
 * tools that may not be called, and those whose name two readers could take differently. Returns 1: out has the text
 * without these tools; 0: there are none, and nothing was written to out; -EBADMSG: two readers could take the text
 * differently; -ENOMEM. */
int policy_tools_filter(const struct policy_tools *tools, struct slice text, struct buf *out);
/* True if some message of the body asks for a list of tools, or if that is not known: body is NULL, was not read or
 * is no JSON. */
bool policy_body_lists_tools(const struct policy_body *body);

#endif
