/* SPDX-License-Identifier: Apache-2.0 */
/* program: the BPF programs of diversion, a few instructions each. Private to fence/. */
#ifndef VETHGUARD_SRC_FENCE_PROGRAM_H
#define VETHGUARD_SRC_FENCE_PROGRAM_H

#include <stdint.h>

enum program_kind {
	PROGRAM_DROP,
	PROGRAM_LET_MARKED,  /* drops what does not bear DIVERT_MARK */
	PROGRAM_BRIDGE_PORT, /* drops IP and ARP to addresses that no bridge forwards, marks the
	                        rest */
	PROGRAM_HAND_ON      /* marks, and sends out of another interface */
};
#define PROGRAM_SHARED_COUNT PROGRAM_HAND_ON /* the others are the same for every interface */

/* to: index of the other interface, of PROGRAM_HAND_ON. The descriptor or -errno. */
int program_load(enum program_kind kind, unsigned to);

#endif
