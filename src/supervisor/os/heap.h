/* SPDX-License-Identifier: Apache-2.0 */
/* heap: sets how the daemon's heap is used, and touches its next pages before they are needed. */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_HEAP_H
#define VETHGUARD_SRC_SUPERVISOR_OS_HEAP_H

/* Allocations from this size on get their own pages (mallopt(3)): what loading a policy needs for a
 * moment goes back to the system and leaves no holes between the data of a thousand sandboxes, and
 * of large structs only the pages that are written exist. */
#define HEAP_OWN_PAGES_BYTES (32 << 10)

/* To be called once, before anything large is allocated. */
void heap_open(void);
/* Touches the pages that the next sandbox will take. Call this when nobody waits. */
void heap_warm(void);

#endif
