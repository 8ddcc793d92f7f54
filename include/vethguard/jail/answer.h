/* SPDX-License-Identifier: Apache-2.0 */
/* answer: how a role tells its supervisor how it is confined. */
#ifndef VETHGUARD_JAIL_ANSWER_H
#define VETHGUARD_JAIL_ANSWER_H

#include "vethguard/ipc/peer.h"
#include "vethguard/jail/jail.h"

/* Replies to MESSAGE_DESCRIBE with the text of jail_describe(). For a role's on_message: returns 0 or -errno. */
int jail_answer(struct ipc_peer *supervisor, struct ipc_message *question);

#endif
