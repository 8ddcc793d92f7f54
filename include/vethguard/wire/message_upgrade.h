/* SPDX-License-Identifier: Apache-2.0 */
/* message_upgrade: what a daemon and the daemon of another version that takes over from it send each other
 * (supervisor/daemon/upgrade.h). */
#ifndef VETHGUARD_WIRE_MESSAGE_UPGRADE_H
#define VETHGUARD_WIRE_MESSAGE_UPGRADE_H

#include "vethguard/wire/message_type.h"

/* Steps of an upgrade. The two programs may be of different versions: steps keep their numbers, and an unknown step
 * ends the upgrade. old: the daemon that serves so far; new: the daemon that takes over. id: the message's id. */
enum message_upgrade_step {
	MESSAGE_UPGRADE_HELLO = 1, /* new: its roles are ready; id: its set of recording files */
	MESSAGE_UPGRADE_GIVE = 2,  /* old: everything is paused; id: how many upgrades are draining already; text: what
	                              service_describe() says; fds: lock of the state directory, control socket, the
	                              gateway's listening sockets */
	MESSAGE_UPGRADE_WANT = 3,  /* new: asks for the sandbox id */
	MESSAGE_UPGRADE_SANDBOX = 4, /* old, reply: fd: NFLOG socket, or the Unix socket that is its only way out;
	                            no fd: there is none to give */
	MESSAGE_UPGRADE_SERVES = 5,  /* new: its worker serves the sandbox id */
	MESSAGE_UPGRADE_FAILS = 6,   /* new: the sandbox id cannot be served: text says why */
	MESSAGE_UPGRADE_DONE = 7,    /* new: everything possible is done */
	MESSAGE_UPGRADE_YOURS = 8,   /* old: its last message: from now on it only finishes what it has */
	MESSAGE_UPGRADE_REOPEN = 9,  /* new: the audit log was moved away */
	MESSAGE_UPGRADE_END = 10     /* new: what is not finished has to end now */
};
struct message_upgrade {
	uint8_t step;
	struct slice text;
};

MESSAGE_CODEC(upgrade);

#endif
