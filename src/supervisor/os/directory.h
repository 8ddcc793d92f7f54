/* SPDX-License-Identifier: Apache-2.0 */
/* directory: reads a directory that is open already from its beginning. */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_DIRECTORY_H
#define VETHGUARD_SRC_SUPERVISOR_OS_DIRECTORY_H

#include <dirent.h>

/* Opens the directory anew, so that the descriptor's position does not change. Returns NULL with
 * errno set; else the caller calls closedir(). */
DIR *directory_list(int directory);

#endif
