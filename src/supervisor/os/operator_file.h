/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator_file: opens a file that the operator's configuration names and that decides what all
 * sandboxes trust. A file that others could replace is refused, and so is a secret file that others
 * can read. Symbolic links are followed, since orchestrators mount secrets as such.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_OPERATOR_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_OS_OPERATOR_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* key: of the configuration, "ca.key". Returns a descriptor for reading, or -errno with a sentence
 * in why. */
int operator_file_open(
        const char *key, const char *path, bool is_secret, char *why, size_t why_size);

#endif
