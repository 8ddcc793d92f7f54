/* SPDX-License-Identifier: Apache-2.0 */
/* program: the BPF programs of the diversion, a few instructions each. Private to fence/. */
#ifndef VETHGUARD_SRC_FENCE_PROGRAM_H
#define VETHGUARD_SRC_FENCE_PROGRAM_H

#include <stdint.h>

enum program_kind {
	PROGRAM_DROP,
	PROGRAM_LET_MARKED,  /* drops frames without DIVERT_MARK */
	PROGRAM_BRIDGE_PORT, /* drops IP and ARP to addresses that no bridge forwards, marks the
	                        rest */
	PROGRAM_HAND_ON      /* marks, and sends out of another interface */
};
#define PROGRAM_SHARED_COUNT PROGRAM_HAND_ON /* kinds before it suit every interface */

/* to: for PROGRAM_HAND_ON, the index of the other interface. Returns the descriptor or -errno. */
int program_load(enum program_kind kind, unsigned to);

#endif
