/* SPDX-License-Identifier: Apache-2.0 */
/* libraries: makes this program's libraries, which hold secrets in memory of their own, wipe it. */
#ifndef VETHGUARD_SRC_FETCH_LIBRARIES_H
#define VETHGUARD_SRC_FETCH_LIBRARIES_H

/* Makes every free() of libcurl, OpenSSL and jansson wipe the memory first. Call it before anything
 * else of them. */
void libraries_wipe_memory(void);

#endif
