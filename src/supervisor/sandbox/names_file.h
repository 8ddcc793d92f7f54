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
/* Makes the file of a new sandbox with what is in that of another one now; no file, if that has
 * none. Returns 0 or -errno, and then there is no new file. */
int names_file_copy(int directory, uint64_t from, uint64_t to);
bool names_file_exists(int directory, uint64_t id);
void names_file_remove(int directory, uint64_t id);

#endif
