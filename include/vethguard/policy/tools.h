/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools: answers of MCP servers that list tools, without those that may not be called. What a client does not know of
 * it does not call, and its model reads no descriptions of them.
 */
#ifndef VETHGUARD_POLICY_TOOLS_H
#define VETHGUARD_POLICY_TOOLS_H

#include "vethguard/base/buf.h"
#include "vethguard/policy/body.h"

/* Who tells whether a tool may be called. */
struct policy_tools {
	void *context;
	bool (*may_call)(void *context, struct slice tool);
};

/* Looks at the messages of a JSON text: one, or an array of them. Of each result with an array `tools`, those are taken
 * out that may not be called, and those whose name readers could take differently. Returns 1: out has the text without
 * them; 0: there are none, and out is empty; -EBADMSG: readers could take the text differently; -ENOMEM. */
int policy_tools_filter(const struct policy_tools *tools, struct slice text, struct buf *out);
/* True if some message of the body asks for a list of tools, or if that is not known. NULL: there is no body. */
bool policy_body_lists_tools(const struct policy_body *body);

#endif
