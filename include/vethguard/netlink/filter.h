/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter: programs in traffic control that see the frames of an interface (clsact, tc-bpf(8)): incoming frames before
 * nftables' ingress hook, outgoing frames after its egress hook. They are not part of any ruleset. They belong to the
 * interface and vanish with it; no process has to hold them.
 */
#ifndef VETHGUARD_NETLINK_FILTER_H
#define VETHGUARD_NETLINK_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "vethguard/netlink/netlink.h"

#define FILTER_TAG_BYTES 8

enum filter_hook { FILTER_INGRESS, FILTER_EGRESS };

struct filter_place {
	unsigned index; /* the interface's */
	enum filter_hook hook;
	uint16_t priority; /* the lowest runs first; 1 to 65535 */
	const char *name;  /* identifies the filter */
};

struct bpf_insn;

/* Loads a program for such a place. Returns its descriptor or -errno (-EPERM, -ENOSYS: not available here). */
int filter_load(const struct bpf_insn *instructions, size_t count);
/* The kernel's digest of the program's instructions: equal programs have equal tags. Returns 0 or -errno. */
int filter_tag(int program, uint8_t tag[FILTER_TAG_BYTES]);
/* Puts the program in the place, between two frames; replaces a program of this name. Returns 0; -EBUSY: somebody
 * else's filter or discipline is there, and stays; -ENOENT, -EOPNOTSUPP: the kernel has no such places; or another
 * -errno. */
int filter_set(struct netlink *nl, const struct filter_place *place, int program);
/* Returns 0: a program with this tag is there under this name; -ESTALE: none or another one; -EBUSY as above;
 * -ENODEV. */
int filter_check(struct netlink *nl, const struct filter_place *place, const uint8_t tag[FILTER_TAG_BYTES]);
/* Removes the program of this name. Returns 0, also if there is none; or -errno. */
int filter_remove(struct netlink *nl, const struct filter_place *place);
/* Removes the interface's places if they are empty. Returns 0 or -errno. */
int filter_tidy(struct netlink *nl, unsigned index);

/* Looks for programs by which somebody else may take frames that come in on the interface before nftables sees them:
 * filters of traffic control (clsact, ingress, tcx) and XDP. Returns 0: there are none; -EBUSY: there are; -ENODEV; or
 * another -errno. Asked before vethguard's own filters are set. */
int filter_foreign(struct netlink *nl, unsigned index);

#endif
