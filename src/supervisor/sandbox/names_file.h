/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_file: the synthetic names of a persistent sandbox as a file of the state directory
 * (names/ID, ipc/shared_names.h). With it, addresses that programs inside have cached outlive both
 * the worker and the supervisor.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_NAMES_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_NAMES_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Opens the file of that sandbox, or makes one for limit names. A damaged file is replaced, and
 * *damaged is true. Returns a descriptor that the caller owns, or -errno. */
int names_file_open(int directory, uint64_t id, uint32_t limit, bool *damaged);
void names_file_remove(int directory, uint64_t id);

#endif
