/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: hash tables; all of them are uthash's (https://troydhanson.github.io/uthash/).
 *
 * Here running out of memory is an error; by default uthash would end the program without a message. An element that
 * found no room is not in the table, and everything else is unchanged. So after each HASH_ADD...(handle, ...) check
 * whether element->handle.tbl is NULL. Never pass an element that is not in the table to HASH_DEL...().
 */
#ifndef VETHGUARD_BASE_TABLE_H
#define VETHGUARD_BASE_TABLE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
