/* SPDX-License-Identifier: Apache-2.0 */
/* tap: a tap device for a virtual machine in a prepared namespace, whose link becomes the
 * machine's. */
#ifndef VETHGUARD_SRC_CLI_PREPARE_TAP_H
#define VETHGUARD_SRC_CLI_PREPARE_TAP_H

#include <stdbool.h>

/* True for the name of an interface that is not one of those that are there. */
bool tap_name_is_valid(const char *name);
/* In the namespace at path, which is prepared: makes the tap and a bridge between it and the link,
 * whose addresses are the machine's from then on. Returns 0, or -errno with the step that failed.
 */
int tap_make(const char *path, const char *name, const char **step);

#endif
