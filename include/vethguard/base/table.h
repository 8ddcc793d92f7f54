/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: hash tables, which are uthash's everywhere (https://troydhanson.github.io/uthash/).
 *
 * No memory is an error and not the end of the program, which uthash on its own makes of it, without a word. An element
 * that found no room is not in the table, and everything else is as it was: after each HASH_ADD...(handle, ...) whoever
 * adds asks whether element->handle.tbl is NULL. One that is not in the table is never given to HASH_DEL...().
 */
#ifndef VETHGUARD_BASE_TABLE_H
#define VETHGUARD_BASE_TABLE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
