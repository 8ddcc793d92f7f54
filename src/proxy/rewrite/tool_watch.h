/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_watch: looks at what MCP servers say of the tools that may be called. A description or
 * schema that changes between two lists, or that speaks to the model, is a finding. Where the rule
 * says `descriptions: block`, the tool is taken out of the list as well.
 */
#ifndef VETHGUARD_SRC_PROXY_REWRITE_TOOL_WATCH_H
#define VETHGUARD_SRC_PROXY_REWRITE_TOOL_WATCH_H

#include "vethguard/policy/json.h"
#include "vethguard/policy/policy.h"

struct exchange;

/* Returns false if the tool may not stay in the list. request: as for policy_may_call(). */
bool tool_watch_lets(struct exchange *ex, const struct policy_request *request, struct slice tool,
        const struct json_tree *tree, const struct json_value *said);

#endif
