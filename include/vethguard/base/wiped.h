/* SPDX-License-Identifier: Apache-2.0 */
/* wiped: ordinary memory that is wiped before it is freed, for libraries whose memory may hold secrets and which take
 * an allocator. The memory comes from malloc(3) or calloc(3). */
#ifndef VETHGUARD_BASE_WIPED_H
#define VETHGUARD_BASE_WIPED_H

#include <stddef.h>

/* Wipes and frees; p may be NULL. */
void wiped_free(void *p);
/* As realloc(3), but leaves no copy behind. n 0: frees p and returns NULL. */
void *wiped_realloc(void *p, size_t n);

#endif
