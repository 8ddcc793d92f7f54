/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter: programs where traffic control sees the frames of an interface (clsact, tc-bpf(8)): on their way in before
 * nftables' ingress hook, on their way out after its egress hook. They are no part of anybody's ruleset, belong to the
 * interface and go with it; no process has to hold them.
 */
#ifndef VETHGUARD_NETLINK_FILTER_H
#define VETHGUARD_NETLINK_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "vethguard/netlink/netlink.h"

#define FILTER_TAG_BYTES 8

enum filter_hook { FILTER_INGRESS, FILTER_EGRESS };

struct filter_place {
	unsigned index; /* of the interface */
	enum filter_hook hook;
	uint16_t priority; /* the lowest comes first; 1 to 65535 */
	const char *name;  /* by which it is known again */
};

struct bpf_insn;

/* A program for such a place; its descriptor, or -errno (-EPERM, -ENOSYS: not to be had here). */
int filter_load(const struct bpf_insn *instructions, size_t count);
/* What the kernel makes of its instructions: equal programs have equal tags. 0 or -errno. */
int filter_tag(int program, uint8_t tag[FILTER_TAG_BYTES]);
/* Puts the program there, in place of one that is there under this name, between two frames. 0; -EBUSY: something of
 * somebody else's is there, and stays; -ENOENT, -EOPNOTSUPP: the kernel has no such places; -errno. */
int filter_set(struct netlink *nl, const struct filter_place *place, int program);
/* 0: a program of this tag is there under this name; -ESTALE: there is none, or another; -EBUSY as above; -ENODEV. */
int filter_check(struct netlink *nl, const struct filter_place *place, const uint8_t tag[FILTER_TAG_BYTES]);
/* Takes away what is there under this name. 0, also where there is nothing; -errno. */
int filter_remove(struct netlink *nl, const struct filter_place *place);
/* Takes the places away where they are empty. 0 or -errno. */
int filter_tidy(struct netlink *nl, unsigned index);

#endif
