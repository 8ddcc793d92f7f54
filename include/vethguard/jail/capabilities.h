/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities: a process's sets as 64-bit masks (capabilities(7)), through the plain system calls. */
#ifndef VETHGUARD_JAIL_CAPABILITIES_H
#define VETHGUARD_JAIL_CAPABILITIES_H

#include <stdbool.h>
#include <stdint.h>

struct capabilities {
	uint64_t effective, permitted, inheritable;
};

/* Get and set those of the calling thread. Return 0 or -errno. */
int capabilities_get(struct capabilities *out);
int capabilities_set(const struct capabilities *wanted);
/* True if the capability (CAP_...) is in the effective set. */
bool capabilities_have(unsigned capability);
/* Removes everything except keep from the bounding set. Returns 0 or -errno (-EPERM without CAP_SETPCAP). */
int capabilities_bound(uint64_t keep);
/* Of the calling thread. */
uint64_t capabilities_bounding_set(void);

#endif
