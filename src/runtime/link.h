/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link: the guard's link inside the container's network namespace, from create to start. Engines
 * put links, routes and listening sockets of their own into a namespace before the container
 * starts: dockerd puts an end of its bridge there as eth0 with a default route, other engines do
 * such things by hooks. So the guard's link is put aside meanwhile (down, under another name,
 * without routes), and nothing collides. At start everything that is not the guard's is removed,
 * the link is set up again, and the namespace is examined once more. Only then does the container's
 * first instruction run.
 */
#ifndef VETHGUARD_SRC_RUNTIME_LINK_H
#define VETHGUARD_SRC_RUNTIME_LINK_H

#include <jansson.h>

#include "runtime/fault.h"

#define LINK_INSIDE "eth0"      /* as the daemon names it, and as it is called again at start */
#define LINK_ASIDE "vethguard0" /* between create and start, if it is put aside */

/* Writes down which link is the guard's, and puts it aside if it is to be. sandbox: the daemon's
 * answer, for the gate's addresses. Returns what link_settle() has to know (owned), or NULL with a
 * fault. */
json_t *link_note(const char *netns, const json_t *sandbox, bool aside, struct fault *fault);
/* Removes every other link, sets the guard's link up again if it was put aside, and makes sure that
 * nothing else leads out: no other link, no socket that is open in the namespace already.
 * net_admin: the container may have CAP_NET_ADMIN. Then a link that was there is a fault, because
 * the namespace keeps a number for the one where the link's other end is (ip-netns(8)), and such a
 * container could make links there. */
bool link_settle(const char *netns, const json_t *facts, bool net_admin, struct fault *fault);

#endif
