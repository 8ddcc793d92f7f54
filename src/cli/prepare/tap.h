/* SPDX-License-Identifier: Apache-2.0 */
/* tap: a tap device for a virtual machine in a prepared namespace, whose link becomes the
 * machine's. */
#ifndef VETHGUARD_SRC_CLI_PREPARE_TAP_H
#define VETHGUARD_SRC_CLI_PREPARE_TAP_H

#include <stdbool.h>

/* True for a valid name of an interface that is not one of those that exist. */
bool tap_name_is_valid(const char *name);
/* In the prepared namespace at path, makes the tap and a bridge that joins the tap and the link.
 * The link's addresses belong to the machine from then on. Returns 0, or -errno with the step that
 * failed.
 */
int tap_make(const char *path, const char *name, const char **step);

#endif
