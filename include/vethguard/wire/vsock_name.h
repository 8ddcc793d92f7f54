/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vsock_name: "vsock:CID:PORT", a way in over a virtual machine's socket device (vsock(7)): the port of this machine
 * on which the guard listens, and the machine that may connect to it. No path of a Unix socket begins like that,
 * because those are absolute.
 */
#ifndef VETHGUARD_WIRE_VSOCK_NAME_H
#define VETHGUARD_WIRE_VSOCK_NAME_H

#include "vethguard/base/slice.h"

#define VSOCK_NAME_MAX 32           /* bytes, with NUL */
#define VSOCK_CID_HOST 2            /* whoever runs the machine: never a sandbox */
#define VSOCK_NUMBER_MAX 4294967294 /* 2^32 - 1 stands for "any" */

struct vsock_name {
	uint32_t cid, port;
};

/* True if the text is meant as such a name. */
bool vsock_name_is(struct slice text);
/* Reads it strictly. Returns NULL, or why it is wrong. */
const char *vsock_name_parse(struct slice text, struct vsock_name *out);
/* Returns why such a machine or port cannot be, or NULL. */
const char *vsock_name_objection(uint64_t cid, uint64_t port);
const char *vsock_name_format(const struct vsock_name *name, char out[VSOCK_NAME_MAX]);

#endif
