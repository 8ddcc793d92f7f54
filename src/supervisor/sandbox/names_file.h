/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_file: the synthetic names of a sandbox that lasts, as a file of the state directory
 * (names/ID, ipc/shared_names.h), so that addresses which programs inside have cached outlive the
 * supervisor as well as the worker.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_NAMES_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_NAMES_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* The file of that sandbox, or a new one for so many names; one that is damaged is replaced, and
 * *damaged is true. A descriptor that the caller owns, or -errno. */
int names_file_open(int directory, uint64_t id, uint32_t limit, bool *damaged);
void names_file_remove(int directory, uint64_t id);

#endif
