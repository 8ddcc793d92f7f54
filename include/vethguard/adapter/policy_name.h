/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_name: policies by name. A user who may start a container can name a policy, but must not name any file of the
 * host. The host's administrator puts the policies into one directory.
 */
#ifndef VETHGUARD_ADAPTER_POLICY_NAME_H
#define VETHGUARD_ADAPTER_POLICY_NAME_H

#include <limits.h>
#include <stdbool.h>

#define POLICY_DIRECTORY_DEFAULT "/etc/vethguard/policies"
#define POLICY_FILE_NAME_MAX 63 /* bytes: letters, digits, '.', '_', '-', beginning with a letter or digit */
#define POLICY_NAME_FAULT_MAX 512

bool policy_name_is_valid(const char *name);
/* Writes "DIRECTORY/NAME.yaml". Returns true if there is such a file; else false with one sentence in fault: what is
 * wrong with the name, or which file is missing and which policies there are. */
bool policy_name_resolve(
        const char *directory, const char *name, char out[PATH_MAX], char fault[POLICY_NAME_FAULT_MAX]);

#endif
