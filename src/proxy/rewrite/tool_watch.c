/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a tool is known by the server's scheme, host and port, the path of the list,
 * and its name. What the first list says of it counts as what the operator has agreed to. With
 * `alert` a change is recorded, and the new description is what is known from then on. With `block`
 * the first description that does not speak to the model stays the known one: the tool is taken out
 * of each list that describes it in another way.
 *
 * What speaks to the model is recorded when it is first seen, not with each list. A tool for which
 * there is no more room counts as changed: otherwise a server could fill the room with names.
 */
#include "proxy/rewrite/tool_watch.h"

#include <stdio.h>

#include "proxy/exchange/exchange.h"
#include "proxy/rewrite/tool_memory.h"
#include "vethguard/policy/tools.h"

#define NAME_MAX_SHOWN 160
#define DETAIL_MAX 512

static const char no_room[] = "is beyond the number of tools that can be remembered";

static void record(struct exchange *ex, enum event_finding finding, struct slice tool,
        const char *what, bool block)
{
	char name[NAME_MAX_SHOWN], detail[DETAIL_MAX];
	const uint32_t rule = ex->verdict.decision.rule;
	struct slice by =
	        rule == POLICY_NONE ? SLICE("") : policy_rule_name(ex->proxy->config.policy, rule);

	snprintf(detail, sizeof(detail), "the tool \"%s\" of the server's list %s%s",
	        slice_escape(tool, name, sizeof(name)), what,
	        block ? "; it was taken out of the list" : "");
	if (block)
		audit_finding(ex->proxy, ex->client, finding, ex->id, by, detail);
	else
		audit_remark(ex, finding, by, detail);
}

static bool make_key(
        const struct policy_request *request, struct slice tool, struct tool_digest *key)
{
	char port[8];
	const struct slice texts[] = {slice_from_string(policy_scheme_name(request->scheme)),
	        request->host, slice_of(&request->address, sizeof(request->address)),
	        slice_of(port, (size_t)snprintf(port, sizeof(port), "%u", request->port)),
	        request->path, tool};

	return tool_digest_of_texts(texts, sizeof(texts) / sizeof(*texts), key);
}

bool tool_watch_lets(struct exchange *ex, const struct policy_request *request, struct slice tool,
        const struct json_tree *tree, const struct json_value *said)
{
	const enum policy_descriptions mode =
	        policy_tool_descriptions(ex->proxy->config.policy, request, tool);
	const bool block = mode == POLICY_DESCRIPTIONS_BLOCK;
	struct tool_digest key, digest;
	enum tool_news news;
	const char *speaks;

	if (mode == POLICY_DESCRIPTIONS_OFF)
		return true;
	if (!make_key(request, tool, &key) || !tool_digest_of(tree, said, &digest))
		return !block;
	speaks = block ? policy_tool_instructs(tree, said) : NULL;
	news = tool_memory_look(&ex->proxy->tool_memory, &key, &digest,
	        !block   ? TOOL_ACCEPT
	        : speaks ? TOOL_REFUSE
	                 : TOOL_KEEP);
	if (news == TOOL_CHANGED)
		record(ex, EVENT_FINDING_TOOL_CHANGED, tool,
		        "has another description or schema than before", block);
	else if (news == TOOL_NO_ROOM && !ex->proxy->tools_overflowed)
		record(ex, EVENT_FINDING_TOOL_CHANGED, tool, no_room, block);
	ex->proxy->tools_overflowed |= news == TOOL_NO_ROOM;
	if (!block && news != TOOL_SAME)
		speaks = policy_tool_instructs(tree, said);
	if (speaks && (news == TOOL_FIRST || news == TOOL_CHANGED || news == TOOL_NO_ROOM))
		record(ex, EVENT_FINDING_TOOL_INSTRUCTS, tool, speaks, block);
	return !block || (!speaks && (news == TOOL_FIRST || news == TOOL_SAME));
}
