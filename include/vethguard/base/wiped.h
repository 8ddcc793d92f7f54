/* SPDX-License-Identifier: Apache-2.0 */
/* wiped: ordinary memory, from malloc(3) or calloc(3), that is wiped before it is freed. It is for libraries that take
 * an allocator and whose memory may hold secrets. */
#ifndef VETHGUARD_BASE_WIPED_H
#define VETHGUARD_BASE_WIPED_H

#include <stddef.h>

/* Wipes and frees p, which may be NULL. */
void wiped_free(void *p);
/* Works as realloc(3), but wipes what it frees. With n 0 it frees p and returns NULL. */
void *wiped_realloc(void *p, size_t n);

#endif
