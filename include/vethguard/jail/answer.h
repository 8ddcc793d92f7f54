/* SPDX-License-Identifier: Apache-2.0 */
/* answer: how a role tells its supervisor what it is confined to. */
#ifndef VETHGUARD_JAIL_ANSWER_H
#define VETHGUARD_JAIL_ANSWER_H

#include "vethguard/ipc/peer.h"
#include "vethguard/jail/jail.h"

/* Answers MESSAGE_DESCRIBE with jail_describe()'s text. For a role's on_message: 0 or -errno. */
int jail_answer(struct ipc_peer *supervisor, struct ipc_message *question);

#endif
