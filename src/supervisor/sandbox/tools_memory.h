/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools_memory: what MCP servers said of their tools, as digests (proxy/rewrite/tool_memory.h), in
 * a table that goes from worker to worker. That of a persistent sandbox is a file of the state
 * directory (names/ID.tools), so that it outlives the daemon too; that of others is a memfd.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_TOOLS_MEMORY_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_TOOLS_MEMORY_H

#include <stdint.h>

struct generation;
struct instance;

/* Sends the table to the worker. Call this before the worker is told to start. Does nothing if
 * the generation's policy has no rule with mcp. Returns 0, or -errno with s->failure. */
int tools_memory_tell(struct instance *i, const struct generation *g);
/* Removes a persistent sandbox's file. */
void tools_memory_remove(int directory, uint64_t id);

#endif
