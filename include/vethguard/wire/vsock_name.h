/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vsock_name: "vsock:CID:PORT", names a listener for a virtual machine's socket device (vsock(7)): PORT of this
 * machine, to which only the machine CID may connect. It cannot be mistaken for the path of a Unix socket, because
 * those paths are absolute.
 */
#ifndef VETHGUARD_WIRE_VSOCK_NAME_H
#define VETHGUARD_WIRE_VSOCK_NAME_H

#include "vethguard/base/slice.h"

#define VSOCK_NAME_MAX 32           /* bytes, with NUL */
#define VSOCK_CID_HOST 2            /* the host of a virtual machine: never a sandbox */
#define VSOCK_NUMBER_MAX 4294967294 /* 2^32 - 1 stands for "any" */

struct vsock_name {
	uint32_t cid, port;
};

/* True if the text begins as such a name does. */
bool vsock_name_is(struct slice text);
/* Parses the text strictly. Returns NULL, or what is wrong with it. */
const char *vsock_name_parse(struct slice text, struct vsock_name *out);
/* Returns why no sandbox can have this CID or port, or NULL. */
const char *vsock_name_objection(uint64_t cid, uint64_t port);
const char *vsock_name_format(const struct vsock_name *name, char out[VSOCK_NAME_MAX]);

#endif
